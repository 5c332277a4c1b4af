"""Workloads that come home by themselves, where their policies ask for it."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from federation.api import ResourceBinding
from federation.controllers.rebalancing.events import tell_both
from federation.hub import rebalance_metrics as metrics
from federation.hub.call_priority import Urgency
from federation.hub.hub import Desk
from federation.hub.workqueue import Queue, QueueSettings
from federation.objects import resources
from federation.objects.names import Key
from federation.rebalancing.failback import Note, Return, Stay, consider, is_returning, wants_failback
from federation.rebalancing.triggers import choose_trigger, is_triggered
from federation.scheduling import Fleet
from reberth.cluster.resources import Resource
from reberth.values.duration import Duration
from reberth.values.timestamp import write_time


class FailbackSettings(QueueSettings, frozen=True):
    at_once: Annotated[int, Meta(ge=1)] = 10
    """So many workloads are on their way home at the same time."""
    look_again: Duration = Duration(5)
    """Who waits for its turn looks again after this time."""
    handover_timeout: Duration = Duration(600)
    gather_for: Duration = Duration(1)


class Failback:
    """One worker looks at one workload after the other, so that each sees how many are on their way."""

    def __init__(self, desk: Desk, settings: FailbackSettings) -> None:
        self._desk = desk
        self._settings = settings
        alone = msgspec.structs.replace(settings, workers=1)
        self._queue = Queue("failback", self._settle, alone, urgency=Urgency.SCHEDULING)
        self._wanting: set[Key] = set()
        self._asked: dict[Key, float] = {}

    def notice(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        if resource in resources.ALL_BINDINGS:
            key = resources.key_of(resource, record)
            if wants_failback(record) or key in self._wanting:
                self._wanting.add(key)
                self._queue.add_later(key, self._settings.gather_for)
        elif resource is resources.CLUSTERS:
            for key in self._wanting:
                self._queue.add_later(key, self._settings.gather_for)

    async def run(self) -> None:
        await self._queue.run()

    async def _settle(self, key: Key) -> float | None:
        binding = self._desk.find_binding(key)
        if binding is None or not wants_failback(binding):
            self._wanting.discard(key)
            self._asked.pop(key, None)
            return None
        now = self._desk.clock()
        fleet = Fleet(self._desk.cache.of(resources.CLUSTERS.kind).rows())
        step = consider(binding, fleet, now=now)
        if isinstance(step, Note):
            await self._note(key, binding, step)
        elif isinstance(step, Return):
            return await self._return(key, binding, step, now=now)
        return step.seconds if isinstance(step, Stay) else None

    async def _note(self, key: Key, binding: ResourceBinding, step: Note) -> None:
        failback = None if step.failback is None else msgspec.to_builtins(step.failback)
        patch = {
            "metadata": {"resourceVersion": binding.metadata.resource_version},
            "status": {"failback": failback},
        }
        resource = resources.binding_resource(key.kind)
        await self._desk.patch(resource, binding, patch, subresource="status")

    async def _return(self, key: Key, binding: ResourceBinding, step: Return, *, now: float) -> float | None:
        if self._count_under_way() >= self._settings.at_once:
            return self._settings.look_again
        trigger = choose_trigger(binding, created=now // 1, now=now)
        patch = {
            "metadata": {"resourceVersion": binding.metadata.resource_version},
            "spec": {
                "rescheduleTriggeredAt": write_time(trigger),
                "handover": {"timeoutSeconds": int(self._settings.handover_timeout)},
            },
        }
        await self._desk.patch(resources.binding_resource(key.kind), binding, patch)
        self._asked[key] = trigger
        metrics.TRIGGERED.labels(metrics.BY_FAILBACK).inc()
        note = f"Group {step.to} has recovered and has room; a fresh scheduling is asked for."
        tell_both(self._desk, binding, reason="FailbackTriggered", note=note)
        return None

    def _count_under_way(self) -> int:
        """Count whom the mirror shows on the way, and whom it does not show yet."""
        return sum(map(self._is_under_way, self._wanting))

    def _is_under_way(self, key: Key) -> bool:
        binding = self._desk.find_binding(key)
        if binding is None:
            return False
        asked = self._asked.get(key)
        return is_returning(binding) or (asked is not None and not is_triggered(binding, asked))
