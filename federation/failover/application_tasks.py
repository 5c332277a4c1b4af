"""Eviction tasks of application failover: how a workload leaves a cluster where it fails, and returns.

Tasks, new clusters and history go out in one patch, so that a process that ends at any moment leaves either
nothing or all of it. A workload returns if its old copy is well again before the new ones are.
"""

from collections.abc import Collection, Iterable, Mapping

import msgspec
from msgspec.structs import replace

from federation.api import GracefulEvictionTask, PurgeMode, ResourceBinding, TargetCluster
from federation.api.bindings import NAMESPACED, kind_of
from federation.api.eviction_blocks import read_application_failover
from federation.failover.application_failover import CopyReport, CopyVerdict, ReadTime
from federation.failover.eviction_history import (
    APPLICATION_FAILURE,
    GiveUpRules,
    History,
    add_evictions,
    forget_evictions,
)
from federation.failover.health_clock import MOMENT
from federation.failover.state_preservation import read_state
from federation.objects.health import HEALTHY
from federation.objects.template import Object
from federation.rebalancing.triggers import last_scheduled
from federation.scheduling.demand import SCHEDULE_NOTE, write_note_at
from reberth.records import Labels
from reberth.values.timestamp import write_time

PRODUCER = "resource-binding-application-failover-controller"
CLUSTER_PRODUCER = "cluster-resource-binding-application-failover-controller"

Clusters = tuple[TargetCluster, ...]


def with_evictions(binding: ResourceBinding, due: Iterable[CopyVerdict], *, now: float) -> ResourceBinding:
    """Return the binding with the tasks by which it leaves these clusters."""
    had = binding.spec.graceful_eviction_tasks or ()
    new = tuple(task for each in due if (task := _make_task(binding, each, now)) is not None)
    return replace(binding, spec=replace(binding.spec, graceful_eviction_tasks=(*had, *new)))


def write_begin(
    evicted: ResourceBinding, due: Iterable[CopyVerdict], rules: GiveUpRules, change: Object, *, now: float
) -> Object:
    """Return the patch that begins evictions: `change` has the new clusters, decided with the tasks."""
    history = add_evictions(evicted, {each.cluster: each.fruitless for each in due}, rules, now=now)
    tasks = evicted.spec.graceful_eviction_tasks or ()
    spec = {
        "gracefulEvictionTasks": msgspec.to_builtins(tasks),
        **change.get("spec", {}),
        "activeEvictionHistory": msgspec.to_builtins(history),
    }
    return {**change, "spec": spec}


def write_history(binding: ResourceBinding, history: History) -> Object:
    return {
        "metadata": {"resourceVersion": binding.metadata.resource_version},
        "spec": {"activeEvictionHistory": msgspec.to_builtins(history) or None},
    }


def has_replacement(
    binding: ResourceBinding, new: Iterable[TargetCluster], evicted: Collection[str], *, is_divided: bool
) -> bool:
    """Tell whether they make up for the evicted ones: with all replicas, or with as many clusters more."""
    new = tuple(new)
    if any(each.name in evicted for each in new) or not new:
        return False
    if is_divided and binding.spec.replicas:
        return sum(each.replicas for each in new) >= binding.spec.replicas
    had = {each.name for each in binding.spec.clusters or ()}
    return len({each.name for each in new} - had) >= len(evicted)


def list_recovered(
    binding: ResourceBinding, copies: Mapping[str, CopyReport], *, now: float, read_time: ReadTime
) -> tuple[GracefulEvictionTask, ...]:
    """List the tasks of application failover whose old copies are well again, and that are not over yet.

    None while scheduling is suspended: the clusters are not to change.
    """
    if binding.spec.suspension and binding.spec.suspension.scheduling:
        return ()
    targets = {each.name for each in binding.spec.clusters or ()}
    return tuple(
        task
        for task in binding.spec.graceful_eviction_tasks or ()
        if is_application_task(task)
        and task.purge_mode is PurgeMode.GRACEFULLY
        and task.suppress_deletion is None
        and task.from_cluster not in targets
        and (copy := copies.get(task.from_cluster)) is not None
        and _is_well(copy, now, read_time)
    )


