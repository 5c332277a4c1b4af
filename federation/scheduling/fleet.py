"""The member clusters as the scheduler sees them, with cached answers to the questions of its plugins.

Thousands of bindings have few different placements and requests. So an answer is kept as a column with one
value for each cluster, and the next binding with the same question reuses it. Room changes with every
decision; it is kept apart, so that the other columns stay valid. It is what remains of the sums that a
cluster reports of its nodes.
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
    """The free amount of each resource, in nanos; pods are a resource like the others."""

    free: dict[str, int] = {}


def read_room(summary: ResourceSummary | None) -> Room:
    """Subtract the requests of running and of pending pods from the allocatable. Raises QuantityError."""
    if summary is None:
        return Room()
    free = {name: nanos(amount) for name, amount in (summary.allocatable or {}).items()}
    for taken in (summary.allocated, summary.allocating):
        for name, amount in (taken or {}).items():
            free[name] = free.get(name, 0) - nanos(amount)
    return Room(free)


def read_request(asked: Quantities | None) -> Request:
    """Read the resource request of one replica. Raises QuantityError."""
    return tuple(sorted((name, nanos(amount)) for name, amount in (asked or {}).items()))


def take(room: Room, taken: Mapping[str, int]) -> Room:
    """Return the room that is left after reservations that the cluster does not report yet."""
    return Room({name: free - taken.get(name, 0) for name, free in room.free.items()})


def estimate(room: Room, request: Request) -> int:
    """Count the replicas that fit; of a resource that a cluster does not report it has none."""
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
    """What decisions need to know of one cluster, apart from its room."""

    name: str
    labels: Labels
    provider: str
    region: str
    zones: tuple[str, ...]
    taints: tuple[Taint, ...]
    apis: frozenset[tuple[str, str]]
    is_leaving: bool

    def fields(self, name: str) -> tuple[str, ...]:
        """Return the values of a field: provider, region or zone."""
        if name == "zone":
            return self.zones
        value = self.provider if name == "provider" else self.region
        return (value,) if value else ()


class _MemberEntry(NamedTuple):
    """One cluster, what was read from it, and what could not be."""

    cluster: Cluster
    member: Member
    room: Room
    fault: ObjectError | None


class Fleet:
    """All clusters by name, and the cached columns of answers about them."""

    def __init__(self, clusters: Iterable[Cluster], *, before: "Fleet | None" = None) -> None:
        """Read the clusters; of two with the same name the later one counts.

        A cluster that has not changed since `before` is not read again. One whose summary cannot be read has
        no room.
        """
        known = before._entries if before else {}  # noqa: SLF001 - the same class
        entries = {each.metadata.name: _enter(each, known.get(each.metadata.name)) for each in clusters}
        self._entries: dict[str, _MemberEntry] = {name: entries[name] for name in sorted(entries)}
        self.members = tuple(entry.member for entry in self._entries.values())
        self.rooms = tuple(entry.room for entry in self._entries.values())
        self.faults = tuple(entry.fault for entry in self._entries.values() if entry.fault)
        self.places = {member.name: place for place, member in enumerate(self.members)}
        self._columns: dict[tuple[Any, Hashable], tuple[Any, ...]] = {}
        self._estimates: dict[Request, tuple[int, ...]] = {}

    def less(self, taken: Mapping[str, Mapping[str, int]]) -> Self:
        """Return the same clusters with these amounts taken off their room; the other columns are shared."""
        if not any(taken.get(name) for name in self.places):
            return self
        fleet = copy.copy(self)
        fleet.rooms = tuple(
            take(room, taken[name]) if taken.get(name) else room
            for name, room in zip(self.places, self.rooms, strict=True)
        )
        fleet._estimates = {}  # noqa: SLF001 - the same class
        return fleet

    def column(self, question: Callable[[Member, About], Answer], about: About) -> tuple[Answer, ...]:
        """Ask every cluster, in the order of their names; the answer must depend on nothing else."""
        key = (question, about)
        if key not in self._columns:
            self._columns[key] = tuple(question(member, about) for member in self.members)
        return self._columns[key]

    def estimate(self, request: Request) -> tuple[int, ...]:
        """Return for each cluster the number of replicas with this request that fit."""
        if request not in self._estimates:
            self._estimates[request] = tuple(estimate(room, request) for room in self.rooms)
        return self._estimates[request]


def _enter(cluster: Cluster, known: _MemberEntry | None) -> _MemberEntry:
    if known is not None and known.cluster is cluster:
        return known
    try:
        return _MemberEntry(cluster, _read(cluster), read_room(cluster.status.resource_summary), None)
    except QuantityError as error:
        fault = ObjectError("Cluster", cluster.metadata, field="status.resourceSummary", reason=str(error))
        return _MemberEntry(cluster, _read(cluster), Room(), fault)


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
