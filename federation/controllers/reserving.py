"""Room that is spoken for: replicas that were just given to a cluster, and that it does not report yet.

A member says what its pods take some moments after they are there. Until then what was decided is taken off
its room, or the next binding would be given the same. A reservation ends when the copy has been there for so
long that the cluster's report must hold it, when the replicas go elsewhere, or when its time is up.
"""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from federation.api import Cluster, ResourceBinding, ResourceSummary
from federation.controllers.keys import Key
from reberth.quantities import nanos, write_quantity
from reberth.records import Quantities

_PODS = "pods"


class Reservation(msgspec.Struct, frozen=True):
    """So many more replicas of a request, until that time."""

    replicas: int
    request: Quantities
    until: float


class Reservations:
    """What has been given, by binding and cluster."""

    def __init__(self, *, lasting: float, reported_within: float) -> None:
        self._lasting = lasting
        self._reported_within = reported_within
        self._held: dict[Key, dict[str, Reservation]] = {}

    def reserve(self, key: Key, binding: ResourceBinding, given: Mapping[str, int], *, now: float) -> None:
        """Hold what a decision gives beyond what the binding has."""
        had = {target.name: target.replicas for target in binding.spec.clusters or ()}
        needs = binding.spec.replica_requirements
        request = (needs.resource_request if needs else None) or {}
        held = self._held.get(key, {})
        more = {
            name: replicas - had.get(name, 0) + (held[name].replicas if name in held else 0)
            for name, replicas in given.items()
        }
        self._held[key] = {
            name: Reservation(count, request, now + self._lasting)
            for name, count in more.items()
            if count > 0
        }
        if not self._held[key]:
            del self._held[key]

    def observe(self, key: Key, binding: ResourceBinding | None, *, now: float) -> None:
        """Let go, soon, of what the members have carried out, and at once of what nobody wants any more."""
        held = self._held.get(key)
        if held is None:
            return
        if binding is None:
            del self._held[key]
            return
        there = {each.cluster_name for each in binding.status.aggregated_status or () if each.applied}
        soon = now + self._reported_within
        for name in there & held.keys():
            held[name] = replace(held[name], until=min(held[name].until, soon))

    def apply(self, clusters: Iterable[Cluster], *, now: float) -> list[Cluster]:
        """Give the clusters with what is held among what waits for a node."""
        self._forget(now)
        taken: dict[str, list[Reservation]] = {}
        for held in self._held.values():
            for name, one in held.items():
                taken.setdefault(name, []).append(one)
        return [_take(cluster, taken.get(cluster.metadata.name, ())) for cluster in clusters]

    def _forget(self, now: float) -> None:
        for key in list(self._held):
            self._held[key] = {name: one for name, one in self._held[key].items() if one.until > now}
            if not self._held[key]:
                del self._held[key]


def _take(cluster: Cluster, held: Iterable[Reservation]) -> Cluster:
    summary = cluster.status.resource_summary
    total: dict[str, int] = {}
    for one in held:
        for name, amount in {_PODS: 1, **one.request}.items():
            total[name] = total.get(name, 0) + one.replicas * nanos(amount)
    if summary is None or not total:
        return cluster
    return replace(cluster, status=replace(cluster.status, resource_summary=_add(summary, total)))


def _add(summary: ResourceSummary, total: Mapping[str, int]) -> ResourceSummary:
    waiting = dict(summary.allocating or {})
    for name, amount in total.items():
        waiting[name] = write_quantity(nanos(waiting.get(name, 0)) + amount)
    return replace(summary, allocating=waiting)
