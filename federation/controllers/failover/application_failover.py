"""Moves workloads away from clusters in which they fail: application failover, at a rate, and not in a storm.

Watches bindings, Works for the health of copies, and Clusters. Writes eviction tasks together with the new
clusters and the eviction history of bindings, in one patch; has failover_conditions tell what becomes of the
others. Asks planning/failover for substitutes.
"""

import asyncio
from functools import partial
from typing import Annotated, Any

from msgspec import Meta

from federation.api import WORK_API_VERSION, Cluster, ResourceBinding
from federation.api.eviction_blocks import read_application_failover
from federation.controllers.failover.failover_conditions import FailoverConditions
from federation.failover.application_failover import (
    CopyReport,
    CopyVerdict,
    FailoverReason,
    FailoverVerdict,
)
from federation.failover.application_tasks import list_recovered, write_begin, write_return
from federation.failover.eviction_history import GiveUpRules
from federation.failover.health_clock import MOMENT, ClockReader
from federation.failover.pending_replicas import PendingRules
from federation.failover.storm_brake import StormBrake, StormRules
from federation.failover.toleration import EvictionPace
from federation.hub.hub import Hub
from federation.hub.telemetry import application_metrics as metrics
from federation.hub.telemetry.eviction_events import tell_begun, tell_withdrawn, telling_failure
from federation.hub.work_index import WorkIndex
from federation.hub.workqueue import QueueSettings, WorkQueue
from federation.membership.cluster_status import is_member_ready
from federation.objects import resources
from federation.objects.health import HEALTHY
from federation.objects.names import Key, binding_of
from federation.objects.template import Object
from federation.planning.binding_scheduler import BindingScheduler
from federation.planning.failover.pending_replicas import Gift, find_gift, list_stuck
from federation.planning.failover.substitutes import (
    Substitute,
    find_way,
    judge_binding,
    report_copies,
)
from federation.propagation.binding import is_divided
from federation.propagation.schedule_result import priority_rank
from reberth.cluster.kinds import Resource
from reberth.values.duration import Duration, PositiveDuration

_LOOKED_AT_AGAIN = (FailoverReason.NO_SUBSTITUTE, FailoverReason.PENDING_REPLICAS)
_SOON = 1.0
"""Seconds until the next look at what was written, or at what another write forestalled."""


class ApplicationFailoverSettings(QueueSettings, frozen=True):
    """Workloads of the highest priority come first."""

    workers: Annotated[int, Meta(ge=1, le=16)] = 4
    """So many evictions begin at the same time at most: a single one would be slower than the rate where the
    API server takes its time."""
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
        self._conditions = FailoverConditions(hub, self._rules, settings)
        self._looks = WorkQueue("applicationFailover", self._look, settings)
        self._begins = WorkQueue(
            "applicationFailoverBegins",
            self._begin,
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
        self._looks.add(key)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._looks.run())
            group.create_task(self._begins.run())
            group.create_task(self._conditions.run())

    def _on_cluster(self, cluster: Cluster) -> None:
        """The readiness of a member matters to all that is there, and its room to all that waits for some."""
        name = cluster.metadata.name
        there = self._hub.find(resources.CLUSTERS, "", name)
        shape = None if there is None else (there.metadata.uid, is_member_ready(there))
        if self._shapes.get(name) != shape:
            self._shapes[name] = shape
            for key in self._reasons.list_keys():
                self._looks.add(key)
        else:
            self._queue_all(FailoverReason.NO_SUBSTITUTE, FailoverReason.BLOCKED)

    def _queue_all(self, *reasons: FailoverReason) -> None:
        for key in self._reasons.having(*reasons):
            self._looks.add(key)

    async def _look(self, key: Key) -> float | None:
        """Have what is due begin, and all else told; return the seconds until the next look."""
        binding = self._hub.find_binding(key)
        verdict = self._judge(key, binding)
        if binding is None or verdict is None:
            self._forget(key, binding)
            return None
        if await self._return(key, binding):
            return _SOON
        found = self._find_way(key, binding, verdict)
        if isinstance(found, Substitute):
            self._begins.add(key)
            return None
        self._reasons.note(key, found.reason)
        self._conditions.tell(key, found)
        return self._wait_for(key, binding, found)

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
        stuck = list_stuck(binding, works, find, rules=self._pending, now=now)
        found = find_gift(key, binding, stuck, self._scheduler, rules=self._pending, now=now)
        return isinstance(found, Gift)

    async def _begin(self, key: Key) -> None:
        """Judge again when the turn has come; what is not due any more takes no turn."""
        if self._is_due(key):
            await asyncio.sleep(self._pace.reserve(asyncio.get_running_loop().time()))
        binding = self._hub.find_binding(key)
        verdict = self._judge(key, binding)
        found = self._find_way(key, binding, verdict) if binding and verdict else None
        change = (
            self._scheduler.change(found.evicted, found.decision) if isinstance(found, Substitute) else None
        )
        if binding is None or not isinstance(found, Substitute):
            self._looks.add(key)
        elif change is None:
            self._looks.add_later(key, _SOON)
        else:
            await self._evict(key, binding, found, change)

    def _is_due(self, key: Key) -> bool:
        verdict = self._judge(key, self._hub.find_binding(key))
        return verdict is not None and bool(verdict.due)

    async def _evict(self, key: Key, binding: ResourceBinding, found: Substitute, change: Object) -> None:
        """Write tasks, new clusters and history at once."""
        now = self._hub.clock()
        with self._scheduler.reserving(key, found.evicted, found.decision, now=now):
            patch = write_begin(found.evicted, found.due, self._rules, change, now=now)
            known = binding.spec.graceful_eviction_tasks or ()
            new = (each for each in found.evicted.spec.graceful_eviction_tasks or () if each not in known)
            self._conditions.hold(key)
            with telling_failure(self._hub, key, binding, new):
                written = await self._hub.patch(resources.binding_resource(key.kind), binding, patch)
        tell_begun(self._hub, key, binding, written)
        for each in found.due:
            _count_begun(each, now)

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

    def _forget(self, key: Key, binding: ResourceBinding | None) -> None:
        self._reasons.forget(key)
        self._clocks.forget(str(key))
        self._conditions.forget(key, binding)

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

    def _read_time(self, key: Key, time: str) -> float:
        return self._clocks.read(str(key), time, now=self._hub.clock())


def _count_begun(due: CopyVerdict, now: float) -> None:
    metrics.FAILOVERS.labels(metrics.BEGUN).inc()
    if due.since is not None:
        metrics.TIME_FAILING.observe(max(0.0, now - due.since))
