"""Replicas that get no node go to clusters with room, as a plan shows; those that are available stay."""

from typing import Any

import msgspec
import pytest

from federation.failover.pending_replicas import PendingRules
from federation.objects.resources import HeldWork
from federation.planning.plan import HubPlan
from tests.support.federation.clusters import AGGREGATED, DUPLICATED, DYNAMIC
from tests.support.federation.copies import copy
from tests.support.federation.planned import RULES, TASK, ago, member, ours, plan_of, steps_of

GIVING = RULES._replace(pending=PendingRules(300))
FAILING = {"decisionConditions": {"tolerationSeconds": 60}}
MEMBERS = [member("m1"), member("m2")]


def stuck(cluster: str, pending: int, available: int, *more: Any, waiting: bool = False) -> HeldWork:
    """The Work of a copy with three replicas; so many of its pods have had no node for long."""
    made: Any = msgspec.json.decode(msgspec.json.encode(copy(cluster, available)))
    reason = "Waiting" if waiting else "Stuck"
    text = f"{pending} of its pods have no node: 1 Insufficient cpu."
    said = {"type": "Unschedulable", "status": "True", "reason": reason, "message": text}
    made["status"]["conditions"] += [said, *more]
    return msgspec.json.decode(msgspec.json.encode(made), type=HeldWork)


def give(
    *works: HeldWork, members: Any = MEMBERS, at: Any = None, rules: Any = GIVING, **more: Any
) -> HubPlan:
    placement = more.pop("placement", AGGREGATED)
    at = at or {"m1": 3}
    one = ours("web", sum(at.values()), placement, at=at, applied=placement, **more)
    return plan_of(members, [one], rules, works=works)


def test_replicas_that_are_stuck_go_elsewhere_and_the_available_ones_stay() -> None:
    plan = give(stuck("m1", 1, 2))
    assert steps_of(plan) == [("Give", "web-deployment", {"m1": 2, "m2": 1})]
    assert plan.steps[0].reason == "replicas without a node: 1 in m1"
    assert plan.steps[0].kept is None


def test_all_of_them_may_go() -> None:
    assert steps_of(give(stuck("m1", 3, 0))) == [("Give", "web-deployment", {"m2": 3})]


def test_available_ones_are_never_given_whatever_is_said_to_be_stuck() -> None:
    assert steps_of(give(stuck("m1", 3, 2))) == [("Give", "web-deployment", {"m1": 2, "m2": 1})]
    assert steps_of(give(stuck("m1", 2, 3))) == []


def test_so_many_are_given_as_there_is_room_for() -> None:
    plan = give(stuck("m1", 3, 0), members=[member("m1"), member("m2", 2)])
    assert steps_of(plan) == [("Give", "web-deployment", {"m1": 1, "m2": 2})]


def test_so_many_are_given_as_wait_though_more_are_not_available() -> None:
    assert steps_of(give(stuck("m1", 1, 1))) == [("Give", "web-deployment", {"m1": 2, "m2": 1})]


def test_without_room_they_stay_and_the_plan_says_so() -> None:
    plan = give(stuck("m1", 1, 2), members=[member("m1"), member("m2", 0)])
    assert steps_of(plan) == []
    (wait,) = plan.bindings["default/web-deployment"].waits
    assert wait.message == "Replicas without a node (m1:1) stay: no other cluster has room for them."


def test_two_clusters_in_which_replicas_are_stuck_do_not_exchange_them() -> None:
    works = [stuck("m1", 1, 2), stuck("m2", 1, 2)]
    both = {"m1": 3, "m2": 3}
    assert steps_of(give(*works, at=both)) == []
    plan = give(*works, at=both, members=[*MEMBERS, member("m3")])
    assert steps_of(plan) == [("Give", "web-deployment", {"m1": 2, "m2": 2, "m3": 2})]


