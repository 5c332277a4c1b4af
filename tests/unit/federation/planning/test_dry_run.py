"""Dry runs of WorkloadRebalancers: where workloads would move, and why others would not."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import msgspec
import pytest

from federation.api import Cluster, ObservedWorkload, RebalancerStatus, ResourceBinding
from federation.objects.names import Key
from federation.planning.binding_scheduler import BindingScheduler, SchedulingRules
from federation.planning.dry_run import answer_dry_run, is_answered, write_answer
from federation.rebalancing.review import Limits, review
from federation.scheduling.outcome import Step
from tests.support.federation.clusters import DUPLICATED, DYNAMIC, cluster
from tests.support.federation.rebalancers import UNLIMITED, T, bound, entry, rebalancer

RULES = SchedulingRules(120, 15, 600)
OURS = {"name": "web", "namespace": "default", "labels": {"binding.karmada.io/managed-by": "test"}}


def ours(clusters: dict[str, int], placement: dict[str, Any] = DYNAMIC, **more: Any) -> ResourceBinding:
    return bound(clusters, last=-60, placement=placement, applied=placement, metadata=OURS, **more)


def ask(
    bindings: dict[str, ResourceBinding], *clusters: Cluster, limits: Limits = UNLIMITED
) -> dict[str, ObservedWorkload]:
    one = rebalancer(*sorted({*bindings, "none"}), dryRun=True)
    scheduler = BindingScheduler(lambda: clusters, RULES)
    wanted = one.spec.workloads or ()
    found = answer_dry_run(
        one, wanted, lambda each: bindings.get(each.name), scheduler, limits=limits, now=T + 1
    )
    assert (found.observed_generation, found.finish_time) == (1, "2026-11-18T12:00:01Z")
    return {each.workload.name: each for each in found.observed_workloads or ()}


def said(entry: ObservedWorkload) -> tuple[str, str, str]:
    assert entry.result is not None
    assert entry.triggered_at is None
    return entry.result.value, entry.reason or "", entry.message or ""


def replicas(entry: ObservedWorkload) -> dict[str, int]:
    return {each.name: each.replicas for each in entry.to or ()}


def test_it_says_from_where_to_where_and_triggers_nothing() -> None:
    answer = ask({"web": ours({"m2": 4})}, cluster("m1"), cluster("m2"))
    text = "A fresh scheduling would move 2 replicas, from {m2:4} to {m1:2, m2:2}."
    assert said(answer["web"]) == ("Successful", "DryRun", text)
    assert replicas(answer["web"]) == {"m1": 2, "m2": 2}
    assert said(answer["none"])[:2] == ("Failed", "ReferencedBindingNotFound")


def test_one_that_would_stay_is_said_to_stay() -> None:
    answer = ask({"web": ours({"m1": 2, "m2": 2})}, cluster("m1"), cluster("m2"))
    assert said(answer["web"])[2] == "A fresh scheduling would leave it where it is: {m1:2, m2:2}."


def test_each_sees_the_room_that_the_ones_before_it_would_take() -> None:
    only = {"clusterAffinity": {"clusterNames": ["m1"]}, **DYNAMIC}
    bindings = {name: ours({"m2": 4}, only) for name in ("a", "b")}
    answer = ask(bindings, cluster("m1", 6), cluster("m2", 50))
    assert replicas(answer["a"]) == {"m1": 4}
    text = "Clusters available replicas 2 are not enough to schedule."
    assert said(answer["b"]) == ("Failed", "Unschedulable", text)
    assert [(each.name, each.replicas) for each in answer["b"].origin or ()] == [("m2", 4)]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"suspension": {"scheduling": True}}, "Scheduling is suspended."),
        ({"schedulerName": "other"}, "The scheduler other would decide."),
    ],
)
def test_one_that_nobody_would_decide_is_named_so(spec: dict[str, Any], text: str) -> None:
    answer = ask({"web": ours({"m2": 4}, **spec)}, cluster("m1"), cluster("m2"))
    assert said(answer["web"]) == ("Failed", "NotScheduled", text)


def test_one_that_no_policy_has_claimed_is_named_so() -> None:
    unclaimed = bound({"m2": 4}, last=-60, placement=DYNAMIC, metadata={})
    assert "No policy has claimed" in said(ask({"web": unclaimed}, cluster("m1"))["web"])[2]


@pytest.mark.parametrize(
    ("given", "field", "reason"),
    [
        ({"status": {"lastScheduledTime": "noon"}}, "status.lastScheduledTime", "BindingUnreadable"),
        (
            {"replicaRequirements": {"resourceRequest": {"cpu": "x"}}},
            "spec.replicaRequirements.resourceRequest",
            "SchedulerError",
        ),
    ],
)
def test_one_that_cannot_be_read_names_the_field(given: dict[str, Any], field: str, reason: str) -> None:
    answer = ask({"web": ours({"m2": 4}, **given)}, cluster("m1"))
    assert said(answer["web"])[1] == reason
    assert field in said(answer["web"])[2]


@pytest.mark.parametrize(("count", "shown", "text"), [(3000, 1024, "x"), (9000, 8192, "")])
def test_an_answer_that_is_too_large_says_how_many_are_missing(count: int, shown: int, text: str) -> None:
    every = [entry(f"w{number:04}", message=text * 1000, result="Failed") for number in range(count)]
    found = write_answer(rebalancer("web", dryRun=True), every, now=T)
    entries = found.observed_workloads or ()
    assert len(msgspec.json.encode(entries)) <= 2**20
    assert len(entries) <= shown
    assert [each.workload for each in entries] == [each.workload for each in every[: len(entries)]]
    told = f"The answers for {count - len(entries)} more workloads do not fit into the status"
    assert (entries[-1].message or "").startswith(told)
    assert not any("do not fit" in (each.message or "") for each in entries[:-1])
    assert found.finish_time, "it is answered"
    assert write_answer(rebalancer("web", dryRun=True), every[:5], now=T).observed_workloads == tuple(
        every[:5]
    )


def test_decisions_of_a_fork_are_not_timed() -> None:
    times: list[Step] = []

    def timed(step: Step) -> AbstractContextManager[None]:
        times.append(step)
        return nullcontext()

    scheduler = BindingScheduler(lambda: (cluster("m1"),), RULES, timed=timed)
    key = Key("work.karmada.io/v1alpha2", "ResourceBinding", "default", "web")
    scheduler.fork().decide(key, bound({}, placement=DYNAMIC), now=T)
    assert not times
    scheduler.decide(key, bound({}, placement=DYNAMIC), now=T)
    assert times


def test_it_foretells_what_a_request_then_decides() -> None:
    """The same binding, triggered for real, goes where the answer says."""
    binding = ours({"m2": 3}, DUPLICATED)
    clusters = (cluster("m1"), cluster("m2"))
    answer = ask({"web": binding}, *clusters)["web"]
    assert {each.name for each in answer.to or ()} == {"m1", "m2"}
    assert "would move 3 replicas" in (answer.message or "")


def test_an_answer_is_given_once_for_each_generation() -> None:
    one = rebalancer("web", dryRun=True)
    assert not is_answered(one)
    done = RebalancerStatus((), 1, "2026-11-18T12:00:01Z")
    assert is_answered(type(one)(one.metadata, one.spec, status=done))


def test_what_a_dry_run_has_answered_is_carried_out_once_it_is_none() -> None:
    entries = tuple(ask({"web": ours({"m2": 4})}, cluster("m1"), cluster("m2")).values())
    real = rebalancer("web", entries=tuple(each for each in entries if each.workload.name == "web"))
    found = review(real, real.spec.workloads or (), lambda _: ours({"m2": 4}), limits=UNLIMITED, now=T + 1)
    assert [each.workload.name for each in found.triggers] == ["web"]
