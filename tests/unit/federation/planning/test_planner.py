"""A plan names each step that the controllers would make, and for every other workload why it stays."""

import random
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from federation.api import Cluster, RebalancerStatus, ResourceBinding
from federation.objects.names import Key
from federation.planning import rehearsal
from federation.planning.output import write_json
from federation.planning.plan import Action, HubPlan
from federation.planning.planner import STAGES
from federation.settings import Switches
from reberth.records import OwnerReference
from tests.support.builders import Object
from tests.support.federation.clusters import AGGREGATED, DUPLICATED, DYNAMIC, groups
from tests.support.federation.copies import copy
from tests.support.federation.objects import as_template, policy, template
from tests.support.federation.objects import work as work_of
from tests.support.federation.planned import (
    OURS,
    RULES,
    ago,
    kept_by,
    member,
    ours,
    plan_of,
    steps_of,
    waits_of,
)
from tests.support.federation.rebalancers import at, rebalancer, well

DEPLOYMENT = Key("apps/v1", "Deployment", "default", "web")
WEB = DEPLOYMENT, template()
DONE = {"lastScheduledTime": ago(900), "schedulerObservedGeneration": 1}
TASK = {"fromCluster": "m1", "purgeMode": "Gracefully", "producer": "taint-manager", "replicas": 2}
SPACIOUS = [member("m1", 300), member("m2", 100)]


def test_every_stage_is_a_controller_that_can_be_disabled() -> None:
    assert STAGES.keys() <= set(Switches.__struct_fields__)
    assert all(name in RULES.controllers for name in STAGES)


def test_a_new_binding_is_scheduled() -> None:
    plan = plan_of(SPACIOUS, [ours("web", 4, DYNAMIC)])
    assert steps_of(plan) == [("Schedule", "web-deployment", {"m1": 3, "m2": 1})]
    assert plan.bindings["default/web-deployment"].origin == ()


def test_nothing_happens_to_what_is_in_order_and_the_reason_is_told() -> None:
    plan = plan_of(SPACIOUS, [ours("web", 3, AGGREGATED, at={"m2": 3}, applied=AGGREGATED, status=DONE)])
    assert plan.steps == ()
    told = plan.bindings["default/web-deployment"]
    assert (told.reason, told.message) == (
        "Success",
        "Placement, replicas and clusters have not changed since it was scheduled.",
    )


def test_a_higher_priority_takes_the_room_first() -> None:
    first = ours("b", 3, DYNAMIC, schedulePriority={"priority": 10})
    plan = plan_of([member("m1", 4)], [ours("a", 3, DYNAMIC), first])
    assert steps_of(plan) == [("Schedule", "b-deployment", {"m1": 3})]
    told = plan.bindings["default/a-deployment"]
    assert (told.reason, told.to) == ("Unschedulable", ())
    assert told.message == "Clusters available replicas 1 are not enough to schedule."
    assert waits_of(plan, "a") == [("Clusters", None)]


def test_a_move_keeps_the_old_replicas_until_the_new_ones_are_ready() -> None:
    moving = ours("web", 2, {**AGGREGATED, "clusterAffinity": {"clusterNames": ["m2"]}}, at={"m1": 2})
    plan = plan_of(SPACIOUS, [replace(moving, metadata=replace(moving.metadata, annotations=None))])
    assert steps_of(plan) == [("Move", "web-deployment", {"m2": 2})]
    assert (kept_by(plan.steps[0]), plan.steps[0].until) == ({"m1": 2}, at(600))
    assert waits_of(plan, "web") == [("Handover", at(600))]


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


@pytest.mark.parametrize(
    ("failover", "until", "ready", "action"),
    [
        ({}, 600, {"m1": 3, "m2": 3}, "HandOver"),
        ({}, -60, {"m1": 3, "m2": 0}, "Return"),
        ({"failover": {"handover": {"onTimeout": "LetGo"}}}, -60, {"m1": 3, "m2": 0}, "LetGo"),
    ],
)
def test_a_handover_ends(failover: Object, until: int, ready: dict[str, int], action: str) -> None:
    plan = plan_of(SPACIOUS, [handed_over(until, ready, **failover)])
    assert [each[0] for each in steps_of(plan)] == [action]


def test_a_handover_that_can_neither_end_nor_return_is_told() -> None:
    pinned = {**AGGREGATED, "clusterAffinity": {"clusterNames": ["m2"]}}
    plan = plan_of(SPACIOUS, [handed_over(-60, {"m1": 3, "m2": 0}, placement=pinned)])
    assert plan.steps == ()
    assert waits_of(plan, "web") == [("Handover", None)]


