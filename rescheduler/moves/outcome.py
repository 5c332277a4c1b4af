"""What became of a move: which pod is the replacement, where it landed, when it was Ready, and its report.

Replicas are alike: the replacement is the first pod of the same controller that was born since the plan, and
that no earlier move of it has for its own. The extender takes a draw as used by the same rule.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from reberth.cluster.node_lifecycle import judge_node
from reberth.cluster.rows import PodRow
from reberth.memory.backoff import instant
from reberth.memory.history import Ending
from reberth.records import (
    Node,
    OpenMove,
    Outcome,
    Owner,
    Phase,
    ReplicationController,
)
from reberth.values.refusal import Refused
from rescheduler.model.plan import LandingScores

SAME_WITHIN = 20

# Causes of a landing outside of the forecast.
UNDRAWN = "undrawn"


CAUSES = frozenset({UNDRAWN, "leaving", "returned", "unexplained"})


class Landing(NamedTuple):
    """Whether a replacement landed on a destination of its move; else the cause, as far as it is known."""

    as_forecast: bool
    cause: str | None = None


class MoveReport(msgspec.Struct, frozen=True):
    """How a move ended. Without a "no" its pod was evicted."""

    entry: OpenMove
    ending: Ending
    refused: Refused | None = None

    @property
    def move(self) -> str:
        return self.entry.id

    @property
    def is_well(self) -> bool:
        """The pod was moved, and nothing is known to be worse for it."""
        return self.refused is None and self.ending.is_well

    def __str__(self) -> str:
        if self.refused:
            return f"refused: {self.refused.rule}: {self.refused.reason}"
        return str(self.ending)


class ControllerState(NamedTuple):
    """What is seen of one controller: its pods, and itself if it is there and of a kind that has replicas."""

    pods: Sequence[PodRow]
    is_gone: bool = False
    replicas: int | None = None


def observe_controller(
    pods: Iterable[PodRow], move: OpenMove, owner: Owner | ReplicationController | None
) -> ControllerState:
    """Collect the pods of a move's controller; the owner is None if its kind is not mirrored."""
    theirs = [pod for pod in pods if _controller_uid(pod) == move.controller_uid]
    return ControllerState(theirs, replicas=owner.spec.replicas if owner else None)


def find_replacement(move: OpenMove, others: Iterable[OpenMove], pods: Iterable[PodRow]) -> PodRow | None:
    """Give the move's replacement.

    `others` are open moves of the same controller: those planned earlier choose first.
    """
    earlier = [one for one in others if one.phase == Phase.EVICTED and _planned(one) < _planned(move)]
    free = sorted(filter(_lives, pods), key=_standing)
    for one in sorted(earlier, key=_planned):
        taken = next((pod for pod in free if _may_replace(pod, one)), None)
        if taken:
            free.remove(taken)
    return next((pod for pod in free if _may_replace(pod, move)), None)


def judge_replacement(
    move: OpenMove,
    replacement: PodRow | None,
    sighting: ControllerState,
    *,
    scores: LandingScores | None,
    now: float,
) -> Ending | None:
    """Tell how the move ended; None: that is not known yet."""
    if replacement is None:
        return _judge_absence(move, sighting, now)
    if replacement.node is None:
        return Ending(Outcome.PENDING) if _is_over(move, now) else None
    if not _has_arrived(replacement) and not _is_over(move, now):
        return None
    return _judge_landing(move, replacement, scores)


def judge_landing(
    move: OpenMove, ending: Ending, *, extender: str, find: Callable[[str], Node | None]
) -> Landing | None:
    """Compare a landing with the destinations of its move; None: nothing has landed.

    `find` gives a node as it is now.
    """
    if ending.landed_on is None or ending.outcome is Outcome.REFUSED:
        return None
    if ending.landed_on in (move.destinations or ()):
        return Landing(as_forecast=True)
    if extender == "none":
        return Landing(as_forecast=False, cause=UNDRAWN)
    if not any(_is_open(find(name)) for name in move.destinations or ()):
        return Landing(as_forecast=False, cause="leaving")
    return Landing(as_forecast=False, cause="returned" if ending.landed_on == move.from_ else "unexplained")


def _judge_absence(move: OpenMove, sighting: ControllerState, now: float) -> Ending | None:
    """Nobody wants a replacement if the controller is gone, or has all the pods that it wants without one."""
    wanted = sighting.replicas
    living = [pod for pod in sighting.pods if _lives(pod) and pod.uid != move.pod_uid]
    if sighting.is_gone or (wanted is not None and len(living) >= wanted):
        return Ending(Outcome.GONE)
    return Ending(Outcome.PENDING) if _is_over(move, now) else None


def _judge_landing(move: OpenMove, replacement: PodRow, scores: LandingScores | None) -> Ending:
    landed, ready = replacement.node, _time_to_ready(move, replacement)
    if landed == move.from_:
        return Ending(Outcome.RETURNED, landed, time_to_ready=ready)
    if not _has_arrived(replacement):
        return Ending(Outcome.NOT_READY, landed)
    if scores is None:
        return Ending(Outcome.UNKNOWN, landed, time_to_ready=ready)
    return Ending(_compare(scores), landed, scores.before, scores.after, ready)


def _compare(scores: LandingScores) -> Outcome:
    if scores.before is None:
        return Outcome.BETTER
    gain = scores.after - scores.before
    if abs(gain) <= SAME_WITHIN:
        return Outcome.SAME
    return Outcome.BETTER if gain > 0 else Outcome.WORSE


def _time_to_ready(move: OpenMove, replacement: PodRow) -> float | None:
    if not replacement.is_ready or replacement.ready_changed is None:
        return None
    return max(0.0, replacement.ready_changed - instant(move.evicted_at))


def _controller_uid(pod: PodRow) -> str:
    return pod.template.controller.uid if pod.template.controller else ""


def _lives(pod: PodRow) -> bool:
    return not pod.is_terminating and pod.phase != "Failed"


def _has_arrived(pod: PodRow) -> bool:
    """A pod of a Job may be done before anybody has seen it Ready."""
    return pod.is_ready or pod.phase == "Succeeded"


def _may_replace(pod: PodRow, move: OpenMove) -> bool:
    """Births are cut to the second: one in the second of the plan may have come after it."""
    return pod.created > instant(move.planned_at) - 1 and pod.uid != move.pod_uid


def _standing(pod: PodRow) -> tuple[bool, float, str]:
    """Bound pods first: a replacement that has landed is the one."""
    return pod.node is None, pod.created, pod.uid


def _planned(move: OpenMove) -> tuple[float, str]:
    return instant(move.planned_at), move.id


def _is_over(move: OpenMove, now: float) -> bool:
    return now >= instant(move.expires_at)


def _is_open(node: Node | None) -> bool:
    return node is not None and judge_node(node) is None
