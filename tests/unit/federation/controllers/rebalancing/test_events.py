"""Events and metrics of a rebalancing."""

from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

from msgspec.structs import replace
from prometheus_client import Counter as Counting

from federation.api import RebalancerStatus
from federation.controllers.rebalancing.events import RebalanceEvents
from federation.hub.hub import Hub
from federation.hub.telemetry import rebalance_metrics as metrics
from federation.rebalancing.progress import WaitingFor
from tests.support.federation.rebalancers import T, at, bound, entry, rebalancer
from tests.support.metrics import read_metric

DONE = entry(
    "web",
    result="Successful",
    triggeredAt=at(-3),
    to=[{"name": "m1", "replicas": 2}],
    **{"from": [{"name": "m2", "replicas": 2}]},
)
_OF = "reberth_federation_rebalance_"


def make() -> tuple[RebalanceEvents, list[tuple[str, str, str]]]:
    """Reports, and what they have said: of which kind, why, in which words."""
    told: list[tuple[str, str, str]] = []

    def record(regarding: Any, *, reason: str, note: str, **_: object) -> None:
        told.append((regarding.kind, reason, note))

    hub = SimpleNamespace(recorder=SimpleNamespace(record=record), clock=lambda: T)
    return RebalanceEvents(cast("Hub", hub)), told


def test_all_counters_are_exposed_before_the_first_event() -> None:
    """increase() does not see the first event of a series that appears with it."""
    for metric, known in (
        (metrics.TRIGGERED, {"rebalancer", "failback"}),
        (metrics.HANDED_OVER, {"ready", "timeout", "returned", "held"}),
        (metrics.WAITING, set(map(str, WaitingFor))),
    ):
        (family,) = cast("Counting", metric).collect()
        assert {label for each in family.samples for label in each.labels.values()} == known


def test_a_success_is_one_event_on_the_binding_and_one_on_its_object() -> None:
    reports, told = make()
    before = rebalancer("web")
    after = replace(before, status=RebalancerStatus((DONE,)))
    moved, done = read_metric(f"{_OF}moved_replicas_total"), read_metric(f"{_OF}rescheduled_total")
    seconds = read_metric(f"{_OF}duration_seconds_sum")
    reports.tell(before, after, lambda _: bound({"m1": 2}))
    reports.tell(after, after, lambda _: bound({"m1": 2}))
    note = "Rescheduled by WorkloadRebalancer demo from {m2:2} to {m1:2}."
    assert told == [(kind, "WorkloadRebalanced", note) for kind in ("ResourceBinding", "Deployment")]
    assert read_metric(f"{_OF}moved_replicas_total") == moved + 2
    assert read_metric(f"{_OF}rescheduled_total") == done + 1
    assert read_metric(f"{_OF}duration_seconds_sum") == seconds + 3


def test_a_trigger_is_recorded_and_counted() -> None:
    reports, told = make()
    before = read_metric(f"{_OF}triggered_total", by="rebalancer")
    reports.tell_trigger(rebalancer("web"), bound({"m1": 2}), at(0))
    assert [(kind, reason) for kind, reason, _ in told] == [
        ("ResourceBinding", "RescheduleTriggered"),
        ("Deployment", "RescheduleTriggered"),
    ]
    assert read_metric(f"{_OF}triggered_total", by="rebalancer") == before + 1


def test_waiting_workloads_are_summed_over_existing_rebalancers() -> None:
    reports, _ = make()
    reports.count_waiting("one", Counter({WaitingFor.BINDING: 2, WaitingFor.HEALTH: 1}))
    reports.count_waiting("two", Counter({WaitingFor.BINDING: 1}))
    assert read_metric(f"{_OF}waiting_workloads", reason="BindingNotFound") == 3
    assert read_metric(f"{_OF}waiting_workloads", reason="Health") == 1
    reports.count_waiting("one", Counter())
    reports.forget("two")
    assert read_metric(f"{_OF}waiting_workloads", reason="BindingNotFound") == 0
    assert read_metric(f"{_OF}waiting_workloads", reason="Health") == 0
