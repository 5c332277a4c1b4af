"""How long a workload is not moved after moves that had no benefit.

A move is *fruitless* if a pod was evicted and nothing was gained: Same, Worse, Returned, Pending, NotReady,
and Unknown, since a gain that was not observed must not be paid for again at the full rate. Better is
fruitful. Gone is not fruitless (the controller made no replacement), nor is Refused, nor any move that ended
before its eviction: nothing was disrupted.

After a fruitless move no pod of the workload leaves the same node for a while, and no pod of it is moved at
all for a shorter while; both double with every fruitless move of the last two days. After the third one the
workload is given up for a day. All this counts from the moments at which the moves were closed, since only
then their outcome is known.

A time that cannot be read, which the API server does not admit, counts as long past.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Annotated

import msgspec

from reberth.records import HistoryStatus, Outcome, PastMove
from reberth.values.duration import Duration
from reberth.values.refusal import Refused
from reberth.values.timestamp import parse_time, write_time

_FRUITLESS = frozenset(
    {
        Outcome.SAME,
        Outcome.WORSE,
        Outcome.RETURNED,
        Outcome.PENDING,
        Outcome.NOT_READY,
        Outcome.UNKNOWN,
    }
)


class BackOff(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The first and the longest back-offs, and when a workload is given up."""

    pair: Duration = Duration(30 * 60)
    """After a move without gain, no pod of it leaves that node for this time; doubled each time."""
    longest_pair: Duration = Duration(24 * 3600)
    """The upper bound of that time."""
    workload: Duration = Duration(15 * 60)
    """After a move without gain, no pod of it is moved for this time; doubled each time."""
    longest_workload: Duration = Duration(6 * 3600)
    """The upper bound of that time."""
    counted_over: Duration = Duration(48 * 3600)
    """Moves without gain that are older than this are forgotten."""
    moves: Annotated[int, msgspec.Meta(ge=1)] = 3
    """A workload is given up after this many moves without gain."""
    given_up_for: Duration = Duration(24 * 3600)
    """How long a workload that is given up is not moved."""


DEFAULT_BACK_OFF = BackOff()


def is_fruitless(move: PastMove) -> bool:
    return move.evicted_at is not None and move.outcome in _FRUITLESS


def closing_time(move: PastMove) -> float:
    """Give the time when the outcome was known; without `closedAt`, the time of the eviction."""
    return instant(move.closed_at or move.evicted_at)


def instant(time: str | None) -> float:
    """Read a time of a history as seconds since the epoch."""
    try:
        return parse_time(time or "")
    except ValueError:
        return -math.inf


def end_block(move: PastMove, past: Iterable[PastMove], back_off: BackOff) -> float:
    """Give the time until which a fruitless move, itself in `past`, keeps its workload on the source node."""
    count = _count_up_to(move, [one for one in past if one.from_ == move.from_], back_off)
    return closing_time(move) + min(back_off.pair * 2.0 ** (count - 1), back_off.longest_pair)


def end_giving_up(past: Iterable[PastMove], now: float, back_off: BackOff) -> float | None:
    """Give the time until which the workload is given up, if too many moves were fruitless."""
    count = sum(_is_counted(move, now, back_off) for move in past)
    return now + back_off.given_up_for if count >= back_off.moves else None


def still_counts(move: PastMove, now: float, back_off: BackOff) -> bool:
    """Tell whether a past move may still cause a back-off, or lengthen the next one."""
    return _is_counted(move, now, back_off) or instant(move.block_until) > now


def find_block(
    status: HistoryStatus,
    now: float,
    *,
    node: str | None = None,
    back_off: BackOff = DEFAULT_BACK_OFF,
) -> Refused | None:
    """Give the reason and the end of a back-off of the workload: for all moves, or for those off a node."""
    blocks = [block for block in _blocks(status, node, back_off) if block[0] > now]
    if not blocks:
        return None
    until, rule, reason = max(blocks)
    return Refused(rule, f"{reason}: the pod stays until {write_time(until)}", until)


def _blocks(status: HistoryStatus, node: str | None, back_off: BackOff) -> Iterator[tuple[float, str, str]]:
    past = status.past or ()
    yield instant(status.given_up_until), "GivenUp", "too many moves of the workload had no benefit"
    for move in past:
        if is_fruitless(move):
            until = _end_block_of_workload(move, past, back_off)
            yield until, "WorkloadBackOff", "a move of the workload had no benefit"
        if move.from_ == node:
            until = instant(move.block_until)
            yield until, "PairBackOff", "a move of the workload off this node had no benefit"


def _end_block_of_workload(move: PastMove, past: Iterable[PastMove], back_off: BackOff) -> float:
    count = _count_up_to(move, past, back_off)
    return closing_time(move) + min(back_off.workload * 2.0 ** (count - 1), back_off.longest_workload)


def _count_up_to(move: PastMove, past: Iterable[PastMove], back_off: BackOff) -> int:
    """Count the fruitless moves that were closed no later than this one, and not too long before it."""
    end = closing_time(move)
    return sum(_is_counted(one, end, back_off) and closing_time(one) <= end for one in past)


def _is_counted(move: PastMove, now: float, back_off: BackOff) -> bool:
    """Moves that a leader with a fast clock closed in our future count too."""
    return is_fruitless(move) and closing_time(move) > now - back_off.counted_over
