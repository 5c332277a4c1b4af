"""When an answer must be neutral: what it needs to know is not known yet, or not any more, or time is short.

A mirror of which nothing was heard for a minute may be as true as ever: on a quiet cluster the server says no
more than that it is there, once a minute. So age alone is no doubt; age and a trouble are.
"""

from collections.abc import Iterable
from typing import NamedTuple

COLD = "cold"
STALE = "stale"
DEADLINE = "deadline"
FAULT = "fault"
CAUSES = (COLD, STALE, DEADLINE, FAULT)


class MirrorState(NamedTuple):
    """How true the mirror of one kind is."""

    is_complete: bool
    trouble: str | None
    age: float  # seconds since the server last spoke of it


def find_neutral_cause(
    needed: Iterable[MirrorState], *, stale_after: float, spent: float, deadline: float
) -> str | None:
    """Give the cause for which the answer must be neutral, or None; `spent` is the time since the call.

    A mirror without a trouble is beyond doubt, so it need not be among those that are needed.
    """
    causes = {_doubt(state, stale_after) for state in needed}
    if spent > deadline:
        causes.add(DEADLINE)
    return next((cause for cause in CAUSES if cause in causes), None)


def _doubt(state: MirrorState, stale_after: float) -> str | None:
    if not state.is_complete:
        return COLD
    return STALE if state.trouble is not None and state.age > stale_after else None
