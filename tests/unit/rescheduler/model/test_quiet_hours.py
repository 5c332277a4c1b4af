"""Quiet hours: over midnight, on some days, for some policies, and when the clocks change."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from reberth.config.settings import parse
from reberth.values.errors import SettingsError
from rescheduler.model.guardrails import LimitSettings
from rescheduler.model.quiet_hours import QuietHours, TimeOfDay, find_quiet, find_zone

BERLIN = ZoneInfo("Europe/Berlin")


def clock(text: str) -> TimeOfDay:
    moment = TimeOfDay.from_text(text)
    assert moment is not None
    return moment


def hours(start: str, end: str, **fields: tuple[str, ...]) -> QuietHours:
    return QuietHours(clock(start), clock(end), **fields)  # type: ignore[arg-type] # days are checked where they are read


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


NIGHT, NOON = hours("22:00", "06:00"), hours("12:00", "13:30")
SUNDAY_NIGHT = hours("22:00", "06:00", days=("Sun",))


@pytest.mark.parametrize(
    ("entry", "now", "until"),
    [
        (NOON, "2027-01-15T12:00:00", "2027-01-15T13:30:00"),
        (NOON, "2027-01-15T13:29:59", "2027-01-15T13:30:00"),
        (NOON, "2027-01-15T13:30:00", None),
        (NOON, "2027-01-15T11:59:59", None),
        (NIGHT, "2027-01-15T23:00:00", "2027-01-16T06:00:00"),
        (NIGHT, "2027-01-15T05:59:59", "2027-01-15T06:00:00"),
        (NIGHT, "2027-01-15T06:00:00", None),
        (SUNDAY_NIGHT, "2027-01-17T23:00:00", "2027-01-18T06:00:00"),
        (SUNDAY_NIGHT, "2027-01-18T05:00:00", "2027-01-18T06:00:00"),
        (SUNDAY_NIGHT, "2027-01-18T23:00:00", None),
        (SUNDAY_NIGHT, "2027-01-17T05:00:00", None),
        (hours("08:00", "08:00"), "2027-01-15T07:00:00", "2027-01-15T08:00:00"),
    ],
)
def test_a_policy_rests_from_the_start_to_the_end(entry: QuietHours, now: str, until: str | None) -> None:
    refused = find_quiet([entry], "underUtilisedNodes", zone=UTC, now=at(now))
    assert (refused.until if refused else None) == (at(until) if until else None)
    assert refused is None or refused.rule == "QuietHours"


def test_only_the_policies_that_are_named_rest() -> None:
    entry = hours("00:00", "23:59", policies=("underUtilisedNodes",))
    now = at("2027-01-15T12:00:00")
    refused = find_quiet([entry], "underUtilisedNodes", zone=UTC, now=now)
    assert refused is not None
    assert refused.reason == "policy underUtilisedNodes has quiet hours until 23:59 (UTC)"
    assert find_quiet([entry], "repair", zone=UTC, now=now) is None


def test_of_two_hours_that_hold_the_later_end_counts() -> None:
    refused = find_quiet(
        [NOON, hours("12:15", "18:00")], "underUtilisedNodes", zone=UTC, now=at("2027-01-15T12:30:00")
    )
    assert refused is not None
    assert refused.until == at("2027-01-15T18:00:00")


@pytest.mark.parametrize(
    ("now", "until"),
    [
        ("2027-07-15T20:30:00", "2027-07-16T04:00:00"),  # summer: two hours ahead
        ("2027-01-15T20:30:00", None),  # winter: it is half past nine there
        ("2027-03-27T22:00:00", "2027-03-28T04:00:00"),  # the night that loses an hour
        ("2027-10-30T21:00:00", "2027-10-31T05:00:00"),  # the night that gains one
    ],
)
def test_the_hours_are_those_of_the_wall_clock(now: str, until: str | None) -> None:
    refused = find_quiet([NIGHT], "underUtilisedNodes", zone=BERLIN, now=at(now))
    assert (refused.until if refused else None) == (at(until) if until else None)


def test_settings_read_quiet_hours() -> None:
    text = b"""
apiVersion: reberth.dev/v1alpha1
kind: LimitSettings
timeZone: Europe/Berlin
quietHours:
  - {start: "22:00", end: "06:00", days: [Sat, Sun], policies: [underUtilisedNodes]}