def write_return(
    binding: ResourceBinding,
    recovered: Collection[GracefulEvictionTask],
    *,
    is_divided: bool,
    now: float,
) -> Object:
    """Return the patch by which a workload returns to old copies, as a decision of the scheduler would."""
    clusters = binding.spec.clusters or ()
    for task in recovered:
        clusters = _give_back(clusters, task, is_divided=is_divided)
    names = {task.from_cluster for task in recovered}
    tasks = [task for task in binding.spec.graceful_eviction_tasks or () if task.from_cluster not in names]
    affinity = next(iter(recovered)).affinity_name
    at = max(now, last_scheduled(binding) or 0.0)
    return {
        "metadata": {
            "resourceVersion": binding.metadata.resource_version,
            "annotations": {SCHEDULE_NOTE: write_note_at(binding, at, affinity)},
        },
        "spec": {
            "clusters": [{"name": each.name, "replicas": each.replicas} for each in clusters],
            "gracefulEvictionTasks": msgspec.to_builtins(tasks) or None,
            "activeEvictionHistory": msgspec.to_builtins(forget_evictions(binding, names)) or None,
        },
    }


def is_application_task(task: GracefulEvictionTask) -> bool:
    return task.producer in {PRODUCER, CLUSTER_PRODUCER}


def read_preserved_state(binding: ResourceBinding, cluster: str) -> Labels:
    said = read_application_failover(binding)
    return read_state(binding, cluster, said.state_preservation if said else None)


def _make_task(binding: ResourceBinding, due: CopyVerdict, now: float) -> GracefulEvictionTask | None:
    said = read_application_failover(binding)
    target = next((each for each in binding.spec.clusters or () if each.name == due.cluster), None)
    if said is None or target is None:
        return None
    mode = said.purge_mode or PurgeMode.GRACEFULLY
    since = f" since {write_time(due.since)}" if due.since else ""
    return GracefulEvictionTask(
        due.cluster,
        purge_mode=mode,
        replicas=target.replicas or None,
        reason=APPLICATION_FAILURE,
        message=f"It fails in {due.cluster}{since}.",
        producer=PRODUCER if kind_of(binding) == NAMESPACED else CLUSTER_PRODUCER,
        grace_period_seconds=said.grace_period_seconds if mode is PurgeMode.GRACEFULLY else None,
        suppress_deletion=True if mode is PurgeMode.NEVER else None,
        creation_timestamp=write_time(now),
        preserved_label_state=read_preserved_state(binding, due.cluster) or None,
        clusters_before_failover=tuple(each.name for each in binding.spec.clusters or ()),
        affinity_name=binding.status.observed_affinity,
    )


def _is_well(copy: CopyReport, now: float, read_time: ReadTime) -> bool:
    """A copy that is Healthy for a moment only is no reason to return."""
    well = copy.clock.well
    if copy.health != HEALTHY or not copy.is_member_ready or well is None:
        return False
    return now >= read_time(well) + MOMENT


def _give_back(clusters: Clusters, task: GracefulEvictionTask, *, is_divided: bool) -> Clusters:
    """Give a cluster its replicas back: from clusters that are new since then, and then from the others."""
    before = set(task.clusters_before_failover or ())
    back = TargetCluster(task.from_cluster, task.replicas or 0)
    if not is_divided:
        return tuple(sorted((*(each for each in clusters if each.name in before), back), key=_name))
    rest, kept = back.replicas, []
    for each in sorted(clusters, key=lambda each: (each.name in before, each.name)):
        taken = min(rest, each.replicas)
        rest -= taken
        if each.replicas > taken or (each.name in before and taken == 0):
            kept.append(TargetCluster(each.name, each.replicas - taken))
    return tuple(sorted((*kept, back), key=_name))


def _name(target: TargetCluster) -> str:
    return target.name
