"""When an answer must be neutral: a cache that it needs is not synced yet or is stale, or time is short.

A cache that was not confirmed for a minute may be fully up to date: in a quiet cluster the API server only
sends a bookmark, once a minute. So age alone does not make a cache stale; it is stale if its watch has
trouble as well.
"""

from collections.abc import Iterable
from typing import NamedTuple

COLD = "cold"
STALE = "stale"
DEADLINE = "deadline"
FAULT = "fault"
CAUSES = (COLD, STALE, DEADLINE, FAULT)


class MirrorState(NamedTuple):
    """How fresh the cache of one kind is."""

    is_complete: bool
    trouble: str | None
    age: float  # seconds since the server last confirmed it


def find_neutral_cause(
    needed: Iterable[MirrorState], *, stale_after: float, spent: float, deadline: float
) -> str | None:
    """Give the cause for which the answer must be neutral, or None; `spent` is the time since the call.

    A cache whose watch works is never stale, so `needed` may leave it out.
    """
    causes = {_doubt(state, stale_after) for state in needed}
    if spent > deadline:
        causes.add(DEADLINE)
    return next((cause for cause in CAUSES if cause in causes), None)


def _doubt(state: MirrorState, stale_after: float) -> str | None:
    if not state.is_complete:
        return COLD
    return STALE if state.trouble is not None and state.age > stale_after else None
