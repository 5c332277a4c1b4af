"""The outcome of a move: which pod is the replacement, where it landed, when it was Ready, and the report.

Replicas are interchangeable, so the replacement is the first pod that may be it (`memory/replacements.py`)
and that no earlier move of the controller has as its own. The extender uses the same rule to decide whether a
draw is used; with another rule the two would disagree about where the replacement was sent.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from reberth.cluster.node_lifecycle import judge_node
from reberth.cluster.rows import PodRow
from reberth.memory.backoff import instant
from reberth.memory.history import Ending, end_readiness, is_evicted
from reberth.memory.replacements import is_alive, may_replace
from reberth.records import (
    Node,
    OpenMove,
    Outcome,
    Owner,
    ReplicationController,
)
from reberth.values.refusal import Refused
from rescheduler.model.plan import LandingScores
from rescheduler.model.refusal_memory import KnownRefusal

SAME_WITHIN = 20
"""Points of kube-scheduler's total within which two nodes count as equally good."""

# Why a replacement landed outside of the move's destinations.
UNDRAWN = "undrawn"


CAUSES = frozenset({UNDRAWN, "leaving", "returned", "unexplained"})


class Landing(NamedTuple):
    """Whether a replacement landed on a destination of its move, and if not, the cause if it is known."""

    as_forecast: bool
    cause: str | None = None


class MoveReport(msgspec.Struct, frozen=True):
    """How a move ended. Unless it was refused, its pod was evicted."""

    entry: OpenMove
    ending: Ending
    refused: Refused | None = None
    landing: Landing | None = None
    remembered: KnownRefusal | None = None  # as the history has it

    @property
    def move(self) -> str:
        return self.entry.id

    @property
    def is_well(self) -> bool:
        """Whether the pod was moved and nothing is known to have become worse."""
        return self.refused is None and self.ending.is_well

    def __str__(self) -> str:
        if self.refused:
            return f"refused: {self.refused.rule}: {self.refused.reason}"
        return str(self.ending)


class ControllerState(NamedTuple):
    """What the cache has of one controller: its pods, and its replicas if its kind has any."""

    pods: Sequence[PodRow]
    is_gone: bool = False
    replicas: int | None = None


def observe_controller(
    pods: Iterable[PodRow], move: OpenMove, owner: Owner | ReplicationController | None
) -> ControllerState:
    """Collect the pods of a move's controller; the owner is None if its kind is not cached."""
    theirs = [pod for pod in pods if _controller_uid(pod) == move.controller_uid]
    return ControllerState(theirs, replicas=owner.spec.replicas if owner else None)


def find_replacement(move: OpenMove, others: Iterable[OpenMove], pods: Iterable[PodRow]) -> PodRow | None:
    """Give the replacement of a move.

    `others` are open moves of the same controller. Those planned earlier choose first: otherwise two moves
    would report the same pod as their replacement.
    """
    free = sorted(filter(is_alive, pods), key=_landed_first)
    alive = {pod.uid for pod in free}
    earlier = [
        one for one in others if is_evicted(one, alive.__contains__) and _plan_order(one) < _plan_order(move)
    ]
    for one in sorted(earlier, key=_plan_order):
        taken = next((pod for pod in free if may_replace(one, pod.uid, pod.created)), None)
        if taken:
            free.remove(taken)
    return next((pod for pod in free if may_replace(move, pod.uid, pod.created)), None)


def judge_replacement(
    move: OpenMove,
    replacement: PodRow | None,
    sighting: ControllerState,
    *,
    scores: LandingScores | None,
    lasts: bool,
    is_over: bool,
) -> Ending | None:
    """Tell how the move ended; None: not known yet, unless the time of the move is over.

    `lasts` tells whether the replacement has been Ready for long enough.
    """
    if replacement is None:
        return _judge_absence(move, sighting, is_over=is_over)
    if replacement.node is None:
        pending = Ending(Outcome.PENDING, replacement_uid=replacement.uid)
        return pending if is_over else None
    # A pod of a Job may succeed before it was ever seen Ready.
    has_arrived = lasts or replacement.phase == "Succeeded"
    if not has_arrived and not is_over:
        return None
    return _judge_landing(move, replacement, scores, has_arrived=has_arrived)


def judge_landing(
    move: OpenMove, ending: Ending, *, extender: str, find: Callable[[str], Node | None]
) -> Landing | None:
    """Compare a landing with the destinations of its move; None: no replacement has landed.

    `find` returns a node as it is now.
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


def _judge_absence(move: OpenMove, sighting: ControllerState, *, is_over: bool) -> Ending | None:
    """No replacement will come if the controller is deleted, or already has all its replicas without one."""
    wanted = sighting.replicas
    living = [pod for pod in sighting.pods if is_alive(pod) and pod.uid != move.pod_uid]
    if sighting.is_gone or (wanted is not None and len(living) >= wanted):
        return Ending(Outcome.GONE)
    return Ending(Outcome.PENDING) if is_over else None


def _judge_landing(
    move: OpenMove, replacement: PodRow, scores: LandingScores | None, *, has_arrived: bool
) -> Ending:
    landed, ready = replacement.node, _time_to_ready(move, replacement)
    if landed == move.from_:
        return Ending(Outcome.RETURNED, landed, time_to_ready=ready)
    if not has_arrived:
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


def _landed_first(pod: PodRow) -> tuple[bool, float, str]:
    """Sort key: bound pods first, since a replacement that has landed is the one to judge."""
    return pod.node is None, pod.created, pod.uid


def _plan_order(move: OpenMove) -> tuple[float, str]:
    return instant(move.planned_at), move.id


def find_deadline(move: OpenMove, *, has_landed: bool) -> float:
    """Tell until when an outcome is awaited: a replacement that has a node may take longer to be Ready."""
    return end_readiness(move) if has_landed else instant(move.expires_at)


def _is_open(node: Node | None) -> bool:
    return node is not None and judge_node(node) is None
