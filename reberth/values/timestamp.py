"""Points in time: from the timestamps of Kubernetes objects to seconds since the epoch, and back.

Seconds are floats: until the year 2242 they represent every microsecond. Nanoseconds are truncated.
"""

import re
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache

_FORM = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,30})?(Z|[+-][0-9]{2}:[0-9]{2})"
)
_HTTP_FORM = re.compile(
    r"[A-Z][a-z]{2}, ([0-9]{2}) ([A-Z][a-z]{2}) ([0-9]{4}) ([0-9]{2}:[0-9]{2}:[0-9]{2}) GMT"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_FIRST = datetime(1, 1, 1, tzinfo=UTC).timestamp()
_LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()


class TimeError(ValueError):
    """The text is not a point in time."""


# Replicas are often created in the same second, and every event of an object repeats its times.
@lru_cache(maxsize=2**15)
def parse_time(text: str) -> float:
    """Read RFC 3339: "2026-01-02T03:04:05Z", with fractions, with an offset."""
    if _FORM.fullmatch(text):  # fromisoformat alone accepts many other formats
        with suppress(ValueError):
            return datetime.fromisoformat(text).timestamp()
    raise TimeError(f"invalid time {text!r:.80}, e.g. 2026-01-02T03:04:05Z")


@lru_cache(maxsize=4)  # all answers of one second have the same date
def parse_http_date(text: str) -> float:
    """Read the date of an HTTP answer: "Sun, 06 Nov 1994 08:49:37 GMT"."""
    found = _HTTP_FORM.fullmatch(text)
    if found and found[2] in _MONTHS:
        return parse_time(f"{found[3]}-{_MONTHS.index(found[2]) + 1:02}-{found[1]}T{found[4]}Z")
    raise TimeError(f"invalid date {text!r:.80}, e.g. Sun, 06 Nov 1994 08:49:37 GMT")


def write_time(seconds: float) -> str:
    """Write whole seconds, the format of most Kubernetes fields."""
    return _write(seconds, "seconds")


def write_micro_time(seconds: float) -> str:
    """Write microseconds, the format of leases and Events."""
    return _write(seconds, "microseconds")


def _write(seconds: float, precision: str) -> str:
    """Clamp a time to the calendar: a time from another program plus a duration may leave it."""
    moment = datetime.fromtimestamp(max(_FIRST, min(seconds, _LAST)), UTC)
    return f"{moment.replace(tzinfo=None).isoformat(timespec=precision)}Z"
