"""Ends handovers: old copies go once the new ones stay ready; where these are late, the workload returns.

Watches bindings with a handover, their Works, and whether Clusters are Ready. Writes spec.handover, and
spec.clusters for a return. Asks rebalancing/handover.
"""

from typing import Any

from federation.api import WORK_API_VERSION, Cluster, ResourceBinding
from federation.controllers.rebalancing.events import record_on_both
from federation.hub.call_priority import Urgency
from federation.hub.hub import Hub
from federation.hub.telemetry import rebalance_metrics as metrics
from federation.hub.work_index import WorkIndex
from federation.hub.workqueue import QueueSettings, WorkQueue
from federation.membership.cluster_status import is_member_ready
from federation.objects import resources
from federation.objects.names import Key, binding_of
from federation.objects.steadiness import Steadiness
from federation.planning.handover_status import with_newest_status
from federation.rebalancing.handover import (
    Hold,
    Ready,
    Return,
    Wait,
    kept_replicas,
    review_handover,
    write_handover_end,
    write_return,
)
from federation.rebalancing.replicas import write_replicas
from federation.scheduling import Fleet
from reberth.client.events import NORMAL, WARNING
from reberth.cluster.kinds import Resource
from reberth.values.duration import Duration

_LOOK_AGAIN = 30.0
"""When a workload that could not return is looked at again."""
_TIMED_OUT = "HandoverTimedOut"
# The result for the metric, the reason of the Event, and its note.
_HANDED_OVER = (
    metrics.READY,
    "HandedOver",
    "The new copies are ready; the old replicas in {clusters} are removed.",
)
_LET_GO = (
    metrics.TIMEOUT,
    _TIMED_OUT,
    "The new copies were not ready in time; the old replicas in {clusters} are removed anyway.",
)
_RETURNED = (
    metrics.RETURNED,
    _TIMED_OUT,
    "The new copies were not ready in time; the workload returns to {to}.",
)
_HELD = (
    metrics.HELD,
    _TIMED_OUT,
    "The new copies were not ready in time; the old replicas in {clusters} stay until they are.",
)


class HandoverSettings(QueueSettings, frozen=True):
    min_ready: Duration = Duration(3)
    """How long new copies must be ready without a break before the old ones go."""


class HandoversController:
    def __init__(self, hub: Hub, index: WorkIndex, settings: HandoverSettings) -> None:
        self._hub = hub
        self._index = index
        self._held: set[Key] = set()
        self._ready: dict[str, bool] = {}
        self._min_ready = settings.min_ready
        self._steadiness = Steadiness()
        self._queue = WorkQueue("handovers", self._reconcile, settings, urgency=Urgency.PLACING)

    def on_change(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        if resource in resources.ALL_BINDINGS and kept_replicas(record):
            self._queue.add(resources.key_of(resource, record))
        elif resource is resources.WORKS and (key := binding_of(record.metadata, WORK_API_VERSION)):
            binding = self._hub.find_binding(key)
            if binding is not None and kept_replicas(binding):
                self._queue.add(key)
        elif resource is resources.CLUSTERS:
            self._on_cluster(record)

    async def run(self) -> None:
        await self._queue.run()

    async def _reconcile(self, key: Key) -> float | None:
        binding = self._hub.find_binding(key)
        if binding is None or binding.metadata.deletion_timestamp is not None:
            self._held.discard(key)
            self._steadiness.forget(key)
            return None
        newest = with_newest_status(binding, self._index.of(key), self._hub.find_cluster)
        now, resource = self._hub.clock(), resources.binding_resource(key.kind)
        review = review_handover(newest, self._read_fleet, now=now)
        is_ready = isinstance(review, Ready) and review.in_time
        lacking = self._steadiness.observe(key, holds=is_ready, least=self._min_ready, now=now)
        match review:
            case Ready(True) if lacking:
                return lacking
            case Wait(seconds):
                return seconds
            case Ready(in_time):
                await self._hub.patch(resource, binding, write_handover_end(binding))
                self._record(binding, *(_HANDED_OVER if in_time else _LET_GO))
            case Return() as back:
                await self._hub.patch(resource, binding, write_return(binding, back, now=now))
                self._record(binding, *_RETURNED, to=write_replicas(back.clusters))
            case Hold() if key not in self._held:
                self._held.add(key)
                self._record(binding, *_HELD)
                return _LOOK_AGAIN
            case Hold():
                return _LOOK_AGAIN
            case _:
                pass
        self._held.discard(key)
        self._steadiness.forget(key)
        return None

    def _read_fleet(self) -> Fleet:
        return Fleet(self._hub.cache.of(resources.CLUSTERS.kind).rows())

    def _on_cluster(self, cluster: Cluster) -> None:
        """Look at the handovers again when a member becomes Ready, or is so no longer."""
        name, is_ready = cluster.metadata.name, is_member_ready(cluster)
        if self._ready.get(name) != is_ready:
            self._ready[name] = is_ready
            for key, binding in self._hub.list_bindings():
                if kept_replicas(binding):
                    self._queue.add(key)

    def _record(self, binding: ResourceBinding, result: str, reason: str, note: str, *, to: str = "") -> None:
        clusters = ", ".join(sorted(kept_replicas(binding)))
        kind = NORMAL if result == metrics.READY else WARNING
        metrics.HANDED_OVER.labels(result).inc()
        record_on_both(
            self._hub, binding, reason=reason, note=note.format(clusters=clusters, to=to), kind=kind
        )