"""
    settings = parse(text, LimitSettings)
    assert settings.quiet_hours == (
        hours("22:00", "06:00", days=("Sat", "Sun"), policies=("underUtilisedNodes",)),
    )
    assert find_zone(settings.time_zone) == BERLIN


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("timeZone: Mars/Olympus", "'Mars/Olympus' is not installed"),
        ("timeZone: /etc/passwd", "is not installed"),
        ('quietHours: [{start: "24:00", end: "06:00"}]', "a time of day"),
        ('quietHours: [{start: "6:00", end: "07:00"}]', "a time of day"),
        ('quietHours: [{start: "06:00", end: "07:00", days: [Sunday]}]', "days"),
    ],
)
def test_wrong_hours_are_refused_with_the_settings(line: str, said: str) -> None:
    text = f"apiVersion: reberth.dev/v1alpha1\nkind: LimitSettings\n{line}\n".encode()
    with pytest.raises(SettingsError) as caught:
        parse(text, LimitSettings)
    assert said in str(caught.value)


def quiet_times(entry: QuietHours, zone: ZoneInfo, day: str) -> list[str]:
    """Give when the hours begin and end on a day, with the offset from UTC."""
    start = datetime.fromisoformat(day).replace(tzinfo=zone).timestamp()
    minutes = [start + 60 * minute for minute in range(20 * 60)]
    held = [bool(find_quiet([entry], "repair", zone=zone, now=now)) for now in minutes]
    turns = [now for now, was, is_now in zip(minutes[1:], held, held[1:], strict=False) if was != is_now]
    return [f"{datetime.fromtimestamp(now, zone):%H:%M%z}" for now in turns]


@pytest.mark.parametrize(
    ("day", "start", "end", "expected"),
    [
        ("2026-03-29", "02:00", "03:00", []),  # the clock shows none of it
        ("2026-03-29", "02:15", "02:45", []),
        ("2026-03-29", "02:30", "03:30", ["03:00+0200", "03:30+0200"]),
        ("2026-03-29", "01:30", "02:30", ["01:30+0100", "03:00+0200"]),
        ("2026-10-25", "01:00", "02:00", ["01:00+0200", "02:00+0200"]),
        ("2026-10-25", "01:00", "02:30", ["01:00+0200", "02:30+0100"]),
        ("2026-10-25", "02:00", "03:00", ["02:00+0200", "03:00+0100"]),
        ("2026-10-25", "02:15", "02:45", ["02:15+0200", "02:45+0100"]),
        ("2026-10-25", "02:30", "04:00", ["02:30+0200", "04:00+0100"]),
    ],
)
def test_hours_on_the_nights_when_the_clocks_change(
    day: str, start: str, end: str, expected: list[str]
) -> None:
    assert quiet_times(hours(start, end), BERLIN, day) == expected


CHANGES = [
    ("Europe/Berlin", "2026-03-29"),
    ("Europe/Berlin", "2026-10-25"),
    ("America/New_York", "2026-03-08"),
    ("America/New_York", "2026-11-01"),
    ("America/Sao_Paulo", "2018-11-04"),  # the day begins at 01:00
    ("America/Sao_Paulo", "2018-02-17"),  # midnight goes back to 23:00
    ("America/St_Johns", "2010-11-07"),  # 00:01 goes back to 23:01 of the day before
    ("Australia/Lord_Howe", "2026-04-05"),  # half an hour
    ("Australia/Lord_Howe", "2026-10-04"),
    ("Pacific/Apia", "2011-12-30"),  # there was no such day
    ("Asia/Kolkata", "2026-03-29"),  # nothing changes
]
WINDOWS = [
    ("00:00", "01:00"), ("00:30", "00:45"), ("01:00", "02:00"), ("01:00", "02:30"), ("01:45", "02:15"),
    ("02:00", "03:00"), ("02:15", "02:45"), ("02:30", "03:30"), ("02:30", "04:00"), ("22:00", "06:00"),
    ("23:00", "00:00"), ("23:30", "00:00"), ("23:15", "23:45"), ("23:30", "00:30"), ("02:30", "02:30"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "day"), CHANGES)
def test_every_minute_around_a_change_is_as_the_clock_on_the_wall_says(name: str, day: str) -> None:
    """The clock is read minute by minute: from the first at or after the start to the last before the end."""
    zone, midday = ZoneInfo(name), datetime.fromisoformat(f"{day}T12:00:00").replace(tzinfo=UTC)
    minutes = [midday.timestamp() + 60 * minute for minute in range(-72 * 60, 72 * 60)]
    walls = [datetime.fromtimestamp(now, zone).replace(tzinfo=None) for now in minutes]
    shift = [wall.replace(tzinfo=UTC).timestamp() - now for wall, now in zip(walls, minutes, strict=True)]
    change = next((place for place in range(1, len(shift)) if shift[place] != shift[place - 1]), 72 * 60)
    looked_at = range(change - 8 * 60, change + 8 * 60)
    for start, end in WINDOWS:
        quiet = set()
        for begins_on in sorted({wall.date() + timedelta(days=more) for wall in walls for more in (0, 1)}):
            begin = datetime.combine(begins_on, clock(start).time)
            over = datetime.combine(begins_on + timedelta(days=int(end <= start)), clock(end).time)
            after = [place for place, wall in enumerate(walls) if wall >= begin]
            before = [place for place, wall in enumerate(walls) if wall < over]
            if after and before:
                quiet |= set(range(after[0], before[-1] + 1))
        found = {
            place
            for place in looked_at
            if find_quiet([hours(start, end)], "repair", zone=zone, now=minutes[place])
        }
        assert found == quiet & set(looked_at), (start, end)
