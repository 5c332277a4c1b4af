"""Quiet hours: times of day at which policies make no moves.

They are times of the wall clock in a time zone of the operator's choice. If the end is not after the start,
it is on the next day. The days are those on which the hours begin.

When clocks go forward, a start or end that the clock skips is the moment at which it goes forward. When they
go back, hours begin when the clock shows their start for the first time, and end when it shows their end for
the last time: they are not interrupted, and include a repeated hour twice.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from reberth.config.settings import Section
from reberth.values.duration import TextValue
from reberth.values.refusal import Refused
from rescheduler.model.plan import PolicyName

_FORM = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
Day = Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]


class TimeOfDay(TextValue, int):
    """A time on the wall clock, as minutes since midnight."""

    expected = "a time of day such as 06:30 or 22:00"

    @classmethod
    def from_text(cls, text: str) -> Self | None:
        found = _FORM.fullmatch(text)
        return cls(int(found[1]) * 60 + int(found[2])) if found else None

    @property
    def time(self) -> time:
        return time(*divmod(self, 60))


class QuietHours(Section, frozen=True):
    """From start to end these policies move nothing."""

    start: TimeOfDay
    """When the hours begin."""
    end: TimeOfDay
    """When they end; on the next day if that is not after the start."""
    days: tuple[Day, ...] = ()
    """The days on which they begin; none named means all."""
    policies: tuple[PolicyName, ...] = ()
    """The policies that make no moves then; if empty, all policies."""


def find_zone(name: str) -> tzinfo:
    """Give a time zone by its name, such as Europe/Berlin. Raises ValueError if it is not installed."""
    if name == "UTC":  # also without installed time zones
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"timeZone {name!r:.60} is not installed on this machine") from None


def find_quiet(hours: Iterable[QuietHours], policy: str, *, zone: tzinfo, now: float) -> Refused | None:
    """Refuse the moves of a policy in its quiet hours."""
    ends = [
        end
        for each in hours
        if not each.policies or policy in each.policies
        for begin, end in _spans(each, zone, now)
        if begin <= now < end
    ]
    if not ends:
        return None
    last = max(ends)
    reason = f"policy {policy} has quiet hours until {datetime.fromtimestamp(last, zone):%H:%M} ({zone})"
    return Refused("QuietHours", reason, last)


def _spans(hours: QuietHours, zone: tzinfo, now: float) -> Iterator[tuple[float, float]]:
    """List the quiet hours that may hold now, by the day on which they begin.

    That is tomorrow if they have begun, and then the clock went back over midnight.
    """
    today = datetime.fromtimestamp(now, zone).date()
    for day in (today + timedelta(days=each) for each in (-1, 0, 1)):
        if not hours.days or DAYS[day.weekday()] in hours.days:
            last_day = day if hours.start < hours.end else day + timedelta(days=1)
            yield _first_instant(day, hours.start, zone), _last_instant(last_day, hours.end, zone)


def _first_instant(day: date, moment: TimeOfDay, zone: tzinfo) -> float:
    """Give the instant at which the clock shows this time, or a later one, for the first time."""
    first, second = _instants(day, moment, zone)
    return first if first <= second else _find_leap(datetime.combine(day, moment.time), zone, second, first)


def _last_instant(day: date, moment: TimeOfDay, zone: tzinfo) -> float:
    """Give the instant up to which the clock shows a time before this one."""
    first, second = _instants(day, moment, zone)
    wall = datetime.combine(day, moment.time)
    if first < second:
        # The clock goes back to exactly this time if a second earlier it shows a later one.
        return second if _clock_at(second - 1, zone) < wall else first
    return first if first == second else _find_leap(wall, zone, second, first)


def _instants(day: date, moment: TimeOfDay, zone: tzinfo) -> tuple[float, float]:
    """Give the instants at which the clock shows this time: the first and the second, mostly the same.

    For a time that the clock skips the first one is after the skip, and the second one before it.
    """
    shown = datetime.combine(day, moment.time, zone)
    return shown.timestamp(), shown.replace(fold=1).timestamp()


def _find_leap(wall: datetime, zone: tzinfo, before: float, after: float) -> float:
    """Find the second between two instants at which the clock goes forward over this time."""
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (middle, after) if _clock_at(middle, zone) < wall else (before, middle)
    return after


def _clock_at(instant: float, zone: tzinfo) -> datetime:
    return datetime.fromtimestamp(instant, zone).replace(tzinfo=None)
