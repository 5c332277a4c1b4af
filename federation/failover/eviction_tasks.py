"""Graceful eviction tasks of a binding: which cluster a workload leaves, and when its old copy may go.

A task is created while its cluster is still in spec.clusters. The scheduler removes the cluster when it
assigns the replacement, and only then the grace period starts. So a workload for which there is no other
cluster stays where it is.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from federation.api import GracefulEvictionTask, OnGraceEnd, PurgeMode, ResourceBinding, TargetCluster
from federation.api.eviction_blocks import read_application_failover
from federation.failover.eviction_history import APPLICATION_FAILURE
from federation.failover.state_preservation import read_state
from federation.objects.conditions import find_condition, put_condition
from federation.objects.health import HEALTHY
from federation.objects.template import Object
from federation.rebalancing.replicas import count_available, has_available
from reberth.records import Condition
from reberth.values.text_limits import cut
from reberth.values.timestamp import parse_time, write_time

PRODUCER = "taint-manager"
UNTOLERATED, LEAVING = "TaintUntolerated", "ClusterTerminating"

FAILOVER, MEMBER_LOST, _CALM = "Failover", "MemberLost", "Calm"
_LOST_TEXT = (
    "{members} cannot be reached. The purge mode is Directly: no new copy is made before the old one is gone,"
    " or the time fenceAfter is over."
)

Tasks = tuple[GracefulEvictionTask, ...]
Lasts = Callable[[bool], bool]
"""Given whether all new copies are healthy now: tells whether they have been for long enough."""


class Patience(NamedTuple):
    """Seconds for which old copies stay: at most, and where a member that is purged directly is lost.

    Without `fence` that is until the member answers: nobody knows whether its copies still run.
    """

    timeout: float
    fence: float | None = None


class Assessment(NamedTuple):
    """The tasks that stay, those that have ended, and those that are withdrawn.

    `clusters` differ from the binding's if a workload returns; `due` is when the next grace period ends.
    `lost` are the members whose copies new ones wait for, although the members do not answer.
    """

    kept: Tasks
    ended: Tasks
    withdrawn: Tasks
    clusters: tuple[TargetCluster, ...]
    due: float | None
    lost: tuple[str, ...] = ()
    is_replaced: bool = False
    """Every new copy is healthy. Otherwise tasks have ended because their time was over, or by hand."""


def make_task(
    binding: ResourceBinding, cluster: str, *, reason: str, message: str
) -> GracefulEvictionTask | None:
    """Write the task that evicts a workload from a cluster; None if it is not there, or is evicted already.

    `failover.cluster` of the policy sets the purge mode and which state the replacement takes over.
    """
    target = next((each for each in binding.spec.clusters or () if each.name == cluster), None)
    if target is None or is_evicted(binding, cluster):
        return None
    failover = binding.spec.failover.cluster if binding.spec.failover else None
    state = read_state(binding, cluster, failover.state_preservation if failover else None)
    return GracefulEvictionTask(
        cluster,
        purge_mode=(failover.purge_mode if failover else None) or PurgeMode.GRACEFULLY,
        replicas=target.replicas or None,
        reason=reason,
        message=cut(message),
        producer=PRODUCER,
        preserved_label_state=state or None,
        clusters_before_failover=tuple(each.name for each in binding.spec.clusters or ()) if state else None,
    )


def review_tasks(
    binding: ResourceBinding,
    *,
    ready: Collection[str],
    calm: Collection[str],
    patience: Patience,
    now: float,
    lasts: Lasts = bool,
) -> Assessment:
    """Sort the tasks: which old copies may go, and which tasks have lost their cause.

    `ready` are the members whose reports count, `calm` those without a cause to evict the workload.
    """
    targets = binding.spec.clusters or ()
    is_replaced = lasts(_is_replaced(binding, ready))
    kept, ended, withdrawn = [], [], []
    for task in _tasks(binding):
        grace = _grace(task, patience, ready, binding)
        if _is_withdrawn(task, binding, calm, ready):
            withdrawn.append(task)
        elif _is_over(task, targets, grace, now=now, is_replaced=is_replaced):
            ended.append(task)
        else:
            kept.append(_start(task, targets, now))
    dues = (_find_due(task, targets, _grace(task, patience, ready, binding)) for task in kept)
    return Assessment(
        tuple(kept),
        tuple(ended),
        tuple(withdrawn),
        _return(targets, withdrawn),
        min(filter(None, dues), default=None),
        tuple(each.from_cluster for each in kept if _holds_back(each, binding, ready)),
        is_replaced,
    )


def write_tasks(binding: ResourceBinding, tasks: Iterable[GracefulEvictionTask]) -> Object:
    """Return the merge patch that sets the tasks of a binding."""
    return {
        "metadata": {"resourceVersion": binding.metadata.resource_version},
        "spec": {"gracefulEvictionTasks": [msgspec.to_builtins(task) for task in tasks] or None},
    }


def write_assessment(binding: ResourceBinding, found: Assessment) -> Object | None:
    """Return the merge patch of an assessment; None if nothing changes."""
    if found.kept == _tasks(binding):
        return None
    patch = write_tasks(binding, found.kept)
    if found.clusters != (binding.spec.clusters or ()):
        patch["spec"]["clusters"] = [
            {"name": target.name, "replicas": target.replicas} for target in found.clusters
        ]
    return patch


def change_failover_condition(binding: ResourceBinding, found: Assessment, *, now: float) -> Object | None:
    """Return the merge patch of the condition that says why no new copy is made; None if nothing changes."""
    known = find_condition(binding.status.conditions, FAILOVER)
    if not found.lost and (known is None or known.reason != MEMBER_LOST):
        return None
    members = ", ".join(found.lost)
    wanted = (
        Condition(FAILOVER, "False", MEMBER_LOST, _LOST_TEXT.format(members=members))
        if found.lost
        else Condition(FAILOVER, "True", _CALM, "Nothing holds it back.")
    )
    conditions = put_condition(binding.status.conditions, wanted, now=now)
    if conditions is None:
        return None
    version = binding.metadata.resource_version
    return {"metadata": {"resourceVersion": version}, "status": {"conditions": conditions}}


def add_tasks_for_leaving(
    binding: ResourceBinding, clusters: Iterable[TargetCluster], leaving: Collection[str]
) -> Tasks | None:
    """Return the tasks of a binding that loses clusters which are being deleted; None if it loses none.

    Their copies stay until the replacements are healthy.
    """
    dropped = {each.name for each in binding.spec.clusters or ()} - {each.name for each in clusters}
    new = [
        task
        for name in sorted(dropped.intersection(leaving))
        if (task := make_task(binding, name, reason=LEAVING, message="the cluster is being deleted"))
    ]
    return (*_tasks(binding), *new) if new else None


def concerns(binding: ResourceBinding, cluster: str) -> bool:
    """Tell whether a workload is in a cluster or still leaves it. Dependencies leave with their workload."""
    targets = {each.name for each in binding.spec.clusters or ()}
    leaving = {task.from_cluster for task in _tasks(binding) if not task.suppress_deletion}
    return binding.spec.placement is not None and cluster in targets | leaving


def is_evicted(binding: ResourceBinding, cluster: str) -> bool:
    """Tell whether the eviction of a workload from a cluster has begun."""
    return any(task.from_cluster == cluster for task in _tasks(binding))


def _tasks(binding: ResourceBinding) -> Tasks:
    return binding.spec.graceful_eviction_tasks or ()


def _is_target(task: GracefulEvictionTask, targets: Iterable[TargetCluster]) -> bool:
    return any(target.name == task.from_cluster for target in targets)


def _is_withdrawn(
    task: GracefulEvictionTask, binding: ResourceBinding, calm: Collection[str], ready: Collection[str]
) -> bool:
    """Tell whether a task is withdrawn: the workload has not left yet, or all its replacements are evicted.

    Tasks of other producers are never withdrawn.
    """
    if task.producer != PRODUCER or task.from_cluster not in calm:
        return False
    targets = binding.spec.clusters or ()
    if _is_target(task, targets):
        return True
    evicting = {each.from_cluster for each in _tasks(binding)}
    is_there = task.from_cluster in ready and task.purge_mode is not PurgeMode.DIRECTLY
    return is_there and bool(targets) and evicting.issuperset(target.name for target in targets)


def _is_over(
    task: GracefulEvictionTask,
    targets: Iterable[TargetCluster],
    grace: float | None,
    *,
    now: float,
    is_replaced: bool,
) -> bool:
    if _is_target(task, targets) or task.suppress_deletion:
        return False
    if task.suppress_deletion is False:
        return True
    if task.creation_timestamp is None:
        return False
    return is_replaced or (grace is not None and now > parse_time(task.creation_timestamp) + grace)


def _start(task: GracefulEvictionTask, targets: Iterable[TargetCluster], now: float) -> GracefulEvictionTask:
    """Start the grace period as soon as the cluster is no longer in spec.clusters."""
    if task.creation_timestamp is not None or _is_target(task, targets):
        return task
    return replace(task, creation_timestamp=write_time(now))


def _return(
    targets: tuple[TargetCluster, ...], withdrawn: Iterable[GracefulEvictionTask]
) -> tuple[TargetCluster, ...]:
    gone = [task for task in withdrawn if not _is_target(task, targets)]
    return (*targets, *(TargetCluster(task.from_cluster, task.replicas or 0) for task in gone))


def _holds_back(task: GracefulEvictionTask, binding: ResourceBinding, ready: Collection[str]) -> bool:
    """Tell whether new copies wait for an old one of which its lost member said last that it is there."""
    is_old = not _is_target(task, binding.spec.clusters or ())
    return is_old and _is_there(task, binding) and _is_fenced(task, ready)


def _is_there(task: GracefulEvictionTask, binding: ResourceBinding) -> bool:
    """Tell whether the cluster has a Work of the workload, be it one that is being deleted."""
    return any(each.cluster_name == task.from_cluster for each in binding.status.aggregated_status or ())


def _find_due(
    task: GracefulEvictionTask, targets: Iterable[TargetCluster], grace: float | None
) -> float | None:
    if grace is None or not task.creation_timestamp or task.suppress_deletion is not None:
        return None
    return None if _is_target(task, targets) else parse_time(task.creation_timestamp) + grace


def _grace(
    task: GracefulEvictionTask, patience: Patience, ready: Collection[str], binding: ResourceBinding
) -> float | None:
    """Return how long the task lasts; None for as long as its member does not answer, or the copy is better.

    No time ends it while a Ready member still has a copy that has to be gone before there is a new one.
    """
    if _is_fenced(task, ready):
        return patience.fence
    if task.purge_mode is PurgeMode.DIRECTLY and _is_there(task, binding):
        return None
    if _keeps_better(task, binding, ready):
        return None
    return patience.timeout if task.grace_period_seconds is None else task.grace_period_seconds


def _keeps_better(task: GracefulEvictionTask, binding: ResourceBinding, ready: Collection[str]) -> bool:
    """Tell whether the policy keeps copies that fail: more of them is available than was gained elsewhere."""
    said = read_application_failover(binding)
    if task.reason != APPLICATION_FAILURE or said is None or said.on_grace_end is OnGraceEnd.PURGE:
        return False
    found = {each.cluster_name: count_available(each) for each in binding.status.aggregated_status or ()}
    leaving = [each for each in _tasks(binding) if _makes_room(each, binding)]
    old = sum(found.get(each.from_cluster, 0) for each in leaving)
    return found.get(task.from_cluster, 0) > 0 and old > _count_gain(task, leaving, binding, found, ready)


def _makes_room(task: GracefulEvictionTask, binding: ResourceBinding) -> bool:
    is_open = task.reason == APPLICATION_FAILURE and task.suppress_deletion is None
    return is_open and not _is_target(task, binding.spec.clusters or ())


def _count_gain(
    task: GracefulEvictionTask,
    leaving: Iterable[GracefulEvictionTask],
    binding: ResourceBinding,
    found: Mapping[str, int],
    ready: Collection[str],
) -> int:
    """Count what is available in new clusters, and in the others beyond what they had before.

    Nobody knows how many each of those had, but together it is all that did not have to leave.
    """
    targets, before = binding.spec.clusters or (), set(task.clusters_before_failover or ())
    had = max(0, sum(each.replicas for each in targets) - sum(each.replicas or 0 for each in leaving))
    there = {each.name: found.get(each.name, 0) for each in targets if each.name in ready}
    new = sum(count for name, count in there.items() if name not in before)
    return new + max(0, sum(there.values()) - new - had)


def _is_fenced(task: GracefulEvictionTask, ready: Collection[str]) -> bool:
    """Tell whether the copy must be gone before there is a new one, and its member cannot say so."""
    return task.purge_mode is PurgeMode.DIRECTLY and task.from_cluster not in ready


def _is_replaced(binding: ResourceBinding, ready: Collection[str]) -> bool:
    """Tell whether all copies of the newest decision are healthy, in members that are Ready."""
    if binding.status.scheduler_observed_generation != binding.metadata.generation:
        return False
    targets = binding.spec.clusters or ()
    return bool(targets) and all(target.name in ready and _is_healthy(binding, target) for target in targets)


def _is_healthy(binding: ResourceBinding, target: TargetCluster) -> bool:
    copies = (each for each in binding.status.aggregated_status or () if each.cluster_name == target.name)
    copy = next(copies, None)
    if copy is None or not copy.applied or copy.health != HEALTHY:
        return False
    return has_available(binding, copy, target.replicas)