def test_what_the_works_say_is_newer() -> None:
    web = handed_over(600, {"m1": 3, "m2": 0})
    annotations = {
        "resourcebinding.karmada.io/namespace": "default",
        "resourcebinding.karmada.io/name": "web-deployment",
    }
    meta = {"name": "web", "namespace": "karmada-es-m2", "annotations": annotations}
    reported = {"health": "Healthy", "identifier": {}, "status": {"availableReplicas": 3}}
    applied = [{"type": "Applied", "status": "True", "reason": "x", "message": ""}]
    one = work_of({"metadata": meta, "spec": {}}, manifestStatuses=[reported], conditions=applied)
    assert [each[0] for each in steps_of(plan_of(SPACIOUS, [web], works=[one]))] == ["HandOver"]


def handed_over(
    until: float, ready: dict[str, int], *, placement: Object = AGGREGATED, **more: Any
) -> ResourceBinding:
    old = [{"name": "m1", "replicas": 3}]
    handover = {"timeoutSeconds": 600, "clusters": old, "until": at(until), "origin": old}
    return ours(
        "web",
        3,
        placement,
        at={"m2": 3},
        applied=placement,
        handover=handover,
        status={**DONE, **well(**ready)},
        **more,
    )


def away(name: str, since: float | None) -> ResourceBinding:
    placement = {**groups(primary=["m1"], backup=["m2"]), **DUPLICATED}
    noted = {"failback": {"affinityName": "primary", "since": ago(since)}} if since is not None else {}
    status = {**DONE, "schedulerObservingAffinityName": "backup", **noted}
    failover = {"failback": {"stabilizationSeconds": 300}}
    return ours(name, 3, placement, at={"m2": 3}, applied=placement, failover=failover, status=status)


def test_a_workload_returns_after_the_stabilization_time() -> None:
    plan = plan_of(SPACIOUS, [away("web", 400)])
    assert steps_of(plan) == [("FailBack", "web-deployment", {"m1": 3})]
    assert kept_by(plan.steps[0]) == {"m2": 3}


@pytest.mark.parametrize(("since", "until"), [(100, 200), (None, 300)])
def test_until_then_it_waits(since: float | None, until: float) -> None:
    plan = plan_of(SPACIOUS, [away("web", since)])
    assert plan.steps == ()
    assert waits_of(plan, "web") == [("Stabilization", at(until))]


def test_no_more_workloads_return_than_may_at_once() -> None:
    plan = plan_of(SPACIOUS, [away("a", 400), away("b", 400)], RULES._replace(failback_at_once=1))
    assert steps_of(plan) == [("FailBack", "a-deployment", {"m1": 3})]
    assert waits_of(plan, "b") == [("Turn", None)]


def test_a_rebalancer_moves_its_workloads_one_after_the_other() -> None:
    bindings = [
        ours(name, 4, DYNAMIC, at={"m2": 4}, applied=DYNAMIC, status={**DONE, **well(m2=4)})
        for name in ("a", "b")
    ]
    one = rebalancer("a", "b", "none", maxMovingReplicas=4)
    plan = plan_of(SPACIOUS, bindings, rebalancers=[one])
    assert steps_of(plan) == [("Rebalance", "a-deployment", {"m1": 3, "m2": 1})]
    results = {each.workload.name: (each.result, each.message) for each in plan.rebalancers["demo"]}
    assert results["b"] == (None, "Waiting until fewer replicas are moving.")
    assert results["none"][0] == "Failed"


def test_a_dry_run_is_answered_without_a_step() -> None:
    web = ours("web", 4, DYNAMIC, at={"m2": 4}, applied=DYNAMIC, status=DONE)
    plan = plan_of(SPACIOUS, [web], rebalancers=[rebalancer("web", dryRun=True)])
    assert plan.steps == ()
    (entry,) = plan.rebalancers["demo"]
    assert (entry.reason, [each.name for each in entry.to or ()]) == ("DryRun", ["m1", "m2"])
    answered = replace(rebalancer("web", dryRun=True), status=plan_status(plan))
    assert plan_of(SPACIOUS, [web], rebalancers=[answered]).rebalancers == plan.rebalancers


def plan_status(plan: HubPlan) -> RebalancerStatus:
    return RebalancerStatus(plan.rebalancers["demo"], 1, at(0))


def test_a_policy_makes_the_binding_of_what_it_selects() -> None:
    plan = plan_of(
        SPACIOUS, [], policies=[policy("all", placement=DYNAMIC)], templates=[(DEPLOYMENT, template())]
    )
    assert steps_of(plan) == [("Bind", "web-deployment", {"m1": 2, "m2": 1})]
    assert plan.bindings["default/web-deployment"].origin is None


