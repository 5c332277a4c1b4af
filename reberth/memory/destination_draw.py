"""Matches the unbound pods of a controller with its open moves, whose destinations draw them.

Replicas are alike: it is neither possible nor necessary to know which pod is "the replacement". So the open
moves of a controller are sorted by the time they were planned, its unbound pods by their place in the
scheduler's queue, and the n-th pod is drawn by the n-th move. A move leaves the queue when a pod that may be
its replacement is bound, and returns to it if that pod fails or is deleted. If there are more pods than
moves, nothing draws the rest. The result depends only on the objects: every reader that has seen the same
objects gets the same result.

Unbound pods are sorted in the order in which kube-scheduler takes them from its queue: by the version at
which each was created or last failed. In another order, the first pod that the scheduler asks about could be
one that no move draws; once bound somewhere, it would be taken for the replacement, and no pod would be drawn
at all. Creation times do not give that order, because they are truncated to seconds.
"""

import math
from collections.abc import Collection, Iterable
from typing import NamedTuple

from reberth.cluster.rows import PodRow
from reberth.memory.backoff import instant
from reberth.memory.history import is_expired
from reberth.memory.replacements import earliest_birth, is_alive, may_replace
from reberth.records import ObjectMeta, OpenMove, Phase

UNSTORED = math.inf
"""The version of a pod that is not created yet: it sorts last."""


class Replica(NamedTuple):
    """The fields of a pod that the draw depends on."""

    created_at: float
    uid: str
    version: float = UNSTORED
    bound: bool = False
    waiting: bool = False  # in the scheduler's queue: not bound, terminating or finished


def replica_of(row: PodRow) -> Replica:
    """Make the replica of a cached pod."""
    waiting = row.node is None and not (row.is_terminating or row.is_finished)
    bound = row.node is not None and is_alive(row)
    return Replica(row.created, row.uid, row.version, bound=bound, waiting=waiting)


def asking_replica(pod: ObjectMeta) -> Replica:
    """Make the replica of the pod that the scheduler asks about: it waits, whatever is cached of it."""
    version = pod.resource_version
    stored = version.isdecimal() and version.isascii()
    return Replica(
        instant(pod.creation_timestamp), pod.uid, float(version) if stored else UNSTORED, waiting=True
    )


def draw(
    asked: Replica, moves: Iterable[OpenMove], replicas: Collection[Replica], *, now: float
) -> OpenMove | None:
    """Give the move that draws the asked pod.

    Moves and replicas must belong to its controller.
    """
    untaken = list_untaken(moves, replicas, now=now, waiting_uid=asked.uid)
    waiting = [other for other in replicas if other.waiting and other.uid != asked.uid]
    rank = sum(_turn(other) < _turn(asked) for other in waiting)
    return untaken[rank] if rank < len(untaken) else None


def list_untaken(
    moves: Iterable[OpenMove], replicas: Iterable[Replica], *, now: float, waiting_uid: str = ""
) -> list[OpenMove]:
    """List the moves that still wait for a replacement, in the order in which they were planned."""
    row = sorted((move for move in moves if _draws(move, now)), key=_planned)
    earliest = earliest_birth(row[0]) if row else math.inf
    young = [one for one in replicas if one.bound and one.created_at > earliest]
    bound = sorted((one for one in young if one.uid != waiting_uid), key=_age)
    untaken = []
    for move in row:
        replacement = next((one for one in bound if may_replace(move, one.uid, one.created_at)), None)
        if replacement:
            bound.remove(replacement)
        else:
            untaken.append(move)
    return untaken


def _planned(move: OpenMove) -> tuple[float, str]:
    return instant(move.planned_at), move.id


def _draws(move: OpenMove, now: float) -> bool:
    return move.phase != Phase.PLANNED and not is_expired(move, now)


def _turn(replica: Replica) -> tuple[float, float, str]:
    return replica.version, *_age(replica)


def _age(replica: Replica) -> tuple[float, str]:
    return replica.created_at, replica.uid
