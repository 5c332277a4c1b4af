"""Evictions in a plan: which begin, which end, and what they wait for."""

from msgspec.structs import replace

from federation.api import Cluster
from tests.support.federation.clusters import AGGREGATED
from tests.support.federation.copies import copy
from tests.support.federation.planned import (
    DONE,
    RULES,
    SPACIOUS,
    TASK,
    ago,
    member,
    ours,
    plan_of,
    steps_of,
    waits_of,
)
from tests.support.federation.rebalancers import at


def test_a_taint_evicts_and_the_scheduler_finds_another_cluster() -> None:
    tainted = member("m1", 300, taints=["lost:NoExecute"])
    web = ours("web", 2, AGGREGATED, at={"m1": 2}, applied=AGGREGATED, status=DONE)
    plan = plan_of([tainted, member("m2")], [web])
    assert steps_of(plan) == [("Evict", "web-deployment", {}), ("Move", "web-deployment", {"m2": 2})]
    assert plan.steps[0].reason == "cluster(s) had untolerated taint {lost:NoExecute}"
    assert waits_of(plan, "web") == [("Eviction", at(600))]


def test_a_toleration_that_ends_later_is_waited_for() -> None:
    tolerating = {**AGGREGATED, "clusterTolerations": [{"operator": "Exists", "tolerationSeconds": 60}]}
    web = ours("web", 2, tolerating, at={"m1": 2}, applied=tolerating, status=DONE)
    plan = plan_of([member("m1", taints=["lost:NoExecute"]), member("m2")], [web])
    assert plan.steps == ()
    assert waits_of(plan, "web") == [("Toleration", at(60))]


def test_a_lost_member_evicts_only_where_that_is_set() -> None:
    web = ours("web", 2, AGGREGATED, at={"m1": 2}, applied=AGGREGATED, status=DONE)
    hub = [member("m1", is_ready=False), member("m2"), member("m3")]
    assert steps_of(plan_of(hub, [web])) == [("Taint", "m1", {})]
    lost = RULES._replace(lost_after=60, brake_fraction=0.55, brake_longest=3600)
    assert [each[0] for each in steps_of(plan_of(hub, [web], lost))] == ["Taint", "Evict", "Move"]


def test_an_eviction_ends_when_the_new_copies_are_healthy() -> None:
    task = {**TASK, "replicas": 3, "creationTimestamp": ago(60)}
    hub = [member("m1", taints=["lost:NoExecute"]), member("m2")]
    web = ours(
        "web", 3, AGGREGATED, at={"m2": 3}, applied=AGGREGATED, gracefulEvictionTasks=[task], status=DONE
    )
    assert steps_of(plan_of(hub, [web], works=[copy("m1", 3), copy("m2", 0)])) == []
    ended = plan_of(hub, [web], works=[copy("m1", 3), copy("m2", 3)])
    assert steps_of(ended) == [("EndEviction", "web-deployment", {})]


def test_an_eviction_whose_cause_is_gone_is_withdrawn() -> None:
    web = ours(
        "web", 2, AGGREGATED, at={"m1": 2}, applied=AGGREGATED, gracefulEvictionTasks=[TASK], status=DONE
    )
    actions = [each[0] for each in steps_of(plan_of([member("m1")], [web]))]
    assert actions == ["WithdrawEviction"]


def test_a_lost_member_that_is_purged_directly_holds_the_new_copies_back() -> None:
    task = {**TASK, "purgeMode": "Directly", "creationTimestamp": ago(6000)}
    web = ours(
        "web", 3, AGGREGATED, at={"m2": 3}, applied=AGGREGATED, gracefulEvictionTasks=[task], status=DONE
    )
    lost = member("m1", is_ready=False, taints=["cluster.karmada.io/not-ready:NoSchedule"])
    plan = plan_of([lost, member("m2")], [web], works=[copy("m1", 3)])
    assert waits_of(plan, "web") == [("Member", None)]


def test_an_invalid_time_of_an_eviction_is_warned_about() -> None:
    task = {**TASK, "creationTimestamp": "noon"}
    web = ours("web", 2, AGGREGATED, at={"m2": 2}, applied=AGGREGATED, gracefulEvictionTasks=[task])
    assert "default/web-deployment: invalid time 'noon'" in plan_of(SPACIOUS, [web]).warnings[0]


def test_one_that_has_nowhere_to_go_stays_and_says_so() -> None:
    tainted = member("m1", taints=["lost:NoExecute"])
    web = ours("web", 2, AGGREGATED, at={"m1": 2}, applied=AGGREGATED, status=DONE)
    plan = plan_of([tainted], [web])
    assert steps_of(plan) == [("Evict", "web-deployment", {})]
    assert [each[0] for each in waits_of(plan, "web")] == ["Clusters", "Eviction"]
    assert plan.bindings["default/web-deployment"].to == plan.bindings["default/web-deployment"].origin


def deleted(name: str, *, ago_seconds: float) -> Cluster:
    made = member(name)
    return replace(made, metadata=replace(made.metadata, deletion_timestamp=ago(ago_seconds)))


def test_a_workload_without_another_cluster_loses_its_copy_with_a_deleted_one() -> None:
    web = ours("web", 2, AGGREGATED, at={"m1": 2}, applied=AGGREGATED, status=DONE)
    plan = plan_of([deleted("m1", ago_seconds=900)], [web])
    assert [each[0] for each in steps_of(plan)] == ["Evict"], "its turn comes only now"
    assert waits_of(plan, "web") == [("Clusters", None), ("Eviction", at(600))]
    assert "even if it has no other" in plan.bindings["default/web-deployment"].waits[1].message
    evicted = ours(
        "web", 2, AGGREGATED, at={"m1": 2}, applied=AGGREGATED, status=DONE, gracefulEvictionTasks=[TASK]
    )
    plan = plan_of([deleted("m1", ago_seconds=500)], [evicted])
    assert (steps_of(plan), waits_of(plan, "web")[1:]) == ([], [("Eviction", at(100))])
    plan = plan_of([deleted("m1", ago_seconds=700)], [evicted])
    assert [(each.action, each.origin) for each in plan.steps] == [("LetGo", evicted.spec.clusters)]
    assert waits_of(plan, "web") == [("Clusters", None)]


def test_nothing_is_let_go_where_nobody_cleans_up_or_for_longer() -> None:
    evicted = ours(
        "web", 2, AGGREGATED, at={"m1": 2}, applied=AGGREGATED, status=DONE, gracefulEvictionTasks=[TASK]
    )
    idle = RULES._replace(controllers=RULES.controllers - {"members"})
    plan = plan_of([deleted("m1", ago_seconds=700)], [evicted], idle)
    assert steps_of(plan) == []
    assert "until it has another cluster" in plan.bindings["default/web-deployment"].waits[1].message
    patient = RULES._replace(let_go_after=3600.0)
    assert steps_of(plan_of([deleted("m1", ago_seconds=700)], [evicted], patient)) == []


def test_copies_in_a_cluster_that_is_deleted_are_evicted_with_the_decision() -> None:
    web = ours("web", 2, AGGREGATED, at={"m1": 2}, applied=AGGREGATED, status=DONE)
    plan = plan_of([member("m1", leaving=True), member("m2")], [web])
    assert steps_of(plan) == [("Evict", "web-deployment", {}), ("Move", "web-deployment", {"m2": 2})]
    assert plan.steps[0].reason == "the cluster is being deleted"
