"""Replicas by cluster: how many of them move, and whether they are ready."""

from collections.abc import Collection, Iterable

import msgspec

from federation.api import AggregatedStatus, ResourceBinding, TargetCluster
from reberth.values.text_limits import UNREADABLE

# Kinds whose status always has availableReplicas, or means 0 by leaving it out.
_COUNTED = ("Deployment", "StatefulSet", "ReplicaSet")
_HEALTHY, _UNHEALTHY = "Healthy", "Unhealthy"


class _Counts(msgspec.Struct, frozen=True, rename="camel"):
    available_replicas: int | None = None
    ready_replicas: int | None = None


def count_moved(origin: Iterable[TargetCluster], to: Iterable[TargetCluster]) -> int:
    """Count the replicas in clusters where they were not before."""
    had = {each.name: each.replicas for each in origin}
    return sum(max(0, each.replicas - had.get(each.name, 0)) for each in to)


def count_all(clusters: Iterable[TargetCluster]) -> int:
    return sum(each.replicas for each in clusters)


def write_replicas(clusters: Iterable[TargetCluster]) -> str:
    """Write them as {member1:2, member2:1}."""
    return f"{{{', '.join(f'{each.name}:{each.replicas}' for each in clusters)}}}"


def is_ready(binding: ResourceBinding) -> bool:
    """Tell whether every cluster of the binding has its replicas applied, healthy and available."""
    return are_ready(binding, binding.spec.clusters or ())


def are_ready(binding: ResourceBinding, clusters: Collection[TargetCluster]) -> bool:
    """Tell whether these clusters have so many replicas applied, healthy and available; none have not."""
    copies = {each.cluster_name: each for each in binding.status.aggregated_status or ()}
    return bool(clusters) and all(
        _is_well(binding, copies.get(each.name), each.replicas) for each in clusters
    )


def are_dead(binding: ResourceBinding, clusters: Iterable[TargetCluster]) -> bool:
    """Tell whether it is known of each of these clusters that nothing works there."""
    copies = {each.cluster_name: each for each in binding.status.aggregated_status or ()}
    return all((copy := copies.get(each.name)) is not None and _is_dead(binding, copy) for each in clusters)


def _is_dead(binding: ResourceBinding, copy: AggregatedStatus) -> bool:
    if not copy.applied:
        return True
    is_counted = binding.spec.resource.kind in _COUNTED
    return count_available(copy) == 0 if is_counted else copy.health == _UNHEALTHY


def _is_well(binding: ResourceBinding, copy: AggregatedStatus | None, replicas: int) -> bool:
    if copy is None or not copy.applied or copy.health != _HEALTHY:
        return False
    return has_available(binding, copy, replicas)


def has_available(binding: ResourceBinding, copy: AggregatedStatus, replicas: int) -> bool:
    """Tell whether a copy has so many replicas available, as far as its kind tells it.

    A copy that is to grow says for a while longer that it is Healthy, at its old size.
    """
    if binding.spec.resource.kind in _COUNTED:
        return count_available(copy) >= replicas
    counts = _read_counts(copy)
    told = counts.ready_replicas if counts.available_replicas is None else counts.available_replicas
    return told is None or told >= replicas


def count_available(copy: AggregatedStatus) -> int:
    """Read availableReplicas; a copy that has not reported yet has none."""
    return _read_counts(copy).available_replicas or 0


def _read_counts(copy: AggregatedStatus) -> _Counts:
    try:
        return msgspec.json.decode(copy.status, type=_Counts) if bytes(copy.status) else _Counts()
    except UNREADABLE:
        return _Counts()
