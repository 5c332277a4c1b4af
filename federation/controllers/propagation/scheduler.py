"""Schedules bindings: each one is decided as soon as something changes that may concern it.

Watches bindings and Clusters. Writes spec.clusters, the applied placement and the condition Scheduled of
bindings. Asks planning/binding_scheduler. A binding that could not be scheduled waits for a change of the
clusters, not for a timer. Decisions are subtracted from the clusters' room until they report it themselves.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from msgspec import Meta

from federation.api import Cluster, ResourceBinding
from federation.hub import metrics
from federation.hub.call_priority import Urgency
from federation.hub.hub import Hub, refer_to
from federation.hub.telemetry.eviction_events import tell_begun
from federation.hub.workqueue import QueueSettings, WorkQueue
from federation.objects import resources
from federation.objects.names import Key
from federation.objects.template import Object
from federation.planning.binding_scheduler import BindingScheduler, SchedulingRules
from federation.propagation.binding import template_of
from federation.propagation.schedule_result import (
    FAILED,
    BindingEvent,
    change_schedule_status,
    is_scheduled_by_us,
    list_events,
    priority_rank,
)
from federation.propagation.shortage_news import ShortageNews
from federation.scheduling import Decision, Fleet, Reason
from federation.scheduling.cause import Cause
from reberth.client.events import NORMAL, WARNING
from reberth.cluster.kinds import Resource
from reberth.runtime.logs import Log
from reberth.values.duration import Duration, PositiveDuration
from reberth.values.object_error import ObjectError

log = Log(__name__)

_ACTION = "Scheduling"


class SchedulerSettings(QueueSettings, frozen=True):
    """Workers share one event loop: decisions are made one after the other, and each sees the last one.

    There are more workers than calls in flight (16), so that an urgent write is always waiting for a turn.
    """

    workers: Annotated[int, Meta(ge=1, le=256)] = 32
    look_again: PositiveDuration = PositiveDuration(30)
    """When to retry a binding that found too little room."""
    reserve_for: Duration = Duration(120)
    """How long room is reserved for replicas that a member has not reported."""
    reported_within: Duration = Duration(15)
    """How long after a copy was applied the member's report includes it. Members are probed every 10 s."""
    handover_timeout: Duration = Duration(600)
    """How long new copies may take to get ready, of a move that nobody requested."""

    def rules(self, *, hands_over: bool) -> SchedulingRules:
        handover = max(1, int(self.handover_timeout)) if hands_over else None
        return SchedulingRules(self.reserve_for, self.reported_within, handover)


