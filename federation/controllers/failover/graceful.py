"""Ends graceful evictions: an old copy goes when its replacements are healthy, or after its grace period.

Watches bindings with eviction tasks, their Works, and Clusters. Writes spec.gracefulEvictionTasks,
spec.clusters if a task is withdrawn because its cause is gone, and the condition Failover where a lost member
holds a new copy back. Asks failover/eviction_tasks and failover/eviction_causes.
"""

from collections import Counter
from typing import Any

from msgspec.structs import replace

from federation.api import WORK_API_VERSION, AggregatedStatus, Cluster, GracefulEvictionTask, ResourceBinding
from federation.failover.eviction_causes import EvictionCauses
from federation.failover.eviction_tasks import (
    Assessment,
    Patience,
    change_failover_condition,
    review_tasks,
    write_assessment,
)
from federation.hub.hub import Hub, refer_to
from federation.hub.telemetry import failover_metrics as metrics
from federation.hub.work_index import WorkIndex
from federation.hub.workqueue import QueueSettings, WorkQueue
from federation.membership.cluster_status import is_member_ready
from federation.objects import resources
from federation.objects.names import Key, binding_of
from federation.propagation.aggregation import read_copies
from federation.propagation.binding import template_of
from reberth.cluster.kinds import Resource
from reberth.records import ObjectMeta
from reberth.values.duration import Duration

_SUCCEEDED, _WITHDRAWN = "EvictWorkloadFromClusterSucceed", "EvictWorkloadFromClusterWithdrawn"
_ACTION = "Evicting"


class GracefulSettings(QueueSettings, frozen=True):
    timeout: Duration = Duration(600)
    """Grace period of tasks without gracePeriodSeconds."""
    fence_after: Duration | None = None
    """When a copy in a lost member counts as gone if it is purged directly; if not set, never."""


class GracefulController:
    def __init__(
        self, hub: Hub, index: WorkIndex, causes: EvictionCauses, settings: GracefulSettings
    ) -> None:
        self._hub = hub
        self._index = index
        self._shapes: dict[str, object] = {}
        self._causes_of: dict[Key, Counter[str]] = {}
        self._under_way: Counter[str] = Counter()
        self._causes = causes
        self._settings = settings
        self._queue = WorkQueue("graceful", self._reconcile, settings)

    def on_change(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        if resource in resources.ALL_BINDINGS:
            self._on_binding(resources.key_of(resource, record), record)
        elif resource is resources.WORKS and (key := binding_of(record.metadata, WORK_API_VERSION)):
            binding = self._hub.find_binding(key)
            if binding is not None and binding.spec.graceful_eviction_tasks:
                self._queue.add(key)
        elif resource is resources.CLUSTERS:
            name = record.metadata.name
            shape = None if self._hub.find(resource, "", name) is None else _shape_of(record)
            if self._shapes.get(name) != shape:
                self._shapes[name] = shape
                self._queue_evicted(name)

    def _on_binding(self, key: Key, binding: ResourceBinding) -> None:
        if binding.spec.graceful_eviction_tasks or key in self._causes_of:
            self._count_tasks(key)
        if binding.spec.graceful_eviction_tasks:
            self._queue.add(key)

    async def run(self) -> None:
        await self._queue.run()

    def _queue_evicted(self, cluster: str) -> None:
        """The readiness and the taints of a member matter to the evictions from it and to it."""
        for key, binding in self._hub.list_bindings():
            if binding.spec.graceful_eviction_tasks and cluster in _list_concerned(binding):
                self._queue.add(key)

    async def _reconcile(self, key: Key) -> float | None:
        resource = resources.binding_resource(key.kind)
        binding = self._hub.find_binding(key)
        if binding is None or binding.metadata.deletion_timestamp is not None:
            return None
        named = (self._hub.find(resources.CLUSTERS, "", name) for name in _list_concerned(binding))
        clusters, now = [each for each in named if each is not None], self._hub.clock()
        newest = replace(binding.status, aggregated_status=self._read_copies(key, binding))
        found = review_tasks(
            replace(binding, status=newest),
            ready={each.metadata.name for each in clusters if is_member_ready(each)},
            calm={each.metadata.name for each in clusters if self._causes.find(binding, each) is None},
            patience=Patience(self._settings.timeout, self._settings.fence_after),
            now=now,
        )
        if change := write_assessment(binding, found):
            binding = await self._hub.patch(resource, binding, change)
        if status := change_failover_condition(binding, found, now=now):
            await self._hub.patch(resource, binding, status, subresource="status")
        self._count_ended(found)
        for task in found.ended:
            self._record(key, binding, _SUCCEEDED, f"Evict from cluster {task.from_cluster} succeed.")
        for task in found.withdrawn:
            self._record(key, binding, _WITHDRAWN, _explain(task))
        # A grace period is over after `due`, not at it, and times are whole seconds.
        return None if found.due is None else max(0.0, found.due - now) + 1

    def _read_copies(self, key: Key, binding: ResourceBinding) -> tuple[AggregatedStatus, ...]:
        """Read them from the Works: the binding may still show a copy that was in the same place before.

        A copy that is being deleted has not left its member yet, but replaces no other one.
        """
        targets = {each.name for each in binding.spec.clusters or ()}
        works = self._index.of(key).items()
        return read_copies(
            {
                name: one
                for name, one in works
                if one.metadata.deletion_timestamp is None or name not in targets
            }
        )

    def _count_ended(self, found: Assessment) -> None:
        for task in found.withdrawn:
            metrics.EVICTIONS.labels(metrics.name_cause(task.reason), metrics.WITHDRAWN).inc()
        for task in found.ended:
            by_time = metrics.REPLACED if found.is_replaced else metrics.TIMED_OUT
            outcome = metrics.ENDED_BY_HAND if task.suppress_deletion is False else by_time
            metrics.EVICTIONS.labels(metrics.name_cause(task.reason), outcome).inc()

    def _count_tasks(self, key: Key) -> None:
        """Count the evictions that are under way, with those of a binding that has changed."""
        binding = self._hub.find_binding(key)
        tasks = binding.spec.graceful_eviction_tasks or () if binding else ()
        self._under_way.subtract(self._causes_of.pop(key, Counter()))
        if tasks:
            self._causes_of[key] = Counter(metrics.name_cause(each.reason) for each in tasks)
            self._under_way.update(self._causes_of[key])
        for cause in metrics.CAUSES:
            metrics.EVICTING.labels(cause).set(self._under_way[cause])

    def _record(self, key: Key, binding: ResourceBinding, reason: str, note: str) -> None:
        template = refer_to(template_of(binding), ObjectMeta(uid=binding.spec.resource.uid))
        for regarding in (refer_to(key, binding.metadata), template):
            self._hub.recorder.record(regarding, reason=reason, note=note, action=_ACTION)


def _list_concerned(binding: ResourceBinding) -> set[str]:
    """List the clusters that a workload leaves and those that it is in."""
    leaving = {task.from_cluster for task in binding.spec.graceful_eviction_tasks or ()}
    return leaving | {target.name for target in binding.spec.clusters or ()}


def _shape_of(cluster: Cluster) -> object:
    """Return all of a cluster that evictions depend on: most reports change none of it."""
    meta = cluster.metadata
    return meta.uid, meta.deletion_timestamp, cluster.spec.taints, is_member_ready(cluster)


def _explain(task: GracefulEvictionTask) -> str:
    return f"The cause to evict from cluster {task.from_cluster} is gone; the eviction is withdrawn."
