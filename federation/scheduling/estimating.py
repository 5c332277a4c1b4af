"""How many replicas a cluster has room for, by the sums that it reports of its nodes."""

from collections.abc import Mapping

import msgspec

from federation.api import ResourceSummary
from reberth.records import Quantities
from reberth.values.quantity import MILLI, UNIT, nanos, round_up

PODS = "pods"
MOST = 2**31 - 1
_CPU = "cpu"

Request = tuple[tuple[str, int], ...]


class Room(msgspec.Struct, frozen=True):
    """What is free of each resource, in nanos; pods are a resource like the others."""

    free: dict[str, int] = {}


def read_room(summary: ResourceSummary | None) -> Room:
    """Take what is taken and what waits for a node off what there is. Raises QuantityError."""
    if summary is None:
        return Room()
    free = {name: nanos(amount) for name, amount in (summary.allocatable or {}).items()}
    for taken in (summary.allocated, summary.allocating):
        for name, amount in (taken or {}).items():
            free[name] = free.get(name, 0) - nanos(amount)
    return Room(free)


def read_request(asked: Quantities | None) -> Request:
    """Read what one replica asks for. Raises QuantityError."""
    return tuple(sorted((name, nanos(amount)) for name, amount in (asked or {}).items()))


def take(room: Room, taken: Mapping[str, int]) -> Room:
    """Give the room that is left when so much is on its way that is not reported yet."""
    return Room({name: free - taken.get(name, 0) for name, free in room.free.items()})


def estimate(room: Room, request: Request) -> int:
    """Count the replicas that fit; what a cluster does not report it does not have."""
    replicas = min(max(0, room.free.get(PODS, 0) // UNIT), MOST)
    for name, asked in request:
        if asked > 0 and replicas:
            unit = MILLI if name == _CPU else UNIT
            free = max(0, round_up(room.free.get(name, 0), unit))
            replicas = min(replicas, free // round_up(asked, unit))
    return replicas
