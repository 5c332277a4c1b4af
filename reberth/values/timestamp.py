"""Points in time: the texts of Kubernetes' objects to seconds since the epoch, and back.

Seconds are floats: until the year 2242 they hold every microsecond. Nanoseconds are cut off.
"""

import re
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache

_FORM = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})"
)
_FIRST = datetime(1, 1, 1, tzinfo=UTC).timestamp()
_LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()


class TimeError(ValueError):
    """The text is not a point in time."""


# Replicas are born together, and every event of an object repeats its times.
@lru_cache(maxsize=2**15)
def parse_time(text: str) -> float:
    """Read what RFC 3339 allows: "2026-01-02T03:04:05Z", with fractions, with an offset."""
    if _FORM.fullmatch(text):  # fromisoformat alone reads much else
        with suppress(ValueError):
            return datetime.fromisoformat(text).timestamp()
    raise TimeError(f"invalid time {text!r:.80}, e.g. 2026-01-02T03:04:05Z")


def write_time(seconds: float) -> str:
    """Write whole seconds, as most of Kubernetes' fields have them."""
    return _write(seconds, "seconds")


def write_micro_time(seconds: float) -> str:
    """Write microseconds, as leases and events have them."""
    return _write(seconds, "microseconds")


def _write(seconds: float, precision: str) -> str:
    """Write what lies beyond the calendar as its edge: a foreign time plus a duration may get there."""
    moment = datetime.fromtimestamp(max(_FIRST, min(seconds, _LAST)), UTC)
    return f"{moment.replace(tzinfo=None).isoformat(timespec=precision)}Z"
