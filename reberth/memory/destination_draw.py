"""How the next pod of a controller is drawn to the destinations of an open move.

Replicas are alike: which of them is "the replacement" nobody can say, nor need to. So the open moves of a
controller stand in a row by the time they were planned, its unbound pods in another, and each pod is drawn by
the move opposite to it. A move leaves its row when a pod that may be its replacement is bound. A pod beyond
the row is drawn by nothing. The answer depends on the objects alone: every reader that has seen the same ones
gives the same.

Unbound pods stand in their row as kube-scheduler takes them from its queue: by the version at which each came
or last failed. Were it another row, the first pod to be asked about might be a later one, drawn by nothing;
bound somewhere, it would be taken for the replacement, and nobody would be drawn at all. Births do not tell
that row, they are cut to the second.
"""

import math
from collections.abc import Collection, Iterable
from typing import NamedTuple

from reberth.cluster.rows import PodRow
from reberth.memory.backoff import instant
from reberth.memory.history import is_expired
from reberth.records import ObjectMeta, OpenMove, Phase

UNSTORED = math.inf
"""The version of a pod that is yet to be made: it will be the last in the row."""


class Replica(NamedTuple):
    """A pod of some controller, as far as a draw depends on it."""

    created_at: float
    uid: str
    version: float = UNSTORED
    bound: bool = False
    waiting: bool = False  # for the scheduler: not bound, terminating or finished


def replica_of(row: PodRow) -> Replica:
    """Tell of a mirrored pod what a draw depends on."""
    waiting = row.node is None and not (row.is_terminating or row.is_finished)
    return Replica(row.created, row.uid, row.version, bound=row.node is not None, waiting=waiting)


def asking_replica(pod: ObjectMeta) -> Replica:
    """Tell the same of a pod that is asked about: it waits, whatever the mirror says."""
    version = pod.resource_version
    stored = version.isdecimal() and version.isascii()
    return Replica(
        instant(pod.creation_timestamp), pod.uid, float(version) if stored else UNSTORED, waiting=True
    )


def draw(
    asked: Replica, moves: Iterable[OpenMove], replicas: Collection[Replica], *, now: float
) -> OpenMove | None:
    """Give the move that draws the asked pod.

    Moves and replicas are those of its controller.
    """
    untaken = list_untaken(moves, replicas, now=now, waiting_uid=asked.uid)
    waiting = [other for other in replicas if other.waiting and other.uid != asked.uid]
    rank = sum(_turn(other) < _turn(asked) for other in waiting)
    return untaken[rank] if rank < len(untaken) else None


def list_untaken(
    moves: Iterable[OpenMove], replicas: Iterable[Replica], *, now: float, waiting_uid: str = ""
) -> list[OpenMove]:
    """Give the moves that still wait for a replacement, in their row."""
    row = sorted((move for move in moves if _draws(move, now)), key=_planned)
    earliest = _earliest_birth(row[0]) if row else math.inf
    young = [one for one in replicas if one.bound and one.created_at > earliest]
    bound = sorted((one for one in young if one.uid != waiting_uid), key=_age)
    untaken = []
    for move in row:
        replacement = next((replica for replica in bound if _may_replace(replica, move)), None)
        if replacement:
            bound.remove(replacement)
        else:
            untaken.append(move)
    return untaken


def _planned(move: OpenMove) -> tuple[float, str]:
    return instant(move.planned_at), move.id


def _draws(move: OpenMove, now: float) -> bool:
    return move.phase != Phase.PLANNED and not is_expired(move, now)


def _may_replace(replica: Replica, move: OpenMove) -> bool:
    """Tell apart the moved pod itself: it may have been born in the second of the plan."""
    return replica.created_at > _earliest_birth(move) and replica.uid != move.pod_uid


def _earliest_birth(move: OpenMove) -> float:
    """Births are cut to the second: one in the second of the plan may have come after it."""
    return instant(move.planned_at) - 1


def _turn(replica: Replica) -> tuple[float, float, str]:
    return replica.version, *_age(replica)


def _age(replica: Replica) -> tuple[float, str]:
    return replica.created_at, replica.uid
