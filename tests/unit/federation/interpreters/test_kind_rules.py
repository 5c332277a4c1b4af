"""What the federation gets from the scripts of a kind, and what it does not take."""

from typing import Any

import msgspec
import pytest

from federation.api import ResourceInterpreterCustomization
from federation.interpreters.kind_rules import KindRules, ReplicaAnswer
from federation.interpreters.operations import FORMS, Operation
from federation.interpreters.sandbox import ScriptFailure
from tests.support.builders import Object

GAME = ("example.com/v1", "Game")
HEAD: Object = {"apiVersion": GAME[0], "kind": GAME[1], "metadata": {"name": "chess", "labels": {"a": "1"}}}


def rules(**bodies: str) -> KindRules:
    made = KindRules()
    scripts = {}
    for name, body in bodies.items():
        form = FORMS[Operation[name.upper()]]
        scripts[form.field] = {"luaScript": f"function {form.function}(a, b) {body} end"}
    spec = {"target": {"apiVersion": GAME[0], "kind": GAME[1]}, "customizations": scripts}
    wire = {"metadata": {"name": "games"}, "spec": spec}
    made.load([msgspec.convert(wire, ResourceInterpreterCustomization)])
    return made


def fails(found: Any, reason: str, made: KindRules) -> bool:
    (told,) = made.interpreters.list_failures()["games"]
    return isinstance(found, ScriptFailure) and reason in found.reason and reason in told


@pytest.mark.parametrize(
    ("body", "health"),
    [
        ("return true", "Healthy"),
        ("return false", "Unhealthy"),
        ("return nil", "Unknown"),
        ("return 1", "Unknown"),
        ("error('no')", "Unknown"),
        ("while true do end", "Unknown"),
    ],
)
def test_health_is_what_the_script_says(body: str, health: str) -> None:
    made = rules(health=body)
    assert made.health[GAME](HEAD) == health
    assert bool(made.interpreters.list_failures()) == (health == "Unknown")


def test_replicas_and_what_each_needs() -> None:
    needs = "{resourceRequest = {cpu = '1'}, nodeClaim = {nodeSelector = {a = 'b'}}}"
    said = rules(replicas=f"return 3, {needs}").count_replicas(GAME, HEAD)
    assert isinstance(said, ReplicaAnswer)
    assert said.replicas == 3
    assert said.requirements is not None
    assert said.requirements.resource_request == {"cpu": "1"}
    assert rules(replicas="return 2").count_replicas(GAME, HEAD) == (2, None)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return nil", "a number of replicas was expected, not nil"),
        ("return true", "not a boolean"),
        ("return 1.5", "not 1.5"),
        ("return -1", "not -1"),
        ("return 2^40", "not 1099511627776"),
        ("return '3'", "not text"),
        ("return 1, {nodeClaim = 7}", "the requirements of a replica: Expected `object | null`, got `int`"),
    ],
)
def test_replicas_that_are_none(body: str, reason: str) -> None:
    made = rules(replicas=body)
    assert fails(made.count_replicas(GAME, HEAD), reason, made)


def test_revised_object_stays_what_it_is() -> None:
    body = (
        "a.spec = {size = b} a.kind = 'Other' a.metadata = {name = 'x', labels = {a = '2', b = '3'}} return a"
    )
    said = rules(revision=body).revise(HEAD, 4)
    metadata = {"name": "chess", "labels": {"a": "1", "b": "3"}}
    assert said == {**HEAD, "metadata": metadata, "spec": {"size": 4}}
    made = rules(revision="return 3")
    assert fails(made.revise(HEAD, 4), "an object was expected, not 3", made)


def test_status_may_be_part_of_it() -> None:
    made = rules(status="return {ready = a.status.ready}")
    assert made.reflect_status({**HEAD, "status": {"ready": 2, "more": 3}}) == {"ready": 2}
    other = rules(status="return nil")
    assert fails(other.reflect_status(HEAD), "an object was expected, not nil", other)


def test_statuses_are_aggregated() -> None:
    body = (
        "a.status = {sum = 0} for _, c in ipairs(b) do a.status.sum = a.status.sum + c.status.n end return a"
    )
    items = [{"clusterName": "m1", "status": {"n": 2}}, {"clusterName": "m2", "status": {"n": 3}}]
    assert rules(aggregation=body).aggregate(HEAD, items) == {"sum": 5}
    made = rules(aggregation="return a")
    assert fails(made.aggregate(HEAD, []), "a status was expected, not nil", made)


def test_dependencies_are_references() -> None:
    found = "{{apiVersion = 'v1', kind = 'Secret', name = 'a', namespace = 'b'}}"
    said = rules(dependencies=f"return {found}").find_dependencies(GAME, HEAD)
    assert said == [{"apiVersion": "v1", "kind": "Secret", "name": "a", "namespace": "b"}]
    assert rules(dependencies="return {}").find_dependencies(GAME, HEAD) == []
    assert rules(dependencies="return nil").find_dependencies(GAME, HEAD) == []
    made = rules(dependencies="return {{kind = 'Secret'}}")
    assert fails(made.find_dependencies(GAME, HEAD), "a list of apiVersion, kind, namespace and name", made)
    other = rules(dependencies="error('no')")
    assert fails(other.find_dependencies(GAME, HEAD), "no", other)


def test_copy_keeps_what_the_script_says() -> None:
    found = {**HEAD, "spec": {"size": 9}}
    said = rules(retention="a.spec.size = b.spec.size return a").retain({**HEAD, "spec": {"size": 1}}, found)
    assert said == found
