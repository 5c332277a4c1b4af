"""Starts evictions: workloads that do not tolerate a NoExecute taint of their cluster leave it, at a rate.

Watches bindings, and Clusters for taints and deletion. Writes tasks into spec.gracefulEvictionTasks. Asks
planning/evictions when a workload has to leave, with which task.
"""

import asyncio
from collections.abc import Iterator
from typing import Annotated, Any

from msgspec import Meta

from federation.api import Cluster, GracefulEvictionTask, ResourceBinding
from federation.api.clusters import NO_EXECUTE
from federation.failover.eviction_causes import EvictionCause, EvictionCauses
from federation.failover.eviction_tasks import write_tasks
from federation.failover.toleration import EvictionPace
from federation.hub.hub import Hub
from federation.hub.telemetry.eviction_events import tell_begun, telling_failure
from federation.hub.workqueue import QueueSettings, WorkQueue
from federation.objects import resources
from federation.objects.names import Key
from federation.planning.evictions import list_evictions
from federation.propagation.schedule_result import priority_rank
from reberth.cluster.kinds import Resource


class TaintingSettings(QueueSettings, frozen=True):
    """A single worker evicts one workload after the other, the highest priority first."""

    workers: Annotated[int, Meta(ge=1, le=1)] = 1
    evictions_per_second: Annotated[float, Meta(gt=0)] = 1.5


class TaintingController:
    def __init__(self, hub: Hub, causes: EvictionCauses, settings: TaintingSettings) -> None:
        self._hub = hub
        self._causes = causes
        self._pace = EvictionPace(settings.evictions_per_second)
        self._queue = WorkQueue(
            "tainting", self._reconcile, settings, rank=lambda key: priority_rank(self._hub.find_binding(key))
        )
        self._shapes: dict[str, object] = {}

    def on_change(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        if resource in resources.ALL_BINDINGS:
            self._queue.add(resources.key_of(resource, record))
        elif resource is resources.CLUSTERS:
            self._causes.on_change(record)
            if self._shapes.get(record.metadata.name) != (shape := _shape_of(record)):
                self._shapes[record.metadata.name] = shape
                self._queue_bindings_in(record.metadata.name)

    async def run(self) -> None:
        await self._queue.run()

    def _queue_bindings_in(self, cluster: str) -> None:
        for key, binding in self._hub.list_bindings():
            if any(target.name == cluster for target in binding.spec.clusters or ()):
                self._queue.add(key)

    async def _reconcile(self, key: Key) -> float | None:
        """Start the evictions that are due, at the rate; return the seconds until the next one is due."""
        if not self._list_due(self._hub.find_binding(key)):
            return self._wait_for(self._hub.find_binding(key))
        await asyncio.sleep(self._pace.reserve(asyncio.get_running_loop().time()))
        binding = self._hub.find_binding(key)
        due = self._list_due(binding)
        if binding is not None and due:
            tasks = (*(binding.spec.graceful_eviction_tasks or ()), *due)
            with telling_failure(self._hub, key, binding, due):
                change, kind = write_tasks(binding, tasks), resources.binding_resource(key.kind)
                written = await self._hub.patch(kind, binding, change)
            tell_begun(self._hub, key, binding, written)
        return self._wait_for(binding)

    def _list_due(self, binding: ResourceBinding | None) -> list[GracefulEvictionTask]:
        now = self._hub.clock()
        return [task for cause, task in self._list_causes(binding) if cause.at <= now]

    def _wait_for(self, binding: ResourceBinding | None) -> float | None:
        now = self._hub.clock()
        later = [cause.at - now for cause, _ in self._list_causes(binding) if cause.at > now]
        return min(later, default=None)

    def _list_causes(
        self, binding: ResourceBinding | None
    ) -> Iterator[tuple[EvictionCause, GracefulEvictionTask]]:
        """Yield the causes to evict the workload, now or later, with the task of each."""
        if binding is None:
            return iter(())
        return list_evictions(binding, self._hub.find_cluster, self._causes)


def _shape_of(cluster: Cluster) -> object:
    taints = [each for each in cluster.spec.taints or () if each.effect == NO_EXECUTE]
    return cluster.metadata.uid, cluster.metadata.deletion_timestamp is None, taints
