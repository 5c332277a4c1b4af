"""A plan says which workloads leave a cluster because they fail there, and why others stay."""

from collections.abc import Collection
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from federation.api import ResourceInterpreterCustomization
from federation.api.clusters import ApiEnablement
from federation.failover.application_failover import FailoverReason
from federation.failover.storm_brake import StormBrake
from federation.objects.names import Key
from federation.objects.resources import HeldWork
from tests.support.federation.clusters import AGGREGATED
from tests.support.federation.copies import copy
from tests.support.federation.planned import ago, member, ours, plan_of, steps_of, waits_of
from tests.support.federation.rebalancers import at as in_seconds

FAILOVER = {"application": {"decisionConditions": {"tolerationSeconds": 60}}}
SPACIOUS = [member("m1"), member("m2")]


def failing(name: str, cluster: str, since: float, status: str = "True") -> HeldWork:
    """The Work of a copy that has been failing for so many seconds."""
    made: Any = msgspec.json.decode(msgspec.json.encode(copy(cluster, 3 if status == "False" else 0)))
    made["metadata"]["name"] = f"{name}-{cluster}"
    made["metadata"]["annotations"]["resourcebinding.karmada.io/name"] = f"{name}-deployment"
    condition = {"type": "Failing", "status": status, "lastTransitionTime": ago(since), "reason": "R"}
    made["status"]["conditions"] = [condition]
    return msgspec.json.decode(msgspec.json.encode(made), type=HeldWork)


def at_home(name: str, **more: Any) -> Any:
    return ours(name, 3, AGGREGATED, at={"m1": 3}, applied=AGGREGATED, failover=FAILOVER, **more)


def test_a_workload_that_is_due_leaves() -> None:
    plan = plan_of(SPACIOUS, [at_home("web")], works=[failing("web", "m1", 61)])
    assert steps_of(plan) == [("FailOver", "web-deployment", {"m2": 3})]
    assert "it fails in m1" in plan.steps[0].reason
    assert waits_of(plan, "web") == [("Eviction", in_seconds(600))]


def test_one_whose_health_a_script_tells_leaves_too() -> None:
    script = {"luaScript": "function InterpretHealth(o) return o.status.ready end"}
    target = {"apiVersion": "example.com/v1", "kind": "Game"}
    spec = {"target": target, "customizations": {"healthInterpretation": script}}
    told = msgspec.convert({"metadata": {"name": "games"}, "spec": spec}, ResourceInterpreterCustomization)
    one = at_home("web")
    resource = replace(one.spec.resource, api_version="example.com/v1", kind="Game")
    game = replace(one, spec=replace(one.spec, resource=resource))
    works = [failing("web", "m1", 61)]
    games = {"groupVersion": "example.com/v1", "resources": [{"kind": "Game"}]}
    enabled = msgspec.convert([games], tuple[ApiEnablement, ...])
    members = [replace(each, status=replace(each.status, api_enablements=enabled)) for each in SPACIOUS]
    assert steps_of(plan_of(members, [game], works=works)) == []
    plan = plan_of(members, [game], works=works, interpreters=[told])
    assert steps_of(plan) == [("FailOver", "web-deployment", {"m2": 3})]


def test_one_that_is_tolerated_waits() -> None:
    plan = plan_of(SPACIOUS, [at_home("web")], works=[failing("web", "m1", 20)])
    assert plan.steps == ()
    assert waits_of(plan, "web") == [("Failover", in_seconds(40))]


def test_what_holds_one_that_is_due_is_said() -> None:
    plan = plan_of([member("m1"), member("m2", 1)], [at_home("web")], works=[failing("web", "m1", 99)])
    assert plan.steps == ()
    (wait,) = plan.bindings["default/web-deployment"].waits
    assert wait.message.startswith(f"{FailoverReason.NO_SUBSTITUTE}: It fails in m1")


def test_in_a_storm_nothing_moves() -> None:
    names = [f"w{number:02}" for number in range(12)]
    works = [failing(name, f"m{number % 2 + 1}", 99) for number, name in enumerate(names)]
    bindings = [
        ours(name, 3, AGGREGATED, at={f"m{number % 2 + 1}": 3}, applied=AGGREGATED, failover=FAILOVER)
        for number, name in enumerate(names)
    ]
    plan = plan_of(SPACIOUS, bindings, works=works)
    assert plan.steps == ()
    assert all(each.waits[0].message.startswith("Storm") for each in plan.bindings.values())


def test_it_returns_to_an_old_copy_that_is_well() -> None:
    task = {
        "fromCluster": "m1",
        "purgeMode": "Gracefully",
        "producer": "resource-binding-application-failover-controller",
        "reason": "ApplicationFailure",
        "replicas": 3,
        "creationTimestamp": ago(60),
        "clustersBeforeFailover": ["m1"],
    }
    history = [{"clusterName": "m1", "creationTimestamp": ago(60), "reason": "ApplicationFailure"}]
    moved = ours(
        "web",
        3,
        AGGREGATED,
        at={"m2": 3},
        applied=AGGREGATED,
        failover=FAILOVER,
        gracefulEvictionTasks=[task],
        activeEvictionHistory=history,
    )
    works = [failing("web", "m1", 30, "False"), failing("web", "m2", 30)]
    plan = plan_of(SPACIOUS, [moved], works=works)
    assert steps_of(plan) == [("WithdrawEviction", "web-deployment", {"m1": 3})]


def test_the_storm_is_looked_at_once_in_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, observe = [], StormBrake.observe

    def count(brake: StormBrake, key: Key, clusters: Collection[str] | None) -> None:
        seen.append(key)
        observe(brake, key, clusters)

    monkeypatch.setattr(StormBrake, "observe", count)
    names = [f"w{number:02}" for number in range(30)]
    works = [failing(name, "m1", 20) for name in names]
    plan = plan_of(SPACIOUS, [at_home(name) for name in names], works=works)
    assert all(waits_of(plan, name) == [("Failover", in_seconds(40))] for name in names)
    assert len(seen) <= 3 * len(names)
