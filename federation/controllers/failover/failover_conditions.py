"""Tells what becomes of workloads that fail: the condition Failover, and Events of what has to stay.

It has a queue of its own, whose calls come last: however many conditions wait to be written, no eviction
waits for them. Evictions that count for nothing any more are forgotten on the way.
"""

import asyncio
from math import inf

from federation.api import ResourceBinding
from federation.failover.application_failover import FailoverReason, FailoverVerdict
from federation.failover.application_tasks import write_history
from federation.failover.eviction_history import GiveUpRules, prune_history
from federation.failover.eviction_tasks import FAILOVER
from federation.failover.failover_condition import calm_condition, change_condition, is_news
from federation.hub.call_priority import Urgency
from federation.hub.hub import Hub, refer_to
from federation.hub.telemetry import application_metrics as metrics
from federation.hub.telemetry.step_events import refer_to_template
from federation.hub.workqueue import QueueSettings, WorkQueue
from federation.objects import resources
from federation.objects.conditions import find_condition
from federation.objects.names import Key
from federation.objects.template import Object
from federation.propagation.schedule_result import is_scheduled_by_us
from reberth.client.events import WARNING

_ACTION = "Evicting"
_HELD, _GIVEN_UP = "ApplicationFailoverHeld", "ApplicationFailoverGivenUp"
_TOLD = {FailoverReason.NO_SUBSTITUTE: _HELD, FailoverReason.GIVEN_UP: _GIVEN_UP, FailoverReason.STORM: _HELD}
_SOON = 1.0
"""Seconds after the begin of an eviction at which its condition is written: the new copies come first."""


class FailoverConditions:
    def __init__(self, hub: Hub, rules: GiveUpRules, settings: QueueSettings) -> None:
        self._hub = hub
        self._rules = rules
        self._verdicts: dict[Key, FailoverVerdict] = {}
        self._begun: dict[Key, float] = {}
        """When evictions began whose condition is not written yet."""
        self._queue = WorkQueue("failoverConditions", self._write, settings, urgency=Urgency.REPORTING)

    def tell(self, key: Key, verdict: FailoverVerdict) -> None:
        self._verdicts[key] = verdict
        self._queue.add(key)

    def forget(self, key: Key, binding: ResourceBinding | None) -> None:
        """It is gone, or does not fail over any more; most bindings never did."""
        self._verdicts.pop(key, None)
        self._begun.pop(key, None)
        if binding and (
            find_condition(binding.status.conditions, FAILOVER) or binding.spec.active_eviction_history
        ):
            self._queue.add(key)

    def hold(self, key: Key) -> None:
        """Write nothing for a moment: an eviction begins, and what was to be told is over."""
        self._begun[key] = asyncio.get_running_loop().time()

    async def run(self) -> None:
        await self._queue.run()

    async def _write(self, key: Key) -> float | None:
        if (left := self._count_down(key)) > 0:
            return left
        binding = self._hub.find_binding(key)
        if binding is None or not is_scheduled_by_us(binding):
            return None
        written, verdict = await self._prune(key, binding), self._verdicts.get(key)
        change = self._change(written, verdict)
        if change is not None:
            await self._hub.patch(resources.binding_resource(key.kind), written, change, subresource="status")
            if verdict is not None and is_news(written, verdict.reason):
                self._warn(key, binding, verdict)
        return None

    def _change(self, binding: ResourceBinding, verdict: FailoverVerdict | None) -> Object | None:
        now = self._hub.clock()
        if verdict is None:
            return calm_condition(binding, now=now)
        return change_condition(binding, verdict.reason, verdict.message, now=now)

    def _count_down(self, key: Key) -> float:
        left = self._begun.get(key, -inf) + _SOON - asyncio.get_running_loop().time()
        if left <= 0:
            self._begun.pop(key, None)
        return left

    async def _prune(self, key: Key, binding: ResourceBinding) -> ResourceBinding:
        """Forget evictions that count for nothing any more."""
        clusters = {each.metadata.name for each in self._hub.cache.of(resources.CLUSTERS.kind).rows()}
        history = prune_history(binding, clusters, self._rules, now=self._hub.clock())
        if len(history) == len(binding.spec.active_eviction_history or ()):
            return binding
        change = write_history(binding, history)
        return await self._hub.patch(resources.binding_resource(key.kind), binding, change)

    def _warn(self, key: Key, binding: ResourceBinding, verdict: FailoverVerdict) -> None:
        """Tell what has to stay, once: the condition has had another reason before."""
        if (reason := _TOLD.get(verdict.reason)) is None:
            return
        for regarding in (refer_to(key, binding.metadata), refer_to_template(binding)):
            self._hub.recorder.record(
                regarding, reason=reason, note=verdict.message, action=_ACTION, kind=WARNING
            )
        if verdict.reason is FailoverReason.GIVEN_UP:
            metrics.FAILOVERS.labels(metrics.GIVEN_UP).inc()
