"""Evictions of one binding: those that begin now or later, and those that may end."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec.structs import replace

from federation.api import AggregatedStatus, Cluster, GracefulEvictionTask, ResourceBinding
from federation.failover.eviction_causes import EvictionCause, EvictionCauses
from federation.failover.eviction_tasks import Assessment, Lasts, Patience, make_task, review_tasks
from federation.membership.cluster_status import is_member_ready
from federation.objects.resources import HeldWork
from federation.propagation.aggregation import read_copies
from federation.propagation.schedule_result import is_scheduled_by_us
from reberth.values.timestamp import parse_time

FindCluster = Callable[[str], Cluster | None]


def list_evictions(
    binding: ResourceBinding, find: FindCluster, causes: EvictionCauses
) -> Iterator[tuple[EvictionCause, GracefulEvictionTask]]:
    """Yield the causes to evict the workload, now or later, with the task of each."""
    if not is_scheduled_by_us(binding):
        return
    for target in binding.spec.clusters or ():
        cluster = find(target.name)
        cause = causes.find(binding, cluster) if cluster else None
        if cause is None:
            continue
        task = make_task(binding, target.name, reason=cause.reason, message=cause.message)
        if task is not None:
            yield cause, task


def find_release(cluster: Cluster, *, let_go_after: float, last_turn: float) -> float:
    """Return when a Cluster that is deleted lets go of workloads that have no other one.

    `last_turn` is when the last one had its turn to leave, inf if that is still to come. Raises TimeError.
    """
    return max(parse_time(cluster.metadata.deletion_timestamp or ""), last_turn) + let_go_after


def assess_evictions(
    binding: ResourceBinding,
    works: Mapping[str, HeldWork],
    clusters: Iterable[Cluster],
    causes: EvictionCauses,
    *,
    patience: Patience,
    now: float,
    lasts: Lasts = bool,
) -> Assessment:
    """Sort the tasks of a binding; `clusters` are those that it is in and those that it leaves.

    Copies that are healthy replace nothing until that `lasts`.
    """
    clusters = list(clusters)
    newest = replace(binding.status, aggregated_status=_read_newest(binding, works))
    return review_tasks(
        replace(binding, status=newest),
        ready={each.metadata.name for each in clusters if is_member_ready(each)},
        calm={each.metadata.name for each in clusters if causes.find(binding, each) is None},
        patience=patience,
        now=now,
        lasts=lasts,
    )


def _read_newest(binding: ResourceBinding, works: Mapping[str, HeldWork]) -> tuple[AggregatedStatus, ...]:
    """Read the copies from the Works: the binding may still show one that was in the same place before.

    A copy that is being deleted has not left its member yet, but replaces no other one.
    """
    targets = {each.name for each in binding.spec.clusters or ()}
    return read_copies(
        {
            name: one
            for name, one in works.items()
            if one.metadata.deletion_timestamp is None or name not in targets
        }
    )


def list_concerned(binding: ResourceBinding) -> set[str]:
    """List the clusters that a workload leaves and those that it is in."""
    leaving = {task.from_cluster for task in binding.spec.graceful_eviction_tasks or ()}
    return leaving | {target.name for target in binding.spec.clusters or ()}
