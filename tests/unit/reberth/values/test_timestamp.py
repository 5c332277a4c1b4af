"""Timestamps agree with the standard library's, both ways."""

import calendar
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reberth.values.timestamp import TimeError, parse_http_date, parse_time, write_micro_time, write_time

# Until 2242 a float of seconds holds every microsecond.
microseconds = st.integers(0, 2**33 * 10**6)
offsets = st.integers(-23 * 60 - 59, 23 * 60 + 59)


def write_offset(minutes: int) -> str:
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0.0),
        ("1969-12-31T23:59:59Z", -1.0),
        ("2026-01-02T03:04:05Z", 1767323045.0),
        ("2024-02-29T12:00:00Z", 1709208000.0),
        ("2026-01-02T03:04:05.1Z", 1767323045.1),
        ("2026-01-02T03:04:05.000001Z", 1767323045.000001),
        ("2026-01-02T03:04:05.123456789Z", 1767323045.123456),
        ("2026-01-02T03:04:05.9999999Z", 1767323045.999999),
        ("2026-01-02T03:04:05+02:00", 1767315845.0),
        ("2026-01-02T03:04:05.5-02:30", 1767332045.5),
        ("0001-01-01T00:00:00Z", -62135596800.0),
    ],
)
def test_all_forms_of_rfc_3339_are_read(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        *("", "now", "1767323045", "2026-01-02", "2026-01-02T03:04:05", "2026-01-02 03:04:05Z"),
        *("2026-13-02T03:04:05Z", "2026-02-30T03:04:05Z", "2026-01-02T25:04:05Z", "2026-01-02T03:04:60Z"),
        *("2026-W01-1T03:04:05Z", "2026-002T03:04:05.00Z", "20260102T030405.000Z", "2026-01-02T030405.01Z"),
        *(
            "2026-01-02T03:04:05.Z",
            "2026-01-02T03:04:05,1Z",
            "2026-01-02T03:04:05+0200",
            "2026-01-02T03:04:05+99:00",
        ),
        *("2026-01-02T03:04:05z", "2026-01-02t03:04:05Z", " 026-01-02T03:04:05Z", "2026-01-02T03:04:+5Z"),
        *("0000-01-01T00:00:00Z", "٢٠٢٦-01-02T03:04:05Z", "2026-01-02T03:04:05Z\n"),
        *("2026-01-02T03:04:05." + "0" * 31 + "Z", "2026-01-02T03:04:05." + "0" * 10**6 + "Z"),
    ],
)
def test_anything_else_is_refused_by_name(text: str) -> None:
    with pytest.raises(TimeError, match="invalid time") as refusal:
        parse_time(text)
    assert repr(text)[:80] in str(refusal.value)
    assert len(str(refusal.value)) < 150


def test_the_date_of_an_http_answer_is_read() -> None:
    assert parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT") == parse_time("1994-11-06T08:49:37Z")


@pytest.mark.parametrize(
    "text",
    [
        *("", "1994-11-06T08:49:37Z", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"),
        *("Sun, 06 Nov 1994 08:49:37 CET", "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 31 Feb 1994 08:49:37 GMT"),
    ],
)
def test_any_other_date_is_refused(text: str) -> None:
    with pytest.raises(TimeError):
        parse_http_date(text)


def test_a_long_bad_text_is_cut_in_the_message() -> None:
    with pytest.raises(TimeError) as refusal:
        parse_time("2" * 10**6)
    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1767323045.999999, "2026-01-02T03:04:05Z"),
        (-0.5, "1969-12-31T23:59:59Z"),
        (-62135596800.0, "0001-01-01T00:00:00Z"),
        (1e300, "9999-12-31T23:59:59Z"),
        (-1e300, "0001-01-01T00:00:00Z"),
        (float("inf"), "9999-12-31T23:59:59Z"),
    ],
)
def test_whole_seconds_are_written_rounded_down_and_within_the_calendar(seconds: float, text: str) -> None:
    assert write_time(seconds) == text


def test_microseconds_are_written_with_six_digits() -> None:
    assert write_micro_time(1767323045.5) == "2026-01-02T03:04:05.500000Z"
    assert write_micro_time(0) == "1970-01-01T00:00:00.000000Z"


@given(microseconds)
def test_every_microsecond_survives_writing_and_reading(count: int) -> None:
    text = write_micro_time(count / 10**6)
    assert parse_time(text) == count / 10**6
    assert (parse_time(text[:19] + "Z"), int(text[20:26])) == (count // 10**6, count % 10**6)


@given(microseconds)
def test_whole_seconds_are_those_of_the_calendar(count: int) -> None:
    whole = count // 10**6
    text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(whole))
    assert write_time(whole) == text
    assert parse_time(text) == whole == calendar.timegm(time.gmtime(whole))


@given(st.integers(0, 2**33), offsets)
def test_an_offset_is_taken_off(whole: int, minutes: int) -> None:
    local = write_time(whole)[:-1]
    assert parse_time(f"{local}{write_offset(minutes)}") == whole - minutes * 60
