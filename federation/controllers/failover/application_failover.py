"""Moves workloads away from clusters in which they fail: application failover, at a rate, and not in a storm.

Watches bindings, Works for the health of copies, and Clusters. Writes eviction tasks together with the new
clusters and the eviction history of bindings, in one patch, and the condition Failover. Asks
planning/failover for substitutes.
"""

import asyncio
from functools import partial
from math import inf
from typing import Annotated, Any

from msgspec import Meta

from federation.api import WORK_API_VERSION, Cluster, ResourceBinding
from federation.api.eviction_blocks import read_application_failover
from federation.failover.application_failover import (
    CopyReport,
    CopyVerdict,
    FailoverReason,
    FailoverVerdict,
)
from federation.failover.application_tasks import list_recovered, write_begin, write_history, write_return
from federation.failover.eviction_history import GiveUpRules, prune_history
from federation.failover.failover_condition import calm_condition, change_condition
from federation.failover.health_clock import MOMENT, ClockReader
from federation.failover.pending_replicas import PendingRules
from federation.failover.storm_brake import StormBrake, StormRules
from federation.failover.toleration import EvictionPace
from federation.hub.hub import Hub, refer_to
from federation.hub.telemetry import application_metrics as metrics
from federation.hub.telemetry.eviction_events import tell_begun, tell_withdrawn, telling_failure
from federation.hub.telemetry.step_events import refer_to_template
from federation.hub.work_index import WorkIndex
from federation.hub.workqueue import QueueSettings, WorkQueue
from federation.membership.cluster_status import is_member_ready
from federation.objects import resources
from federation.objects.health import HEALTHY
from federation.objects.names import Key, binding_of
from federation.planning.binding_scheduler import BindingScheduler
from federation.planning.failover.pending_replicas import Gift, find_gift
from federation.planning.failover.substitutes import (
    Substitute,
    find_way,
    judge_binding,
    report_copies,
)
from federation.propagation.binding import is_divided
from federation.propagation.schedule_result import is_scheduled_by_us, priority_rank
from reberth.client.events import WARNING
from reberth.cluster.kinds import Resource
from reberth.values.duration import Duration, PositiveDuration

_ACTION = "Evicting"
_HELD, _GIVEN_UP = "ApplicationFailoverHeld", "ApplicationFailoverGivenUp"
_TOLD = {FailoverReason.NO_SUBSTITUTE: _HELD, FailoverReason.GIVEN_UP: _GIVEN_UP, FailoverReason.STORM: _HELD}
_LOOKED_AT_AGAIN = (FailoverReason.NO_SUBSTITUTE, FailoverReason.PENDING_REPLICAS)
_SOON = 1.0
"""Seconds after the begin of an eviction at which its condition is written: the new copies come first."""


class ApplicationFailoverSettings(QueueSettings, frozen=True):
    """A single worker evicts one workload after the other, the highest priority first."""

    workers: Annotated[int, Meta(ge=1, le=1)] = 1
    evictions_per_second: Annotated[float, Meta(gt=0)] = 5.0
    give_up_after: Annotated[int, Meta(ge=1, le=64)] = 2
    """After so many moves in a row that brought nothing a workload stays."""
    within: Duration = Duration(48 * 3600)
    give_up_for: Duration = Duration(24 * 3600)
    look_again: PositiveDuration = PositiveDuration(30)
    """When to look anew for room that was reserved for others: nothing tells when that ends."""
    storm_fraction: Annotated[float, Meta(gt=0, le=1)] = 0.55
    """If more than this fraction of all workloads fail at once, and at least ten, none moves."""
    clock_skew: Duration = Duration(1)
    """How far the clocks of two processes may differ."""
    count_rollouts: bool = False
    """Whether a copy that is not complete because of a rollout counts as failing."""

    def rules(self) -> GiveUpRules:
        return GiveUpRules(self.give_up_after, self.within, self.give_up_for)

    def storm_rules(self) -> StormRules:
        return StormRules(self.storm_fraction)


