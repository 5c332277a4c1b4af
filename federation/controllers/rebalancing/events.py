"""Events and metrics of rebalancing, on the binding and on its template."""

from collections import Counter
from collections.abc import Callable

from federation.api import (
    WORK_API_VERSION,
    ObservedWorkload,
    RebalancedWorkload,
    RebalanceResult,
    ResourceBinding,
    WorkloadRebalancer,
)
from federation.api.bindings import kind_of
from federation.api.rebalancers import DRY_RUN
from federation.hub.hub import Hub, refer_to
from federation.hub.telemetry import rebalance_metrics as metrics
from federation.objects.names import Key
from federation.propagation.binding import template_of
from federation.rebalancing.progress import WaitingFor, trigger_of
from federation.rebalancing.replicas import count_moved, write_replicas
from reberth.client.events import NORMAL
from reberth.records import ObjectMeta

_ACTION = "Rebalancing"


def record_on_both(hub: Hub, binding: ResourceBinding, *, reason: str, note: str, kind: str = NORMAL) -> None:
    """Record an Event on a binding and on its template."""
    bound = Key(WORK_API_VERSION, kind_of(binding), binding.metadata.namespace, binding.metadata.name)
    template = ObjectMeta(uid=binding.spec.resource.uid)
    for regarding in (refer_to(bound, binding.metadata), refer_to(template_of(binding), template)):
        hub.recorder.record(regarding, reason=reason, note=note, action=_ACTION, kind=kind)


class RebalanceEvents:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._waiting: dict[str, Counter[WaitingFor]] = {}

    def tell_trigger(self, rebalancer: WorkloadRebalancer, binding: ResourceBinding, at: str) -> None:
        metrics.TRIGGERED.labels(metrics.BY_REBALANCER).inc()
        note = f"WorkloadRebalancer {rebalancer.metadata.name} requested a fresh scheduling at {at}."
        record_on_both(self._hub, binding, reason="RescheduleTriggered", note=note)

    def tell(
        self,
        before: WorkloadRebalancer,
        after: WorkloadRebalancer,
        find: Callable[[RebalancedWorkload], ResourceBinding | None],
    ) -> None:
        """Record an Event for each workload that has just succeeded, with its clusters before and after."""
        done = {entry.workload for entry in before.status.observed_workloads or () if _is_done(entry)}
        for entry in after.status.observed_workloads or ():
            binding = find(entry.workload)
            if _is_done(entry) and entry.workload not in done and binding is not None:
                self._tell_success(after, entry, binding)

    def _tell_success(
        self, rebalancer: WorkloadRebalancer, entry: ObservedWorkload, binding: ResourceBinding
    ) -> None:
        origin, to = entry.origin or (), entry.to or ()
        metrics.RESCHEDULED.inc()
        metrics.MOVED.inc(count_moved(origin, to))
        metrics.DURATION.observe(max(0.0, self._hub.clock() - (trigger_of(entry) or 0.0)))
        path = f"from {write_replicas(origin)} to {write_replicas(to)}"
        note = f"Rescheduled by WorkloadRebalancer {rebalancer.metadata.name} {path}."
        record_on_both(self._hub, binding, reason="WorkloadRebalanced", note=note)

    def count_waiting(self, name: str, waiting: Counter[WaitingFor]) -> None:
        self._waiting[name] = waiting
        self._show_waiting()

    def forget(self, name: str) -> None:
        self._waiting.pop(name, None)
        self._show_waiting()

    def _show_waiting(self) -> None:
        total: Counter[WaitingFor] = sum(self._waiting.values(), Counter())
        for reason in WaitingFor:
            metrics.WAITING.labels(str(reason)).set(total[reason])


def _is_done(entry: ObservedWorkload) -> bool:
    return entry.result is RebalanceResult.SUCCESSFUL and entry.reason != DRY_RUN
