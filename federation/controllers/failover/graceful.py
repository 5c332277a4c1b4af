"""Ends graceful evictions: an old copy goes when its replacements stay healthy, or after its grace period.

Watches bindings with eviction tasks, their Works, and Clusters. Writes spec.gracefulEvictionTasks,
spec.clusters if a task is withdrawn because its cause is gone, and the condition Failover where a lost member
holds a new copy back. Asks planning/evictions.
"""

import math
from collections import Counter
from typing import Any

from federation.api import WORK_API_VERSION, Cluster, ResourceBinding
from federation.failover.eviction_causes import EvictionCauses
from federation.failover.eviction_tasks import (
    Assessment,
    Patience,
    change_failover_condition,
    write_assessment,
)
from federation.hub.hub import Hub
from federation.hub.telemetry import failover_metrics as metrics
from federation.hub.telemetry.eviction_events import tell_ended, tell_withdrawn, telling_failure
from federation.hub.work_index import WorkIndex
from federation.hub.workqueue import QueueSettings, WorkQueue
from federation.membership.cluster_status import is_member_ready
from federation.objects import resources
from federation.objects.names import Key, binding_of
from federation.objects.steadiness import Steadiness
from federation.planning.evictions import assess_evictions, list_concerned
from reberth.cluster.kinds import Resource
from reberth.values.duration import Duration


class GracefulSettings(QueueSettings, frozen=True):
    timeout: Duration = Duration(600)
    """Grace period of tasks without gracePeriodSeconds."""
    min_ready: Duration = Duration(3)
    """How long new copies must be healthy without a break before the old one goes."""
    fence_after: Duration | None = None
    """When a copy in a lost member counts as gone if it is purged directly; if not set, never."""

    @property
    def patience(self) -> Patience:
        return Patience(self.timeout, self.fence_after)


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
        self._steadiness = Steadiness()
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
        else:  # somebody else has ended them
            self._steadiness.forget(key)

    async def run(self) -> None:
        await self._queue.run()

    def _queue_evicted(self, cluster: str) -> None:
        """The readiness and the taints of a member matter to the evictions from it and to it."""
        for key, binding in self._hub.list_bindings():
            if binding.spec.graceful_eviction_tasks and cluster in list_concerned(binding):
                self._queue.add(key)

    async def _reconcile(self, key: Key) -> float | None:
        resource = resources.binding_resource(key.kind)
        binding = self._hub.find_binding(key)
        if binding is None or binding.metadata.deletion_timestamp is not None:
            self._steadiness.forget(key)
            return None
        now = self._hub.clock()
        found, lacking = self._assess(key, binding, now=now)
        if change := write_assessment(binding, found):
            with telling_failure(self._hub, key, binding, (*found.ended, *found.withdrawn)):
                binding = await self._hub.patch(resource, binding, change)
            self._tell_ended(key, binding, found)
        if not found.kept:
            self._steadiness.forget(key)
        if status := change_failover_condition(binding, found, now=now):
            await self._hub.patch(resource, binding, status, subresource="status")
        # A grace period is over after `due`, not at it, and times are whole seconds.
        wait = min(lacking, math.inf if found.due is None else max(0.0, found.due - now) + 1)
        return None if math.isinf(wait) else wait

    def _assess(self, key: Key, binding: ResourceBinding, *, now: float) -> tuple[Assessment, float]:
        """Sort the tasks; also return for how long new copies that are healthy have to stay so."""
        lacking = math.inf

        def lasts(holds: bool) -> bool:  # noqa: FBT001 - as `Lasts` is called
            nonlocal lacking
            lacking = self._steadiness.observe(key, holds=holds, least=self._settings.min_ready, now=now)
            return lacking == 0

        named = (self._hub.find_cluster(name) for name in list_concerned(binding))
        found = assess_evictions(
            binding,
            self._index.of(key),
            filter(None, named),
            self._causes,
            patience=self._settings.patience,
            now=now,
            lasts=lasts,
        )
        return found, lacking or math.inf

    def _tell_ended(self, key: Key, binding: ResourceBinding, found: Assessment) -> None:
        """Do it as soon as the tasks are gone: another attempt, after a conflict, does not find them."""
        self._count_ended(found)
        tell_ended(self._hub, key, binding, found.ended)
        tell_withdrawn(self._hub, key, binding, found.withdrawn)

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


def _shape_of(cluster: Cluster) -> object:
    """Return all of a cluster that evictions depend on: most reports change none of it."""
    meta = cluster.metadata
    return meta.uid, meta.deletion_timestamp, cluster.spec.taints, is_member_ready(cluster)
