"""Ends handovers: old copies go as soon as the new ones are ready, or at the timeout.

Watches bindings with a handover, and their Works. Writes spec.handover. Asks rebalancing/handover.
"""

from typing import Any

from msgspec.structs import replace

from federation.api import WORK_API_VERSION, ResourceBinding
from federation.controllers.rebalancing.events import record_on_both
from federation.hub import rebalance_metrics as metrics
from federation.hub.call_priority import Urgency
from federation.hub.hub import Hub
from federation.hub.work_index import WorkIndex
from federation.hub.workqueue import QueueSettings, WorkQueue
from federation.objects import resources
from federation.objects.names import Key, binding_of
from federation.propagation.aggregation import read_copies
from federation.rebalancing.handover import Ready, Wait, kept_replicas, review_handover, write_handover_end
from reberth.client.events import NORMAL, WARNING
from reberth.cluster.kinds import Resource


class HandoversController:
    def __init__(self, hub: Hub, index: WorkIndex, settings: QueueSettings) -> None:
        self._hub = hub
        self._index = index
        self._queue = WorkQueue("handovers", self._reconcile, settings, urgency=Urgency.PLACING)

    def on_change(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        if resource in resources.ALL_BINDINGS and kept_replicas(record):
            self._queue.add(resources.key_of(resource, record))
        elif resource is resources.WORKS and (key := binding_of(record.metadata, WORK_API_VERSION)):
            binding = self._hub.find_binding(key)
            if binding is not None and kept_replicas(binding):
                self._queue.add(key)

    async def run(self) -> None:
        await self._queue.run()

    async def _reconcile(self, key: Key) -> float | None:
        binding = self._hub.find_binding(key)
        if binding is None or binding.metadata.deletion_timestamp is not None:
            return None
        verdict = review_handover(self._with_newest_status(key, binding), now=self._hub.clock())
        if isinstance(verdict, Wait):
            return verdict.seconds
        if isinstance(verdict, Ready):
            await self._hub.patch(resources.binding_resource(key.kind), binding, write_handover_end(binding))
            self._record(binding, in_time=verdict.in_time)
        return None

    def _with_newest_status(self, key: Key, binding: ResourceBinding) -> ResourceBinding:
        """Use the status of the Works: aggregatedStatus may still have a copy that is being deleted."""
        works = self._index.of(key)
        if not works:
            return binding
        lasting = {name: work for name, work in works.items() if work.metadata.deletion_timestamp is None}
        return replace(binding, status=replace(binding.status, aggregated_status=read_copies(lasting)))

    def _record(self, binding: ResourceBinding, *, in_time: bool) -> None:
        clusters = ", ".join(sorted(kept_replicas(binding)))
        if in_time:
            reason, note, kind = (
                "HandedOver",
                f"The new copies are ready; the old replicas in {clusters} are removed.",
                NORMAL,
            )
        else:
            note = (
                f"The new copies were not ready in time; the old replicas in {clusters} are removed anyway."
            )
            reason, kind = "HandoverTimedOut", WARNING
        metrics.HANDED_OVER.labels(metrics.READY if in_time else metrics.TIMEOUT).inc()
        record_on_both(self._hub, binding, reason=reason, note=note, kind=kind)