@pytest.mark.parametrize(
    ("age", "wanted"), [(599, []), (601, [("Give", "web-deployment", {"m1": 1, "m2": 2})])]
)
def test_a_cluster_from_which_they_were_taken_gets_none_of_them_for_a_while(age: int, wanted: Any) -> None:
    annotation = {"reberth.dev/replicas-taken": f'{{"m1": "{ago(age)}"}}'}
    one: Any = msgspec.json.decode(
        msgspec.json.encode(ours("web", 3, AGGREGATED, at={"m2": 3}, applied=AGGREGATED))
    )
    one["metadata"]["annotations"] |= annotation
    binding = msgspec.json.decode(msgspec.json.encode(one), type=type(ours("web", 3, AGGREGATED)))
    assert steps_of(plan_of(MEMBERS, [binding], GIVING, works=[stuck("m2", 1, 2)])) == wanted


@pytest.mark.parametrize(
    "more",
    [
        {"rules": RULES},
        {"placement": DUPLICATED},
        {"gracefulEvictionTasks": [TASK | {"fromCluster": "m2"}]},
        {"handover": {"clusters": [{"name": "m2", "replicas": 1}], "until": ago(-60)}},
        {"suspension": {"scheduling": True}},
        {"schedulerName": "somebody-else"},
        {"failover": {"application": FAILING}},
        {"members": [member("m1", is_ready=False), member("m2")]},
    ],
    ids=["off", "Duplicated", "evicted", "handed over", "suspended", "not ours", "failover", "not Ready"],
)
def test_nothing_is_given(more: Any) -> None:
    assert all(step != "Give" for step, *_ in steps_of(give(stuck("m1", 1, 2), **more)))


def test_nor_what_waits_only_for_a_while_or_is_rolled_out() -> None:
    assert steps_of(give(stuck("m1", 1, 2, waiting=True))) == []
    rolling = {"type": "Failing", "status": "False", "reason": "RollingOut", "lastTransitionTime": ago(9)}
    assert steps_of(give(stuck("m1", 1, 2, rolling))) == []


def test_dynamic_weights_are_divided_by_room_too() -> None:
    plan = give(stuck("m1", 1, 2), placement=DYNAMIC)
    assert steps_of(plan) == [("Give", "web-deployment", {"m1": 2, "m2": 1})]


@pytest.mark.parametrize(("age", "wanted"), [(359, []), (361, [("FailOver", "web-deployment", {"m2": 3})])])
def test_failover_waits_no_longer_for_it_than_replicas_have_to_wait_to_be_given(
    age: int, wanted: Any
) -> None:
    since = {"type": "Failing", "status": "True", "lastTransitionTime": ago(age), "reason": "R"}
    failover = {"application": {**FAILING, "preserveAvailableReplicas": True}}
    plan = give(stuck("m1", 1, 2, since, waiting=True), failover=failover)
    assert steps_of(plan) == wanted
    if not wanted:
        (wait,) = plan.bindings["default/web-deployment"].waits
        assert wait.until == ago(-1)


@pytest.mark.parametrize(
    ("preserve", "waiting", "room", "wanted"),
    [
        (False, False, 9, ("FailOver", {"m2": 3})),
        (True, False, 9, ("Give", {"m1": 2, "m2": 1})),
        (True, True, 9, None),
        (True, False, 0, None),
    ],
)
def test_failover_waits_for_it_if_it_is_to_keep_available_replicas(
    *, preserve: bool, waiting: bool, room: int, wanted: Any
) -> None:
    since = {"type": "Failing", "status": "True", "lastTransitionTime": ago(99), "reason": "R"}
    failover = {"application": {**FAILING, "preserveAvailableReplicas": preserve}}
    plan = give(
        stuck("m1", 1, 2, since, waiting=waiting),
        members=[member("m1"), member("m2", room)],
        failover=failover,
    )
    assert [(step, where) for step, _, where in steps_of(plan)] == ([wanted] if wanted else [])
    if wanted is None:
        reason = "PendingReplicas" if waiting else "NoSubstitute"
        assert any(each.message.startswith(reason) for each in plan.bindings["default/web-deployment"].waits)
