"""Schedules bindings: each one is decided as soon as something changes that may concern it.

Watches bindings and Clusters. Writes spec.clusters, the applied placement and the condition Scheduled of
bindings. Asks scheduling/decide; propagation/schedule_result turns the decision into patches. A binding that
could not be scheduled waits for a change of the clusters, not for a timer. Decisions are subtracted from the
clusters' room until they report it themselves (propagation/reservations).
"""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from federation.api import Cluster, ResourceBinding
from federation.hub import metrics
from federation.hub.call_priority import Urgency
from federation.hub.hub import Hub, refer_to
from federation.hub.workqueue import QueueSettings, WorkQueue
from federation.objects import resources
from federation.objects.names import Key
from federation.objects.template import Object
from federation.propagation.binding import template_of
from federation.propagation.reservations import Reservations
from federation.propagation.schedule_note import apply_note, resume
from federation.propagation.schedule_result import (
    FAILED,
    BindingEvent,
    change_clusters,
    change_schedule_status,
    describe_unreadable,
    is_scheduled_by_us,
    list_events,
    priority_rank,
)
from federation.propagation.shortage_news import ShortageNews
from federation.scheduling import Decision, Fleet, Reason, decide
from federation.scheduling.cause import Cause
from reberth.client.events import NORMAL, WARNING
from reberth.cluster.kinds import Resource
from reberth.runtime.logs import Log
from reberth.values.duration import Duration
from reberth.values.object_error import ObjectError

log = Log(__name__)

_ACTION = "Scheduling"


class SchedulerSettings(QueueSettings, frozen=True):
    """Workers share one event loop: decisions are made one after the other, and each sees the last one.

    There are more workers than calls in flight (16), so that an urgent write is always waiting for a turn.
    """

    workers: Annotated[int, Meta(ge=1, le=256)] = 32
    look_again: Duration = Duration(30)
    """When to retry a binding that found too little room."""
    reserve_for: Duration = Duration(120)
    """How long room is reserved for replicas that a member has not reported."""
    reported_within: Duration = Duration(15)
    """How long after a copy was applied the member's report includes it. Members are probed every 10 s."""
    handover_timeout: Duration = Duration(600)
    """How long new copies may take to get ready, of a move that nobody requested."""


