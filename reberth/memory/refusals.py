"""What refused the moves of a workload, and how long nothing that it concerns is tried again.

A refused eviction disrupts nothing, but it costs ten requests, and a plan that does not know of it
proposes the same move again and again, ahead of all others. So every refusal is remembered, from the first
one on: for as long as whoever refused asked for, else for a minute, doubled with each further refusal in a
row up to an hour. It is stored in the history of the workload, so that the next leader knows it too.

Entries are few, and are kept apart from the outcomes of moves: no number of refusals pushes out what was
learnt from evictions. An entry is forgotten a day after its end; then the next refusal is the first again.
"""

from collections.abc import Callable, Iterable

import msgspec

from reberth.memory.backoff import instant
from reberth.records import HistoryStatus, RememberedRefusal
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_micro_time

# The limits in the custom resource's schema.
MOST_REFUSED = 8
MOST_KEY = 253
MOST_REASON = 256

FIRST_WAIT = 60.0
LONGEST_WAIT = 3600.0
FORGOTTEN_AFTER = 24 * 3600.0
_MOST_DOUBLINGS = 16


def find_wait(count: int) -> float:
    """Give the seconds after the nth refusal in a row in which nothing is tried again."""
    return min(FIRST_WAIT * 2.0 ** min(count - 1, _MOST_DOUBLINGS), LONGEST_WAIT)


def note_refusal(
    refused: Refused, *, key: str, before: Iterable[RememberedRefusal], now: float
) -> RememberedRefusal:
    """Describe a refusal that has just come, after those `before` by the same rule about the same key.

    An end that the server gave holds, but no longer than the longest wait: it is a foreign number.
    """
    same = [one for one in before if one.rule == refused.rule and one.key == key[:MOST_KEY]]
    count = 1 + max((one.count for one in list_living(same, now)), default=0)
    until = now + find_wait(count) if refused.until is None else min(refused.until, now + LONGEST_WAIT)
    return RememberedRefusal(
        rule=refused.rule,
        refused_at=write_micro_time(now),
        until=write_micro_time(max(until, now)),
        key=key[:MOST_KEY],
        count=count,
        reason=refused.reason[:MOST_REASON],
    )


def put_refusal(status: HistoryStatus, noted: RememberedRefusal, now: float) -> HistoryStatus:
    """Enter a refusal in place of the earlier one by the same rule about the same key.

    If there is no room, those that end first are dropped.
    """
    others = [
        one
        for one in list_living(status.refused or (), now)
        if (one.rule, one.key) != (noted.rule, noted.key)
    ]
    others.sort(key=lambda one: (instant(one.until), one.rule, one.key))
    return msgspec.structs.replace(status, refused=(*others[-(MOST_REFUSED - 1) :], noted))


def drop_refusals(status: HistoryStatus, is_disproved: Callable[[RememberedRefusal], bool]) -> HistoryStatus:
    """Drop what a granted eviction has disproved."""
    kept = tuple(one for one in status.refused or () if not is_disproved(one))
    return status if kept == (status.refused or ()) else msgspec.structs.replace(status, refused=kept or None)


def list_living(refused: Iterable[RememberedRefusal], now: float) -> list[RememberedRefusal]:
    """Give the entries that are not forgotten yet; one whose times cannot be read is."""
    return [one for one in refused if instant(one.until) + FORGOTTEN_AFTER > now]