def test_a_binding_follows_its_policy_and_moves() -> None:
    web = ours("web", 3, AGGREGATED, at={"m1": 3}, applied=AGGREGATED, status=DONE)
    only = {**AGGREGATED, "clusterAffinity": {"clusterNames": ["m2"]}}
    plan = plan_of(
        SPACIOUS, [web], policies=[policy("all", placement=only)], templates=[(DEPLOYMENT, template())]
    )
    assert steps_of(plan) == [("Update", "web-deployment", {}), ("Move", "web-deployment", {"m2": 3})]


def test_a_binding_without_its_template_is_deleted_if_all_templates_are_known() -> None:
    web = ours("web", 3, AGGREGATED, at={"m1": 3}, applied=AGGREGATED, status=DONE, uid="u1")
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u1"}
    owned = replace(web.metadata, owner_references=(msgspec.convert(owner, OwnerReference),))
    gone, other = replace(web, metadata=owned), [policy("other", {"name": "other"})]
    known = frozenset([("apps/v1", "Deployment")])
    assert steps_of(plan_of(SPACIOUS, [gone], policies=other)) == []
    plan = plan_of(SPACIOUS, [gone], policies=other, complete=known)
    assert steps_of(plan) == [("Unbind", "web-deployment", {})]
    assert plan.bindings["default/web-deployment"].to is None


@pytest.mark.parametrize(
    ("spec", "labels", "message"),
    [
        ({"suspension": {"scheduling": True}}, OURS, "Scheduling is suspended."),
        ({"schedulerName": "other"}, OURS, "the scheduler other decides about it"),
        ({}, {}, "no policy has claimed it"),
    ],
)
def test_what_nobody_schedules_says_so(spec: Object, labels: dict[str, str], message: str) -> None:
    web = ours("web", 3, DYNAMIC, **spec)
    web = replace(web, metadata=replace(web.metadata, labels=labels))
    plan = plan_of(SPACIOUS, [web])
    told = plan.bindings["default/web-deployment"]
    assert (plan.steps, told.reason, told.message) == ((), "NotScheduled", message)


def test_a_binding_of_another_namespaces_object_is_not_touched() -> None:
    web = ours("web", 3, DYNAMIC)
    foreign = replace(web.spec, resource=replace(web.spec.resource, namespace="kube-system"))
    plan = plan_of(SPACIOUS, [replace(web, spec=foreign)])
    assert plan.steps == ()
    assert "is not in the binding's namespace" in plan.bindings["default/web-deployment"].message


def test_one_object_that_cannot_be_read_is_warned_about_and_fails_alone() -> None:
    bad = ours(
        "bad",
        3,
        AGGREGATED,
        at={"m2": 3},
        applied=AGGREGATED,
        status=DONE,
        handover={"clusters": [{"name": "m1", "replicas": 1}], "until": "noon"},
    )
    full = ours("full", 1, DYNAMIC, replicaRequirements={"resourceRequest": {"cpu": "x"}})
    plan = plan_of([*SPACIOUS, member("m3", "x")], [bad, full, ours("web", 1, AGGREGATED)])  # type: ignore[arg-type]
    assert steps_of(plan) == [("Schedule", "web-deployment", {"m1": 1})]
    assert plan.bindings["default/full-deployment"].reason == "SchedulerError"
    told = " ".join(plan.warnings)
    assert "spec.handover.until: invalid time 'noon'" in told
    assert "Cluster m3: status.resourceSummary: invalid quantity 'x'" in told


def test_a_template_that_cannot_be_read_gets_no_binding_and_fails_alone() -> None:
    pod = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "bad"}}}]}}
    wire = {"metadata": {"name": "odd", "namespace": "default"}, "spec": {"replicas": 1, "template": pod}}
    bad = DEPLOYMENT._replace(name="odd"), as_template(wire)
    plan = plan_of(SPACIOUS, [], policies=[policy("all", placement=DYNAMIC)], templates=[bad, WEB])
    assert [each[1] for each in steps_of(plan) if each[0] == "Bind"] == ["web-deployment"]
    assert "'bad'" in " ".join(plan.warnings)


@pytest.mark.parametrize("is_ready", [True, False])
def test_a_member_whose_times_cannot_be_read_is_warned_about_and_fails_alone(*, is_ready: bool) -> None:
    rules = RULES._replace(lost_after=60.0, brake_fraction=1.0)
    odd = member("m1", is_ready=is_ready)
    (ready,) = odd.status.conditions or ()
    conditions = (replace(ready, last_transition_time="noon"),)
    odd = replace(odd, status=replace(odd.status, conditions=conditions))
    plan = plan_of([odd, member("m2", is_ready=False)], [], rules)
    assert [each[1] for each in steps_of(plan)] == ["m2"]
    (told,) = plan.warnings
    assert told.startswith("Cluster m1: invalid time 'noon'")