class SchedulerController:
    def __init__(self, hub: Hub, settings: SchedulerSettings, *, hands_over: bool = True) -> None:
        """`hands_over`: the handovers controller runs, so that old copies that are kept will be removed."""
        self._hub = hub
        self._handover = max(1, int(settings.handover_timeout)) if hands_over else None
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
        self._clusters: object = None
        self._read: Fleet | None = None
        self._shortages = ShortageNews()
        self._reservations = Reservations(
            lasting=settings.reserve_for, reported_within=settings.reported_within
        )

    def on_change(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        if resource in resources.ALL_BINDINGS:
            self._on_binding(resources.key_of(resource, record), record)
        elif resource is resources.CLUSTERS:
            for key in self._concerned(record):
                self._add(key, metrics.CLUSTER_CHANGED)

    def place_new(self, key: Key, wanted: Object) -> Object:
        """Decide for a binding that is about to be created, so that it is created with its clusters.

        If it cannot be decided now, it is created as it is, and scheduled afterwards.
        """
        metadata = {**wanted["metadata"], "namespace": key.namespace}
        binding = msgspec.convert({**wanted, "metadata": metadata}, ResourceBinding)
        now = self._hub.clock()
        self._reservations.observe(key, None, now=now)
        decision = self._decide(key, binding, now)
        change = self._change(binding, decision) if is_scheduled_by_us(binding) else None
        if change is None:
            return wanted
        self._reservations.reserve(key, binding, _list_given(decision), now=now)
        annotations = {**metadata["annotations"], **change["metadata"]["annotations"]}
        return {
            **wanted,
            "metadata": {**wanted["metadata"], "annotations": annotations},
            "spec": {**wanted["spec"], **change.get("spec", {})},
        }

    @contextmanager
    def decide_triggered(self, key: Key, triggered: ResourceBinding) -> Iterator[Object]:
        """Decide for a binding that is about to be triggered: the patch to write with the trigger.

        It is written within the context. If it cannot be decided now, the trigger is written alone, and
        scheduled afterwards.
        """
        change = None
        if is_scheduled_by_us(triggered):
            decision = self._decide(key, apply_note(triggered), self._hub.clock())
            change = self._change(triggered, decision) if decision.cause == Cause.REQUESTED else None
        if change is None:
            yield {}
        else:
            with self._reserving(key, triggered, decision):
                yield change

    def see_fleet(self, key: Key, binding: ResourceBinding) -> Fleet:
        """Return the clusters, less the room that is reserved for others. Raises ObjectError."""
        return self._read_fleet().less(
            self._reservations.taken_by_others(key, binding, now=self._hub.clock())
        )

    async def run(self) -> None:
        await self._queue.run()

    def _on_binding(self, key: Key, binding: ResourceBinding) -> None:
        """Restore the reservations of decisions that another process made, when a binding is new to us."""
        is_new = key not in self._known
        if is_new:
            self._known.add(key)
            self._reservations.restore(key, binding, now=self._hub.clock())
        self._add(key, metrics.BINDING_ADD if is_new else metrics.BINDING_UPDATE)

    def _add(self, key: Key, event: str) -> None:
        metrics.QUEUE_INCOMING.labels(event).inc()
        self._queue.add(key)

    def _concerned(self, cluster: Cluster) -> set[Key]:
        """A cluster of another shape concerns every binding; more room only those that wait for it."""
        name = cluster.metadata.name
        shape = None if self._hub.find(resources.CLUSTERS, "", name) is None else _shape_of(cluster)
        if shape == self._shapes.get(name):
            return set(self._unscheduled)
        self._shapes[name] = shape
        return {key for key, _ in self._hub.list_bindings()}

    async def _reconcile(self, key: Key) -> float | None:
        binding = self._hub.find_binding(key)
        now = self._hub.clock()
        self._reservations.observe(key, binding, now=now)
        self._unscheduled.discard(key)
        if binding is None or not is_scheduled_by_us(binding):
            self._shortages.forget(key)
            if binding is None:
                self._known.discard(key)
            return None
        started = time.monotonic()
        known = apply_note(binding)
        decision = resume(binding, known, self._decide(key, known, now))
        if decision.reason is not Reason.SUCCESS:
            self._unscheduled.add(key)
        await self._carry_out(key, binding, decision, is_unreported=known is not binding)
        if decision.cause:
            _measure(decision, time.monotonic() - started)
        if decision.retry:
            metrics.QUEUE_INCOMING.labels(metrics.ATTEMPT_FAILED).inc()
        return self._settings.look_again if decision.retry else None

    def _decide(self, key: Key, binding: ResourceBinding, now: float) -> Decision:
        """Decide; an object that cannot be read is a refusal."""
        try:
            return decide(binding, self.see_fleet(key, binding), now=now, timed=metrics.time_step)
        except ObjectError as error:
            return describe_unreadable(binding, error)

    def _read_fleet(self) -> Fleet:
        """Return the clusters, read anew when they have changed."""
        clusters = self._hub.cache.of(resources.CLUSTERS.kind).rows()
        if clusters is not self._clusters or self._read is None:
            known = self._read.faults if self._read else ()
            self._read = Fleet(clusters, before=self._read)
            self._clusters = clusters
            for fault in self._read.faults:
                if all(fault is not each for each in known):
                    log.warning("cluster has no room that can be read", reason=str(fault))
        return self._read

    async def _carry_out(
        self, key: Key, binding: ResourceBinding, decision: Decision, *, is_unreported: bool
    ) -> None:
        """Write the clusters, then the status.

        The reservation comes before the first await: decisions that are made meanwhile must see it.
        """
        resource = resources.binding_resource(key.kind)
        written = binding
        change = self._change(binding, decision)
        if change is not None:
            with self._reserving(key, binding, decision):
                written = await self._hub.patch(resource, binding, change)
        was_changed = change is not None or is_unreported
        self._record_events(key, binding, decision, was_changed=was_changed)
        status = change_schedule_status(written, decision, was_changed=was_changed, now=self._hub.clock())
        if status is not None:
            await self._hub.patch(resource, written, status, subresource="status")

    def _change(self, binding: ResourceBinding, decision: Decision) -> Object | None:
        clusters = self._hub.cache.of(resources.CLUSTERS.kind).rows()
        leaving = {each.metadata.name for each in clusters if each.metadata.deletion_timestamp is not None}
        return change_clusters(binding, decision, leaving=leaving, handover=self._handover)

    def _reserving(
        self, key: Key, binding: ResourceBinding, decision: Decision
    ) -> AbstractContextManager[None]:
        return self._reservations.reserving(key, binding, _list_given(decision), now=self._hub.clock())

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


def _list_given(decision: Decision) -> dict[str, int]:
    return {target.name: target.replicas for target in decision.clusters}


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
