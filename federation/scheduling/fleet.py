"""The member clusters as the scheduler sees them: read once, then asked a few questions again and again.

Thousands of bindings have few different placements and requests. An answer is kept as a column, one value
for each cluster, and the next binding with the same question finds it there. Room changes with every
decision: it stands apart, so that all other answers outlive it.
"""

import copy
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, NamedTuple, Self, TypeVar

import msgspec

from federation.api import Cluster, ResourceSummary
from reberth.records import Labels, Quantities, Taint
from reberth.values.object_error import ObjectError
from reberth.values.quantity import MILLI, UNIT, QuantityError, nanos, round_up

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


About = TypeVar("About", bound=Hashable)
Answer = TypeVar("Answer")

_KEEPING_AWAY = {"NoSchedule", "NoExecute"}


class Member(msgspec.Struct, frozen=True, eq=False):
    """What decisions need to know of one cluster, but for its room."""

    name: str
    labels: Labels
    provider: str
    region: str
    zones: tuple[str, ...]
    taints: tuple[Taint, ...]
    apis: frozenset[tuple[str, str]]
    is_leaving: bool

    def fields(self, name: str) -> tuple[str, ...]:
        """Give what stands in the field: provider, region or zone."""
        if name == "zone":
            return self.zones
        value = self.provider if name == "provider" else self.region
        return (value,) if value else ()


class _MemberEntry(NamedTuple):
    """One cluster, and what was read of it."""

    cluster: Cluster
    member: Member
    room: Room


class Fleet:
    """All clusters by name, and the columns of answers about them."""

    def __init__(self, clusters: Iterable[Cluster], *, before: "Fleet | None" = None) -> None:
        """Read the clusters; of two of one name the later counts. Raises ObjectError.

        What was read `before` of a cluster that has not changed since is not read again.
        """
        known = before._entries if before else {}  # noqa: SLF001 - it is of this class
        entries = {each.metadata.name: _enter(each, known.get(each.metadata.name)) for each in clusters}
        self._entries: dict[str, _MemberEntry] = {name: entries[name] for name in sorted(entries)}
        self.members = tuple(entry.member for entry in self._entries.values())
        self.rooms = tuple(entry.room for entry in self._entries.values())
        self.places = {member.name: place for place, member in enumerate(self.members)}
        self._columns: dict[tuple[Any, Hashable], tuple[Any, ...]] = {}
        self._estimates: dict[Request, tuple[int, ...]] = {}

    def less(self, taken: Mapping[str, Mapping[str, int]]) -> Self:
        """Give the same clusters with so much less room, by their names; all other answers stand."""
        if not any(taken.get(name) for name in self.places):
            return self
        fleet = copy.copy(self)
        fleet.rooms = tuple(
            take(room, taken[name]) if taken.get(name) else room
            for name, room in zip(self.places, self.rooms, strict=True)
        )
        fleet._estimates = {}  # noqa: SLF001 - it is of this class
        return fleet

    def column(self, question: Callable[[Member, About], Answer], about: About) -> tuple[Answer, ...]:
        """Ask every cluster, in the order of their names; the question must have no other input."""
        key = (question, about)
        if key not in self._columns:
            self._columns[key] = tuple(question(member, about) for member in self.members)
        return self._columns[key]

    def estimate(self, request: Request) -> tuple[int, ...]:
        """Count for each cluster the replicas of this request that it has room for."""
        if request not in self._estimates:
            self._estimates[request] = tuple(estimate(room, request) for room in self.rooms)
        return self._estimates[request]

    def is_leaving(self, name: str) -> bool:
        place = self.places.get(name)
        return place is not None and self.members[place].is_leaving


def _enter(cluster: Cluster, known: _MemberEntry | None) -> _MemberEntry:
    if known is not None and known.cluster is cluster:
        return known
    return _MemberEntry(cluster, _read(cluster), _read_room(cluster))


def _read(cluster: Cluster) -> Member:
    spec = cluster.spec
    return Member(
        name=cluster.metadata.name,
        labels=cluster.metadata.labels or {},
        provider=spec.provider,
        region=spec.region,
        zones=spec.zones or ((spec.zone,) if spec.zone else ()),
        taints=tuple(taint for taint in spec.taints or () if taint.effect in _KEEPING_AWAY),
        apis=frozenset(
            (version.group_version, resource.kind)
            for version in cluster.status.api_enablements or ()
            for resource in version.resources or ()
        ),
        is_leaving=cluster.metadata.deletion_timestamp is not None,
    )


def _read_room(cluster: Cluster) -> Room:
    try:
        return read_room(cluster.status.resource_summary)
    except QuantityError as error:
        raise ObjectError(
            "Cluster", cluster.metadata, field="status.resourceSummary", reason=str(error)
        ) from error