class ApplicationFailoverController:
    def __init__(
        self,
        hub: Hub,
        index: WorkIndex,
        scheduler: BindingScheduler,
        settings: ApplicationFailoverSettings,
        pending: PendingRules | None = None,
    ) -> None:
        """`pending`: when replicas that have no node are given to other clusters; None if they are not."""
        self._hub = hub
        self._pending = pending
        self._index = index
        self._scheduler = scheduler
        self._rules = settings.rules()
        self._look_again = settings.look_again
        self._pace = EvictionPace(settings.evictions_per_second)
        self._storm = StormBrake(settings.storm_rules())
        self._clocks = ClockReader(began=hub.clock(), skew=settings.clock_skew)
        self._shapes: dict[str, object] = {}
        self._reasons = metrics.ReasonCounts()
        self._begun: dict[Key, float] = {}
        """When evictions began whose condition is not written yet."""
        self._queue = WorkQueue(
            "applicationFailover",
            self._reconcile,
            settings,
            rank=lambda key: priority_rank(self._hub.find_binding(key)),
        )

    def on_change(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        if resource in resources.ALL_BINDINGS:
            self._add(resources.key_of(resource, record))
        elif resource is resources.WORKS and (key := binding_of(record.metadata, WORK_API_VERSION)):
            binding = self._hub.find_binding(key)
            if binding is not None and read_application_failover(binding):
                self._add(key)
        elif resource is resources.CLUSTERS:
            self._on_cluster(record)

    def _add(self, key: Key) -> None:
        """Count at once what fails: a storm must be known before the first of its workloads has its turn."""
        self._judge(key, self._hub.find_binding(key))
        self._queue.add(key)

    async def run(self) -> None:
        await self._queue.run()

    def _on_cluster(self, cluster: Cluster) -> None:
        """The readiness of a member matters to all that is there, and its room to all that waits for some."""
        name = cluster.metadata.name
        there = self._hub.find(resources.CLUSTERS, "", name)
        shape = None if there is None else (there.metadata.uid, is_member_ready(there))
        if self._shapes.get(name) != shape:
            self._shapes[name] = shape
            for key in self._reasons.list_keys():
                self._queue.add(key)
        else:
            self._queue_all(FailoverReason.NO_SUBSTITUTE, FailoverReason.BLOCKED)

    def _queue_all(self, *reasons: FailoverReason) -> None:
        for key in self._reasons.having(*reasons):
            self._queue.add(key)

    async def _reconcile(self, key: Key) -> float | None:
        """Begin what is due, at the rate; return the seconds until the next look."""
        binding = self._hub.find_binding(key)
        verdict = self._judge(key, binding)
        if binding is None or verdict is None:
            await self._forget(key, binding)
            return None
        if await self._return(key, binding):
            return _SOON
        if (left := self._count_down(key)) > 0:
            return left
        found = self._find_way(key, binding, verdict)
        if isinstance(found, Substitute):
            await asyncio.sleep(self._pace.reserve(asyncio.get_running_loop().time()))
            return await self._begin(key)
        await self._tell(key, binding, found)
        return self._wait_for(key, binding, found)

    def _count_down(self, key: Key) -> float:
        """Return how long its condition waits: the change that begins an eviction calls for it at once."""
        left = self._begun.get(key, -inf) + _SOON - asyncio.get_running_loop().time()
        if left <= 0:
            self._begun.pop(key, None)
        return left

    def _judge(self, key: Key, binding: ResourceBinding | None) -> FailoverVerdict | None:
        if binding is None or read_application_failover(binding) is None:
            self._observe(key, None)
            return None
        verdict = judge_binding(
            binding,
            self._report(key, binding),
            self._rules,
            now=self._hub.clock(),
            read_time=lambda time: self._read_time(key, time),
            custom=self._hub.rules.health,
        )
        self._observe(key, verdict)
        return verdict

    def _observe(self, key: Key, verdict: FailoverVerdict | None) -> None:
        """Count what fails; when a storm is over, all that it has held may go on."""
        was_on = self._storm.is_on
        self._storm.observe(key, None if verdict is None else verdict.failing)
        metrics.FAILING.set(self._storm.failing)
        metrics.STORM.set(self._storm.is_on)
        if was_on and not self._storm.is_on:
            self._queue_all(FailoverReason.STORM)

    def _report(self, key: Key, binding: ResourceBinding) -> dict[str, CopyReport]:
        return report_copies(binding, self._index.of(key), self._hub.find_cluster, pending=self._pending)

    def _find_way(
        self, key: Key, binding: ResourceBinding, verdict: FailoverVerdict
    ) -> Substitute | FailoverVerdict:
        gives = partial(self._gives_pending, key, binding)
        now = self._hub.clock()
        return find_way(key, binding, verdict, self._scheduler, self._storm, now=now, gives=gives)

    def _gives_pending(self, key: Key, binding: ResourceBinding) -> bool:
        if self._pending is None:
            return False
        works, find, now = self._index.of(key), self._hub.find_cluster, self._hub.clock()
        found = find_gift(key, binding, works, find, self._scheduler, rules=self._pending, now=now)
        return isinstance(found, Gift)

    async def _begin(self, key: Key) -> float | None:
        """Judge again, after the turn has come, and carry it out in one write."""
        binding = self._hub.find_binding(key)
        verdict = self._judge(key, binding)
        if binding is None or verdict is None:
            return _SOON
        found = self._find_way(key, binding, verdict)
        if not isinstance(found, Substitute):
            return 0.0
        now = self._hub.clock()
        change = self._scheduler.change(found.evicted, found.decision)
        if change is None:
            return _SOON
        with self._scheduler.reserving(key, found.evicted, found.decision, now=now):
            patch = write_begin(found.evicted, found.due, self._rules, change, now=now)
            known = binding.spec.graceful_eviction_tasks or ()
            new = (each for each in found.evicted.spec.graceful_eviction_tasks or () if each not in known)
            with telling_failure(self._hub, key, binding, new):
                written = await self._hub.patch(resources.binding_resource(key.kind), binding, patch)
        self._begun[key] = asyncio.get_running_loop().time()
        tell_begun(self._hub, key, binding, written)
        for each in found.due:
            _count_begun(each, now)
        return _SOON

    async def _return(self, key: Key, binding: ResourceBinding) -> bool:
        """Return to old copies that are well again before the new ones are."""
        now = self._hub.clock()
        recovered = list_recovered(
            binding, self._report(key, binding), now=now, read_time=lambda time: self._read_time(key, time)
        )
        if not recovered:
            return False
        patch = write_return(binding, recovered, is_divided=is_divided(binding), now=now)
        with telling_failure(self._hub, key, binding, recovered):
            await self._hub.patch(resources.binding_resource(key.kind), binding, patch)
        tell_withdrawn(self._hub, key, binding, recovered)
        metrics.FAILOVERS.labels(metrics.WITHDRAWN).inc(len(recovered))
        return True

    async def _forget(self, key: Key, binding: ResourceBinding | None) -> None:
        self._reasons.forget(key)
        self._begun.pop(key, None)
        self._clocks.forget(str(key))
        if binding is not None and is_scheduled_by_us(binding):
            written = await self._prune(key, binding)
            change = calm_condition(written, now=self._hub.clock())
            if change is not None:
                resource = resources.binding_resource(key.kind)
                await self._hub.patch(resource, written, change, subresource="status")

    async def _prune(self, key: Key, binding: ResourceBinding) -> ResourceBinding:
        """Forget evictions that count for nothing any more."""
        clusters = {each.metadata.name for each in self._hub.cache.of(resources.CLUSTERS.kind).rows()}
        history = prune_history(binding, clusters, self._rules, now=self._hub.clock())
        if len(history) == len(binding.spec.active_eviction_history or ()):
            return binding
        change = write_history(binding, history)
        return await self._hub.patch(resources.binding_resource(key.kind), binding, change)

    async def _tell(self, key: Key, binding: ResourceBinding, verdict: FailoverVerdict) -> None:
        written = await self._prune(key, binding)
        change = change_condition(written, verdict.reason, verdict.message, now=self._hub.clock())
        if change is not None:
            resource = resources.binding_resource(key.kind)
            await self._hub.patch(resource, written, change, subresource="status")
        # Only now: another attempt, after a conflict, has it to tell.
        is_new = self._reasons.note(key, verdict.reason)
        if is_new and change is not None and verdict.reason in _TOLD:
            self._warn(key, binding, _TOLD[verdict.reason], verdict.message)
            if verdict.reason is FailoverReason.GIVEN_UP:
                metrics.FAILOVERS.labels(metrics.GIVEN_UP).inc()

    def _wait_for(self, key: Key, binding: ResourceBinding, verdict: FailoverVerdict) -> float | None:
        """Look when something is due; and at old copies that are well, when that has lasted."""
        now = self._hub.clock()
        waits = [] if verdict.look_at is None else [max(0.0, verdict.look_at - now)]
        if verdict.reason in _LOOKED_AT_AGAIN:
            waits.append(self._look_again)
        leaving = {each.from_cluster for each in binding.spec.graceful_eviction_tasks or ()}
        copies = self._report(key, binding) if leaving else {}
        if any(copies[name].health == HEALTHY for name in leaving & copies.keys()):
            waits.append(MOMENT)
        return min(waits, default=None)

    def _warn(self, key: Key, binding: ResourceBinding, reason: str, note: str) -> None:
        for regarding in (refer_to(key, binding.metadata), refer_to_template(binding)):
            self._hub.recorder.record(regarding, reason=reason, note=note, action=_ACTION, kind=WARNING)

    def _read_time(self, key: Key, time: str) -> float:
        return self._clocks.read(str(key), time, now=self._hub.clock())


def _count_begun(due: CopyVerdict, now: float) -> None:
    metrics.FAILOVERS.labels(metrics.BEGUN).inc()
    if due.since is not None:
        metrics.TIME_FAILING.observe(max(0.0, now - due.since))
