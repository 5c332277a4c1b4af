"""A plan names each step that the controllers would make, and for every other workload why it stays."""

import random

import pytest
from msgspec.structs import replace

from federation.planning import rehearsal
from federation.planning.output import write_json
from federation.planning.planner import STAGES
from federation.settings import Switches
from tests.support.builders import Object
from tests.support.federation.clusters import AGGREGATED, DYNAMIC
from tests.support.federation.objects import policy, template
from tests.support.federation.planned import (
    DEPLOYMENT,
    DONE,
    OURS,
    RULES,
    SPACIOUS,
    ago,
    away,
    kept_by,
    member,
    ours,
    plan_of,
    steps_of,
    waits_of,
)
from tests.support.federation.rebalancers import at, rebalancer


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


def test_a_binding_that_is_being_deleted_is_named_so() -> None:
    web = ours("web", 2, AGGREGATED)
    web = replace(web, metadata=replace(web.metadata, deletion_timestamp=ago(1)))
    assert plan_of(SPACIOUS, [web]).bindings["default/web-deployment"].message == "it is being deleted"


def test_a_plan_that_does_not_settle_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "MOST_ROUNDS", 1)
    plan = plan_of(SPACIOUS, [ours("web", 4, DYNAMIC)])
    assert plan.warnings == ("not settled after 1 rounds at 2026-11-18T12:00:00Z",)
