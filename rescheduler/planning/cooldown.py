"""How long a moved pod stays on its new node, and how long none of its controller's pods goes back."""

from collections.abc import Iterator

from reberth.cluster.rows import PodRow
from reberth.config.settings import Section
from reberth.memory.backoff import closing_time, instant
from reberth.memory.replacements import is_since
from reberth.records import EvictionHistory
from reberth.values.duration import Duration
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_time
from rescheduler.model.plan_memory import PlanMemory
from rescheduler.planning.worth import Worth

_RULE = "NotPaidBack"


class RestSettings(Section, frozen=True):
    """How long a moved pod is not moved again."""

    least: Duration = Duration(3600)
    """The least time that a moved pod stays; longer if its gain pays for the move later."""
    longest: Duration = Duration(24 * 3600)
    """The longest time that it stays because of its last move."""
    no_return: Duration = Duration(48 * 3600)
    """The time for which no pod of a controller is moved to a node that one of its pods was moved off."""


def refuse_resting(
    row: PodRow, history: EvictionHistory | None, memory: PlanMemory, settings: RestSettings, *, now: float
) -> Refused | None:
    """Refuse to move a pod again before its last move has paid for its cost."""
    until = max([memory.find_rest(row) or now, *_end_rests(row, history, settings)])
    if until <= now:
        return None
    return Refused(
        _RULE, f"its last move has not paid for its cost yet: the pod stays until {write_time(until)}", until
    )


def find_left(
    controller: str,
    history: EvictionHistory | None,
    memory: PlanMemory,
    settings: RestSettings,
    *,
    now: float,
) -> Iterator[str]:
    """Find the nodes that pods of a controller were moved off, to which none of them returns.

    The history of the workload knows them, and outlives the leader; the plan memory also knows moves that the
    history has no room for any more.
    """
    yield from (each.left for each in memory.moves_of(controller))
    if history is None:
        return
    yield from (move.from_ for move in history.status.open or () if move.controller_uid == controller)
    for move in history.status.past or ():
        recent = move.evicted_at is not None and instant(move.evicted_at) + settings.no_return > now
        if recent and move.controller_uid == controller:
            yield move.from_


def find_rest(worth: Worth, settings: RestSettings) -> float:
    """Tell in how many seconds a move has paid for its cost: a gain pays an equal cost in `least`."""
    gain = max(worth.gain * worth.lasting, 1e-9)
    return min(settings.least * max((worth.cost + worth.risk) / gain, 1.0), settings.longest)


def _end_rests(row: PodRow, history: EvictionHistory | None, settings: RestSettings) -> list[float]:
    """Tell until when past moves keep the pod on the node that they may have brought it to."""
    past = (history.status.past or ()) if history else ()
    return [
        closing_time(move) + settings.least
        for move in past
        if move.landed_on == row.node and is_since(row.created, instant(move.evicted_at))
    ]
