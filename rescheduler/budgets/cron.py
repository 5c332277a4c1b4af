"""Cron schedules in UTC: when one has begun last within a time.

The grammar is that of `ParseStandard` of github.com/robfig/cron/v3, which Karpenter uses: five fields,
lists, ranges, steps, names of months and days, and macros such as @daily. If both the day of the month and
the day of the week are restricted, either is enough.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import NamedTuple

from reberth.values.text_limits import LONGEST_TEXT

_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_PART = re.compile(r"(?:([*?])|([0-9a-z]+)(?:-([0-9a-z]+))?)(?:/([0-9]{1,4}))?")
# A schedule that has not begun for so long, such as one for 29 February, may be one that never does.
_LONGEST = timedelta(days=366)
_MOST_KNOWN = 1024


class _Field(NamedTuple):
    """The bounds of a field, and the names of its values."""

    least: int
    most: int
    names: tuple[str, ...] = ()


_FIELDS = (_Field(0, 59), _Field(0, 23), _Field(1, 31), _Field(1, 12, _MONTHS), _Field(0, 6, _DAYS))


@dataclass(frozen=True)
class CronSchedule:
    """The times of a schedule, and the values of its fields."""

    times: tuple[time, ...]  # of a day
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    is_either_enough: bool

    def find_last(self, since: datetime, until: datetime) -> datetime | None:
        """Give the last time of the schedule after `since` and not after `until`, within a year."""
        since = max(since, until - _LONGEST)
        day = until.date()
        while day >= since.date():
            begun = (_at(day, each) for each in reversed(self.times)) if self._includes(day) else iter(())
            found = next((each for each in begun if each <= until), None)
            if found:
                return found if found > since else None
            day -= timedelta(days=1)
        return None

    def _includes(self, day: date) -> bool:
        is_day, is_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        chosen = (is_day or is_weekday) if self.is_either_enough else (is_day and is_weekday)
        return chosen and day.month in self.months


def read_cron(text: str) -> CronSchedule | None:
    """Read a schedule; None if it has another grammar, or is longer than any."""
    return _read_cron(text) if len(text) <= LONGEST_TEXT else None


@lru_cache(_MOST_KNOWN)
def _read_cron(text: str) -> CronSchedule | None:
    fields = _MACROS.get(text, text).lower().split()
    if len(fields) != len(_FIELDS):
        return None
    values = [_read_field(text, field) for text, field in zip(fields, _FIELDS, strict=True)]
    minutes, hours, days, months, weekdays = values
    if not (minutes and hours and days and months and weekdays):
        return None
    times = tuple(time(hour, minute) for hour in sorted(hours) for minute in sorted(minutes))
    is_restricted = not (_is_open(fields[2]) or _is_open(fields[4]))
    return CronSchedule(times, days, months, weekdays, is_restricted)


def _read_field(text: str, field: _Field) -> frozenset[int]:
    """Give the values of a field; none if a part of it cannot be read."""
    parts = [_read_part(part, field) for part in text.split(",")]
    return frozenset().union(*parts) if all(parts) else frozenset()


def _read_part(text: str, field: _Field) -> frozenset[int]:
    found = _PART.fullmatch(text)
    if found is None:
        return frozenset()
    star, first, last, step = found.groups()
    low = field.least if star else _read_value(first, field)
    high = field.most if star or (step and not last) else _read_value(last or first, field)
    if low is None or high is None or not field.least <= low <= high <= field.most or step == "0":
        return frozenset()
    return frozenset(range(low, high + 1, int(step or 1)))


def _read_value(text: str, field: _Field) -> int | None:
    if text in field.names:
        return field.names.index(text) + field.least
    return int(text) if text.isascii() and text.isdigit() and len(text) <= len("59") else None


def _is_open(text: str) -> bool:
    """Tell whether a field has a part that allows every value."""
    return not {"*", "?", "*/1", "?/1"}.isdisjoint(text.split(","))


def _at(day: date, moment: time) -> datetime:
    return datetime.combine(day, moment, UTC)
