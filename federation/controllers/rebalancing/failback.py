"""Fails back: workloads whose policy has failback return to an earlier cluster group.

Watches bindings and Clusters. Writes status.failback, and a trigger with a handover when the stabilization
time is over. Asks rebalancing/failback.
"""

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from federation.api import ResourceBinding
from federation.controllers.rebalancing.events import record_on_both
from federation.controllers.rebalancing.rebalancer import DecideTriggered
from federation.hub.call_priority import Urgency
from federation.hub.hub import Hub
from federation.hub.telemetry import rebalance_metrics as metrics
from federation.hub.workqueue import QueueSettings, WorkQueue
from federation.objects import resources
from federation.objects.names import Key
from federation.rebalancing.failback import (
    NoAction,
    RecordGroup,
    TriggerFailback,
    decide_failback,
    is_returning,
    request_return,
    wants_failback,
)
from federation.rebalancing.handover import is_overdue
from federation.rebalancing.triggers import is_triggered, with_trigger, write_trigger
from federation.scheduling import Fleet
from reberth.cluster.kinds import Resource
from reberth.values.duration import Duration, PositiveDuration
from reberth.values.timestamp import write_time


class FailbackSettings(QueueSettings, frozen=True):
    at_once: Annotated[int, Meta(ge=1)] = 10
    """How many workloads may return at the same time."""
    look_again: PositiveDuration = PositiveDuration(5)
    """When a workload that waits for its turn tries again."""
    handover_timeout: Duration = Duration(600)
    gather_for: Duration = Duration(1)


SeeFleet = Callable[[Key, ResourceBinding], Fleet]
"""The clusters as they are for one binding: without the room that is reserved for others."""


class FailbackController:
    """A single worker: each workload sees how many others are returning, and the room that they have taken.

    The scheduler decides with each request, so that its reservation is seen by the next workload.
    """

    def __init__(
        self, hub: Hub, settings: FailbackSettings, see_fleet: SeeFleet, decide_triggered: DecideTriggered
    ) -> None:
        self._hub = hub
        self._see_fleet = see_fleet
        self._decide_triggered = decide_triggered
        self._settings = settings
        alone = msgspec.structs.replace(settings, workers=1)
        self._queue = WorkQueue("failback", self._reconcile, alone, urgency=Urgency.SCHEDULING)
        self._wanting: set[Key] = set()
        self._asked: dict[Key, float] = {}
        self._returning: set[Key] = set()

    def on_change(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        if resource in resources.ALL_BINDINGS:
            key = resources.key_of(resource, record)
            if is_returning(record):
                self._returning.add(key)
            if wants_failback(record) or key in self._wanting:
                self._wanting.add(key)
                self._queue.add_later(key, self._settings.gather_for)
        elif resource is resources.CLUSTERS:
            for key in self._wanting:
                self._queue.add_later(key, self._settings.gather_for)

    async def run(self) -> None:
        await self._queue.run()

    async def _reconcile(self, key: Key) -> float | None:
        binding = self._hub.find_binding(key)
        if binding is None or not wants_failback(binding):
            self._wanting.discard(key)
            self._asked.pop(key, None)
            return None
        now = self._hub.clock()
        step = decide_failback(binding, self._see_fleet(key, binding), now=now)
        if isinstance(step, RecordGroup):
            await self._record_group(key, binding, step)
        elif isinstance(step, TriggerFailback):
            return await self._return(key, binding, step, now=now)
        return step.seconds if isinstance(step, NoAction) else None

    async def _record_group(self, key: Key, binding: ResourceBinding, step: RecordGroup) -> None:
        failback = None if step.failback is None else msgspec.to_builtins(step.failback)
        patch = {
            "metadata": {"resourceVersion": binding.metadata.resource_version},
            "status": {"failback": failback},
        }
        resource = resources.binding_resource(key.kind)
        await self._hub.patch(resource, binding, patch, subresource="status")

    async def _return(
        self, key: Key, binding: ResourceBinding, step: TriggerFailback, *, now: float
    ) -> float | None:
        if self._count_under_way() >= self._settings.at_once:
            return self._settings.look_again
        trigger, timeout = request_return(binding, timeout=self._settings.handover_timeout, now=now)
        at = write_time(trigger)
        with self._decide_triggered(key, with_trigger(binding, at, timeout)) as placed:
            patch = write_trigger(binding, at, timeout, placed)
            await self._hub.patch(resources.binding_resource(key.kind), binding, patch)
        self._asked[key] = trigger
        self._returning.add(key)
        metrics.TRIGGERED.labels(metrics.BY_FAILBACK).inc()
        note = f"Cluster group {step.to} has room for all replicas again; requested a fresh scheduling."
        record_on_both(self._hub, binding, reason="FailbackTriggered", note=note)
        return None

    def _count_under_way(self) -> int:
        """Count the returning workloads, including those that the cache does not show yet.

        Only those are looked at that were returning the last time: they are few, whatever number wants to.
        """
        self._returning = {key for key in self._returning if self._is_returning(key)}
        return sum(map(self._is_under_way, self._returning))

    def _is_returning(self, key: Key) -> bool:
        """Tell whether a workload still is returning, in time or not, or was asked to just now."""
        binding, asked = self._hub.find_binding(key), self._asked.get(key)
        if binding is None:
            return False
        return is_returning(binding) or (asked is not None and not is_triggered(binding, asked))

    def _is_under_way(self, key: Key) -> bool:
        binding = self._hub.find_binding(key)
        return binding is not None and not is_overdue(binding, now=self._hub.clock())