def test_a_return_whose_end_cannot_be_read_fails_alone() -> None:
    handover = {"clusters": [{"name": "m1", "replicas": 1}], "until": "noon"}
    bad = away("bad", 400)
    bad = replace(
        bad, spec=msgspec.convert({**msgspec.to_builtins(bad.spec), "handover": handover}, type(bad.spec))
    )
    plan = plan_of(SPACIOUS, [bad, ours("web", 1, AGGREGATED)])
    assert "until" in " ".join(plan.warnings)
    assert ("Schedule", "web-deployment", {"m1": 1}) in steps_of(plan)


def test_a_rebalancer_that_nobody_has_created_yet_is_created_now() -> None:
    web = ours("web", 4, DYNAMIC, at={"m2": 4}, applied=DYNAMIC, status=DONE)
    new = rebalancer("web")
    new = replace(new, metadata=replace(new.metadata, creation_timestamp=None))
    plan = plan_of(SPACIOUS, [web], rebalancers=[new])
    assert (steps_of(plan)[0][0], plan.warnings) == ("Rebalance", ())


def test_a_disabled_controller_does_nothing() -> None:
    rules = RULES._replace(controllers=frozenset(["detector"]))
    policies, templates = [policy("all", placement=DYNAMIC)], [(DEPLOYMENT, template())]
    plan = plan_of(SPACIOUS, [ours("new", 1, DYNAMIC)], rules, policies=policies, templates=templates)
    assert steps_of(plan) == [("Bind", "web-deployment", {})]
    web = ours("web", 4, DYNAMIC, at={"m2": 4}, applied=DYNAMIC, status=DONE)
    only = RULES._replace(controllers=frozenset(["rebalancer"]))
    asked = plan_of(SPACIOUS, [web], only, rebalancers=[rebalancer("web")])
    assert steps_of(asked) == [("Rebalance", "web-deployment", {"m2": 4})]


def test_the_order_of_the_input_changes_no_byte() -> None:
    dice = random.Random(1)
    clusters = [member(f"m{number}", 50 + number) for number in range(6)]
    bindings = [ours(f"w{number}", 1 + number % 5, DYNAMIC) for number in range(30)]
    bindings += [away(f"h{number}", 400) for number in range(5)]
    first = write_json(plan_of(clusters, bindings))
    for _ in range(5):
        dice.shuffle(clusters)
        dice.shuffle(bindings)
        assert write_json(plan_of(clusters, bindings)) == first


def test_a_step_that_cannot_be_decided_says_why() -> None:
    only = {**DYNAMIC, "clusterAffinity": {"clusterNames": ["m9"]}}
    web = ours("web", 4, only, at={"m2": 4}, applied=only, status=DONE)
    plan = plan_of(SPACIOUS, [web], rebalancers=[rebalancer("web")])
    (step, *_) = plan.steps
    assert step.action is Action.REBALANCE
    assert "it stays: 0/2 clusters are available" in step.reason


def test_a_rebalancer_selects_by_the_labels_of_the_templates() -> None:
    web = ours("web", 4, DYNAMIC, at={"m2": 4}, applied=DYNAMIC, status=DONE)
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"a": "b"}}}
    asked = rebalancer(workloadSelectors=[selector])
    found = [
        (DEPLOYMENT, template(labels={"a": "b"})),
        (DEPLOYMENT._replace(name="other"), template("other")),
    ]
    plan = plan_of(SPACIOUS, [web], templates=found, rebalancers=[asked])
    assert [each[0] for each in steps_of(plan)] == ["Rebalance"]


def test_an_invalid_time_of_an_eviction_is_warned_about() -> None:
    task = {**TASK, "creationTimestamp": "noon"}
    web = ours("web", 2, AGGREGATED, at={"m2": 2}, applied=AGGREGATED, gracefulEvictionTasks=[task])
    assert "default/web-deployment: invalid time 'noon'" in plan_of(SPACIOUS, [web]).warnings[0]


def test_a_binding_that_is_being_deleted_is_named_so() -> None:
    web = ours("web", 2, AGGREGATED)
    web = replace(web, metadata=replace(web.metadata, deletion_timestamp=ago(1)))
    assert plan_of(SPACIOUS, [web]).bindings["default/web-deployment"].message == "it is being deleted"


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


def test_a_failback_that_has_no_room_any_more_waits_for_nothing() -> None:
    plan = plan_of([member("m1", 1), member("m2", 100)], [away("web", 400)])
    assert (plan.steps, waits_of(plan, "web")) == ((), [])


def test_a_plan_that_does_not_settle_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "MOST_ROUNDS", 1)
    plan = plan_of(SPACIOUS, [ours("web", 4, DYNAMIC)])
    assert plan.warnings == ("not settled after 1 rounds at 2026-11-18T12:00:00Z",)
