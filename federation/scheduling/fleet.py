"""The member clusters as the scheduler sees them: read once, then asked a few questions again and again.

Thousands of bindings have few different placements and requests. An answer is kept as a column, one value
for each cluster, and the next binding with the same question finds it there.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

import msgspec

from federation.api import Cluster
from federation.scheduling.estimating import Room, read_room
from reberth.faults import ObjectError
from reberth.quantities import QuantityError
from reberth.records import Labels, Taint

About = TypeVar("About", bound=Hashable)
Answer = TypeVar("Answer")

_KEEPING_AWAY = {"NoSchedule", "NoExecute"}


class Member(msgspec.Struct, frozen=True, eq=False):
    """What decisions need to know of one cluster."""

    name: str
    labels: Labels
    provider: str
    region: str
    zones: tuple[str, ...]
    taints: tuple[Taint, ...]
    apis: frozenset[tuple[str, str]]
    room: Room
    is_leaving: bool

    def fields(self, name: str) -> tuple[str, ...]:
        """Give what stands in the field: provider, region or zone."""
        if name == "zone":
            return self.zones
        value = self.provider if name == "provider" else self.region
        return (value,) if value else ()


class Fleet:
    """All clusters by name, and the columns of answers about them."""

    def __init__(self, clusters: Iterable[Cluster]) -> None:
        """Read the clusters; of two of one name the later counts. Raises ObjectError."""
        named = {cluster.metadata.name: cluster for cluster in clusters}
        self.members = tuple(_read(named[name]) for name in sorted(named))
        self.places = {member.name: place for place, member in enumerate(self.members)}
        self._columns: dict[tuple[Any, Hashable], tuple[Any, ...]] = {}

    def column(self, question: Callable[[Member, About], Answer], about: About) -> tuple[Answer, ...]:
        """Ask every cluster, in the order of their names; the question must have no other input."""
        key = (question, about)
        if key not in self._columns:
            self._columns[key] = tuple(question(member, about) for member in self.members)
        return self._columns[key]

    def is_leaving(self, name: str) -> bool:
        place = self.places.get(name)
        return place is not None and self.members[place].is_leaving


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
        room=_read_room(cluster),
        is_leaving=cluster.metadata.deletion_timestamp is not None,
    )


def _read_room(cluster: Cluster) -> Room:
    try:
        return read_room(cluster.status.resource_summary)
    except QuantityError as error:
        raise ObjectError(
            "Cluster", cluster.metadata, field="status.resourceSummary", reason=str(error)
        ) from error
