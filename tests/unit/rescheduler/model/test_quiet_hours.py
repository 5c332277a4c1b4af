"""Quiet hours: over midnight, on some days, for some policies, and when the clocks change."""

from datetime import UTC, datetime
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
