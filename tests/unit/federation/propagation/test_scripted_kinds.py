"""A kind that users describe by scripts: replicas, copies, status and dependencies follow them."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from federation.api import ManifestStatus, ResourceInterpreterCustomization
from federation.interpreters.interpreters import Interpreters
from federation.interpreters.kind_rules import KindRules
from federation.interpreters.operations import FORMS, Operation
from federation.interpreters.sandbox import ScriptFailure
from federation.objects.names import Key
from federation.objects.resources import HeldWork
from federation.propagation.aggregation import change_template_status
from federation.propagation.binding import change_binding, write_binding
from federation.propagation.dependencies import find_dependencies
from federation.propagation.replica_demand import read_replica_demand
from federation.propagation.work_sync import ManifestOutcome, change_work_status, retain
from federation.propagation.works import plan_works, write_work
from reberth.values.object_error import ObjectError
from tests.support.builders import Object
from tests.support.federation.objects import NOW, as_template, claimed_binding, given, meta, policy

CHESS = Key("example.com/v1", "Game", "default", "chess")
BODIES = {
    Operation.REPLICAS: "return a.spec.size, {resourceRequest = {cpu = '2'}}",
    Operation.REVISION: "a.spec.size = b return a",
    Operation.HEALTH: "return a.status ~= nil and a.status.ready == a.spec.size",
    Operation.STATUS: "return {ready = a.status.ready, name = a.metadata.name}",
    Operation.AGGREGATION: (
        "a.status = {ready = 0} "
        "for _, c in ipairs(b) do a.status.ready = a.status.ready + c.status.ready end return a"
    ),
    Operation.DEPENDENCIES: (
        "return {{apiVersion = 'v1', kind = 'Secret', namespace = 'default', name = a.spec.key}, "
        "{apiVersion = 'v1', kind = 'Secret', namespace = 'elsewhere', name = 'other'}}"
    ),
    Operation.RETENTION: "a.spec.map = b.spec.map return a",
}


def rules(**wrong: str) -> KindRules:
    bodies = BODIES | {Operation[name.upper()]: body for name, body in wrong.items()}
    scripts = {
        FORMS[each].field: {"luaScript": f"function {FORMS[each].function}(a, b) {body} end"}
        for each, body in bodies.items()
    }
    spec = {"target": {"apiVersion": CHESS.api_version, "kind": CHESS.kind}, "customizations": scripts}
    made = KindRules(Interpreters(clock=lambda: 0.0))
    made.load([msgspec.convert({"metadata": {"name": "a"}, "spec": spec}, ResourceInterpreterCustomization)])
    return made


def game(size: int = 3, **more: Any) -> Any:
    wire = {"apiVersion": CHESS.api_version, "kind": CHESS.kind, "metadata": meta("chess", generation=2)}
    return as_template({**wire, "spec": {"size": size, "key": "door"}, **more})


def bound(**clusters: int) -> Any:
    resource = {"apiVersion": CHESS.api_version, "kind": CHESS.kind, "namespace": "default", "name": "chess"}
    return claimed_binding(
        name="chess-game", resource={**resource, "uid": "uid-chess"}, clusters=given(**clusters)
    )


def work(ready: int | None = None) -> HeldWork:
    wire = write_work(CHESS, bound(m1=2), game(), "m1", 2)
    identifier = {"ordinal": 0, "kind": CHESS.kind, "name": "chess"}
    told = [{"identifier": identifier, "status": {"ready": ready}}] if ready is not None else []
    wire = {**wire, "status": {"manifestStatuses": told}}
    return msgspec.json.decode(msgspec.json.encode(wire), type=HeldWork)


def told(found: Any, made: KindRules | None) -> Object:
    change = change_work_status(work(), [ManifestOutcome(CHESS, "games", found, None)], now=NOW, rules=made)
    assert change is not None
    (status,) = change["status"]["manifestStatuses"]
    return {name: status.get(name) for name in ("status", "health")}


def test_replicas_and_requirements_are_those_of_the_script() -> None:
    found = read_replica_demand(CHESS, game(), rules())
    assert found.replicas == 3
    assert found.requirements is not None
    assert (found.requirements.resource_request, found.requirements.namespace) == ({"cpu": "2"}, "default")
    assert read_replica_demand(CHESS, game()) == (0, None)
    with pytest.raises(ObjectError, match="InterpretReplica: GetReplicas:1: no"):
        read_replica_demand(CHESS, game(), rules(replicas="error('no')"))


def test_binding_has_the_replicas_of_the_script() -> None:
    assert write_binding(CHESS, game(), policy("a"), rules())["spec"]["replicas"] == 3
    change = change_binding(bound(m1=3), CHESS, game(size=5), policy("a"), rules())
    assert change is not None
    assert change["spec"]["replicas"] == 5


def test_copy_gets_the_replicas_of_its_cluster() -> None:
    created = plan_works(CHESS, bound(m1=2, m2=1), game(), {}, rules()).create
    sizes = {name: made["spec"]["workload"]["manifests"][0]["spec"]["size"] for name, made in created.items()}
    assert sizes == {"m1": 2, "m2": 1}
    manifest = created["m1"]["spec"]["workload"]["manifests"][0]
    assert manifest["metadata"]["labels"]["karmada.io/managed"] == "true"
    with pytest.raises(ObjectError, match="ReviseReplica: an object was expected, not nil"):
        plan_works(CHESS, bound(m1=2), game(), {}, rules(revision="return nil"))


def test_health_and_status_of_a_copy_are_those_of_the_scripts() -> None:
    found = game(size=2, status={"ready": 2, "more": "x"})
    assert told(found, rules()) == {"status": {"ready": 2, "name": "chess"}, "health": "Healthy"}
    assert told(game(size=2, status={"ready": 1}), rules())["health"] == "Unhealthy"
    assert told(found, None) == {"status": {"ready": 2, "more": "x"}, "health": "Healthy"}


def test_failing_scripts_leave_the_status_and_say_unknown() -> None:
    found = game(size=2, status={"ready": 2, "more": "x"})
    wrong = rules(health="error('no')", status="error('no')")
    assert told(found, wrong) == {"status": {"ready": 2, "more": "x"}, "health": "Unknown"}


def test_health_stays_as_told_while_a_script_may_not_run() -> None:
    found = [ManifestOutcome(CHESS, "games", game(size=2, status={"ready": 2}), None)]
    wrong = rules(health="while a.spec.size == 9 do end return true")
    identifier = {"ordinal": 0, "kind": CHESS.kind, "name": "chess"}
    had = work()
    for last in ("Unhealthy", "Healthy"):
        statuses = msgspec.convert([{"identifier": identifier, "health": last}], tuple[ManifestStatus, ...])
        one = replace(had, status=replace(had.status, manifest_statuses=statuses))
        assert told(game(size=9), wrong)["health"] == "Unknown"  # it pauses now
        change = change_work_status(one, found, now=NOW, rules=wrong)
        assert change is not None
        assert change["status"]["manifestStatuses"][0]["health"] == last
        wrong = rules(health="while a.spec.size == 9 do end return true")


def test_health_of_a_scripted_kind_has_a_clock() -> None:
    found = game(size=2, status={"ready": 1})
    outcomes = [ManifestOutcome(CHESS, "games", found, None)]
    change = change_work_status(work(), outcomes, now=NOW, rules=rules())
    without = change_work_status(work(), outcomes, now=NOW)
    assert change is not None
    assert without is not None
    assert len(change["status"]["conditions"]) > len(without["status"]["conditions"])


def test_status_of_the_template_is_that_of_the_script() -> None:
    works = {"m1": work(ready=2), "m2": work(ready=1)}
    change = change_template_status(CHESS, bound(m1=2, m2=1), game(), works, rules=rules())
    assert change == {"metadata": {"uid": "uid-chess"}, "status": {"ready": 3}}
    same = game(status={"ready": 3})
    assert change_template_status(CHESS, bound(m1=2, m2=1), same, works, rules=rules()) is None
    wrong = rules(aggregation="error('no')")
    assert change_template_status(CHESS, bound(m1=2, m2=1), game(), works, rules=wrong) is None


def test_dependencies_are_those_of_the_script_in_its_namespace() -> None:
    assert find_dependencies(CHESS, game(), rules()) == {Key("v1", "Secret", "default", "door")}
    assert find_dependencies(CHESS, game(), rules(dependencies="error('no')")) is None
    assert find_dependencies(CHESS, game()) == frozenset()


def test_copy_keeps_what_the_script_says() -> None:
    manifest = write_work(CHESS, bound(m1=2), game(), "m1", 2)["spec"]["workload"]["manifests"][0]
    found = as_template({**manifest, "spec": {"size": 9, "map": "old"}})
    kept = retain(manifest, found, rules())
    assert kept == {**manifest, "spec": {**manifest["spec"], "map": "old"}}
    assert retain(manifest, None, rules()) is manifest
    assert retain(manifest, found, KindRules()) is manifest
    assert isinstance(retain(manifest, found, rules(retention="error('no')")), ScriptFailure)
