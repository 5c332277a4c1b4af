"""Handovers and failback in a plan: which end, which workloads return, and what they wait for."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from federation.api import ResourceBinding
from tests.support.builders import Object
from tests.support.federation.clusters import AGGREGATED
from tests.support.federation.objects import work as work_of
from tests.support.federation.planned import (
    DONE,
    RULES,
    SPACIOUS,
    away,
    kept_by,
    member,
    ours,
    plan_of,
    steps_of,
    waits_of,
)
from tests.support.federation.rebalancers import at, well


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


def test_a_return_whose_end_cannot_be_read_fails_alone() -> None:
    handover = {"clusters": [{"name": "m1", "replicas": 1}], "until": "noon"}
    bad = away("bad", 400)
    bad = replace(
        bad, spec=msgspec.convert({**msgspec.to_builtins(bad.spec), "handover": handover}, type(bad.spec))
    )
    plan = plan_of(SPACIOUS, [bad, ours("web", 1, AGGREGATED)])
    assert "until" in " ".join(plan.warnings)
    assert ("Schedule", "web-deployment", {"m1": 1}) in steps_of(plan)


def test_a_failback_that_has_no_room_any_more_waits_for_nothing() -> None:
    plan = plan_of([member("m1", 1), member("m2", 100)], [away("web", 400)])
    assert (plan.steps, waits_of(plan, "web")) == ((), [])
