"""How long a pod stays where it was moved to, and how long nobody sends another one back."""

from reberth.cluster.rows import PodRow
from reberth.config.settings import Section
from reberth.memory.backoff import closing_time, instant
from reberth.records import EvictionHistory
from reberth.values.duration import Duration
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_time
from rescheduler.model.plan_memory import PlanMemory
from rescheduler.planning.worth import Worth

_RULE = "NotPaidBack"


class RestSettings(Section, frozen=True):
    """How long moves are left to pay back."""

    least: Duration = Duration(3600)
    """The least time that a moved pod stays; longer if its gain pays for the move later."""
    longest: Duration = Duration(24 * 3600)
    """The longest time that it stays because of its last move."""
    no_return: Duration = Duration(48 * 3600)
    """The time for which no pod of a controller is moved to a node that one of its pods was moved off."""


def refuse_resting(
    row: PodRow, history: EvictionHistory | None, memory: PlanMemory, settings: RestSettings, *, now: float
) -> Refused | None:
    """Tell why a pod stays: its last move has not paid back yet."""
    until = max([memory.find_rest(row) or now, *_end_rests(row, history, settings)])
    if until <= now:
        return None
    return Refused(
        _RULE, f"its last move has not paid back yet: the pod stays until {write_time(until)}", until
    )


def find_rest(worth: Worth, settings: RestSettings) -> float:
    """Tell how long a move takes to pay back, in seconds: a gain pays for as much cost in the least time."""
    gain = max(worth.gain * worth.lasting, 1e-9)
    return min(settings.least * max((worth.cost + worth.risk) / gain, 1.0), settings.longest)


def _end_rests(row: PodRow, history: EvictionHistory | None, settings: RestSettings) -> list[float]:
    """Tell until when moves that may have brought the pod here keep it."""
    past = (history.status.past or ()) if history else ()
    return [
        closing_time(move) + settings.least
        for move in past
        if move.landed_on == row.node and row.created >= instant(move.evicted_at) - 1
    ]