class SchedulerController:
    def __init__(self, hub: Hub, settings: SchedulerSettings, *, hands_over: bool = True) -> None:
        """`hands_over`: the handovers controller runs, so that old copies that are kept will be removed."""
        self._hub = hub
        self._settings = settings
        self._queue = WorkQueue(
            "scheduler",
            self._reconcile,
            settings,
            rank=lambda key: priority_rank(self._hub.find_binding(key)),
            urgency=Urgency.SCHEDULING,
        )
        self._known: set[Key] = set()
        self._unscheduled: set[Key] = set()
        self._shapes: dict[str, object] = {}
        self._shortages = ShortageNews()
        self._scheduler = BindingScheduler(
            lambda: hub.cache.of(resources.CLUSTERS.kind).rows(),
            settings.rules(hands_over=hands_over),
            timed=metrics.time_step,
            on_fault=_report_fault,
        )

    def on_change(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        if resource in resources.ALL_BINDINGS:
            self._on_binding(resources.key_of(resource, record), record)
        elif resource is resources.CLUSTERS:
            for key in self._concerned(record):
                self._add(key, metrics.CLUSTER_CHANGED)

    def place_new(self, key: Key, wanted: Object) -> Object:
        """Decide for a binding that is about to be created, so that it is created with its clusters."""
        return self._scheduler.place_new(key, wanted, now=self._hub.clock())

    @contextmanager
    def decide_triggered(self, key: Key, triggered: ResourceBinding) -> Iterator[Object]:
        """Decide for a binding that is about to be triggered: the patch to write with the trigger.

        It is written within the context. If it cannot be decided now, the trigger is written alone, and
        scheduled afterwards.
        """
        now = self._hub.clock()
        decision, change = self._scheduler.decide_triggered(key, triggered, now=now)
        if change is None:
            yield {}
        else:
            with self._scheduler.reserving(key, triggered, decision, now=now):
                yield change

    def see_fleet(self, key: Key, binding: ResourceBinding) -> Fleet:
        """Return the clusters, less the room that is reserved for others. Raises ObjectError."""
        return self._scheduler.see_fleet(key, binding, now=self._hub.clock())

    @property
    def placing(self) -> BindingScheduler:
        """The scheduler whose decisions are carried out, and that knows what room they take."""
        return self._scheduler

    def fork(self) -> BindingScheduler:
        """Return a scheduler for decisions that are not carried out."""
        return self._scheduler.fork()

    async def run(self) -> None:
        await self._queue.run()

    def _on_binding(self, key: Key, binding: ResourceBinding) -> None:
        """Restore the reservations of decisions that another process made, when a binding is new to us."""
        is_new = key not in self._known
        if is_new:
            self._known.add(key)
            self._scheduler.restore(key, binding, now=self._hub.clock())
        self._add(key, metrics.BINDING_ADD if is_new else metrics.BINDING_UPDATE)

    def _add(self, key: Key, event: str) -> None:
        metrics.QUEUE_INCOMING.labels(event).inc()
        self._queue.add(key)

    def _concerned(self, cluster: Cluster) -> set[Key]:
        """A cluster of another shape concerns every binding; more room only those that wait for it."""
        name = cluster.metadata.name
        shape = None if self._hub.find_cluster(name) is None else _shape_of(cluster)
        if shape == self._shapes.get(name):
            return set(self._unscheduled)
        self._shapes[name] = shape
        return {key for key, _ in self._hub.list_bindings()}

    async def _reconcile(self, key: Key) -> float | None:
        binding = self._hub.find_binding(key)
        now = self._hub.clock()
        self._scheduler.observe(key, binding, now=now)
        self._unscheduled.discard(key)
        if binding is None or not is_scheduled_by_us(binding):
            self._shortages.forget(key)
            if binding is None:
                self._known.discard(key)
            return None
        started = time.monotonic()
        decision, is_unreported = self._scheduler.decide_known(key, binding, now=now)
        if decision.reason is not Reason.SUCCESS:
            self._unscheduled.add(key)
        await self._carry_out(key, binding, decision, is_unreported=is_unreported)
        if decision.cause:
            _measure(decision, time.monotonic() - started)
        if decision.retry:
            metrics.QUEUE_INCOMING.labels(metrics.ATTEMPT_FAILED).inc()
        return self._find_wait(decision, now)

    def _find_wait(self, decision: Decision, now: float) -> float | None:
        """Retry after a while, or when the next block of a cluster ends."""
        block = None if decision.look_at is None else max(0.0, decision.look_at - now)
        waits = (self._settings.look_again if decision.retry else None, block)
        return min((each for each in waits if each is not None), default=None)

    async def _carry_out(
        self, key: Key, binding: ResourceBinding, decision: Decision, *, is_unreported: bool
    ) -> None:
        """Write the clusters, then the status.

        The reservation comes before the first await: decisions that are made meanwhile must see it.
        """
        resource = resources.binding_resource(key.kind)
        written = binding
        change = self._scheduler.change(binding, decision)
        if change is not None:
            with self._scheduler.reserving(key, binding, decision, now=self._hub.clock()):
                written = await self._hub.patch(resource, binding, change)
            tell_begun(self._hub, key, binding, written)
        was_changed = change is not None or is_unreported
        self._record_events(key, binding, decision, was_changed=was_changed)
        status = change_schedule_status(written, decision, was_changed=was_changed, now=self._hub.clock())
        if status is not None:
            await self._hub.patch(resource, written, status, subresource="status")

    def _record_events(
        self, key: Key, binding: ResourceBinding, decision: Decision, *, was_changed: bool
    ) -> None:
        template, now = template_of(binding), self._hub.clock()
        events = list(list_events(binding, decision, was_changed=was_changed))
        if not events and self._shortages.is_due(key, decision, now=now):
            events = [BindingEvent(FAILED, decision.message, is_failure=True)]
        if events or decision.reason is Reason.SUCCESS:
            self._shortages.told(key, decision, now=now)
        meta = type(binding.metadata)(uid=binding.spec.resource.uid)
        regarding = (refer_to(key, binding.metadata), refer_to(template, meta))
        for event in events:
            for one in regarding:
                self._hub.recorder.record(
                    one,
                    reason=event.reason,
                    note=event.note,
                    action=_ACTION,
                    kind=WARNING if event.is_failure else NORMAL,
                )


def _report_fault(fault: ObjectError) -> None:
    log.warning("cluster has no room that can be read", reason=str(fault))


def _shape_of(cluster: Cluster) -> object:
    """Return all of a cluster that decisions depend on, except its room."""
    meta, spec = cluster.metadata, cluster.spec
    zones = (spec.provider, spec.region, spec.zone, spec.zones, spec.taints)
    return meta.uid, meta.labels, meta.deletion_timestamp, zones, cluster.status.api_enablements


def _measure(decision: Decision, seconds: float) -> None:
    result = "scheduled" if decision.reason is Reason.SUCCESS else "error"
    labels = (result, "ScaleSchedule" if decision.cause == Cause.REPLICAS else "ReconcileSchedule")
    metrics.SCHEDULE_ATTEMPTS.labels(*labels).inc()
    metrics.SCHEDULING_DURATION.labels(*labels).observe(seconds)
