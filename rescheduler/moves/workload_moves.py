"""What the eviction history of a workload says of its moves: which are open, what has refused them before."""

from collections.abc import Callable, Collection

from reberth.memory.backoff import instant
from reberth.memory.history import open_move
from reberth.records import EvictionHistory, OpenMove, Phase, RememberedRefusal
from reberth.values.refusal import Refused
from rescheduler.model.refusal_scopes import is_disproved

MOVE_UNDER_WAY = Refused("MoveUnderWay", "another move of the workload has not ended")


def find_open(history: EvictionHistory, move: str) -> OpenMove | None:
    return next((one for one in history.status.open or () if one.id == move), None)


def open_another(
    history: EvictionHistory,
    *,
    entry: OpenMove,
    most: int | None,
    settled: Collection[str],
    give_time: Callable[[OpenMove, EvictionHistory], OpenMove],
) -> EvictionHistory | Refused:
    """Add the move to the history if fewer than `most` moves of the workload are open.

    This check and the write are one: without it two moves could each find that none is open. A Noted move
    that was neither begun here nor is known to be evicted stops every other one: an earlier leader's request
    may still evict its pod.
    """
    others = [one for one in history.status.open or () if one.id != entry.id]
    left = any(one.phase == Phase.NOTED and one.id not in settled for one in others)
    if left or (most is not None and len(others) >= max(most, 1)):
        return MOVE_UNDER_WAY
    return open_move(history, give_time(entry, history))


def list_remarks(history: EvictionHistory, now: float) -> list[str]:
    """Tell a person what has refused the workload's moves before: their request is tried all the same."""
    waiting = [one for one in history.status.refused or () if instant(one.until) > now]
    return [f"refused before: {one.rule}, for plans until {one.until}: {one.reason}" for one in waiting]


def list_disproved(history: EvictionHistory | None, evicted: OpenMove) -> tuple[RememberedRefusal, ...]:
    """List the refusals that a granted eviction disproves."""
    refused = (history.status.refused or ()) if history else ()
    return tuple(one for one in refused if is_disproved(one, uid=evicted.pod_uid, node=evicted.from_))
