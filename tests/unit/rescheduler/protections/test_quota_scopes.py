"""A ResourceQuota protects only the pods that it counts."""

from typing import Any

import pytest

from reberth.records import Pod, ResourceQuota
from reberth.selectors import SelectorError
from rescheduler.protections import refuse_protected
from rescheduler.protections.quota_scopes import counts
from tests.support.builders import as_record, container, pod
from tests.support.rescheduler.guardrails import Object, context_of, peer, place_of, quota, replica

SCOPES = (
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
)
USUAL = {"NotTerminating"}
FULL = ({"pods": "2"}, {"pods": "2"})


def scoped(*expressions: Object, scopes: tuple[str, ...] = ()) -> ResourceQuota:
    spec: dict[str, Any] = {"scopes": list(scopes)} if scopes else {}
    spec |= {"scopeSelector": {"matchExpressions": list(expressions)}} if expressions else {}
    return as_record(ResourceQuota, quota(*FULL, **spec))


def wanting(operator: str, *values: str, scope: str = "PriorityClass") -> Object:
    return {"scopeName": scope, "operator": operator, **({"values": list(values)} if values else {})}


def term(**fields: Any) -> Object:
    return {"topologyKey": "zone", **fields}


def near(kind: str, one: Object, *, preferred: bool = False) -> Object:
    if preferred:
        terms = [{"weight": 1, "podAffinityTerm": one}]
        return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": terms}}}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [one]}}}


def asking(cpu: str | None = None, **resources: Any) -> Object:
    return {"containers": [container(cpu=cpu)], **resources}


BEST, WORSE = USUAL | {"BestEffort"}, USUAL | {"NotBestEffort"}
FAR = {"CrossNamespacePodAffinity"}
PODS: list[tuple[str, Object, set[str]]] = [
    ("no requests", {}, BEST),
    ("cpu", {"cpu": "1m"}, WORSE),
    ("memory", {"memory": "1"}, WORSE),
    ("no cpu at all", {"cpu": "0"}, BEST),
    ("another resource", {"containers": [container() | {"resources": {"requests": {"gpu": "1"}}}]}, BEST),
    ("an init container", {"initContainers": [container("i", cpu="1")]}, WORSE),
    ("the whole pod", {"resources": {"requests": {"cpu": "1"}}}, WORSE),
    ("the whole pod, nothing", asking("1", resources={"limits": {}}), BEST),
    ("the class says more", {"status": {"qosClass": "BestEffort"}, "cpu": "1"}, BEST),
    ("the class says less", {"status": {"qosClass": "Guaranteed"}}, WORSE),
    ("a deadline", {"activeDeadlineSeconds": 0}, {"Terminating", "BestEffort"}),
    ("no deadline", {"activeDeadlineSeconds": -1}, BEST),
    ("a class", {"priorityClassName": "gold"}, BEST | {"PriorityClass"}),
    ("no class", {"priorityClassName": ""}, BEST),
    ("only node affinity", {"affinity": {"nodeAffinity": {}}}, BEST),
    ("near its own", near("podAffinity", term(labelSelector={})), BEST),
    ("no namespaces", near("podAffinity", term(namespaces=[])), BEST),
    ("near others", near("podAffinity", term(namespaces=["shop"])), BEST | FAR),
    ("near all others", near("podAffinity", term(namespaceSelector={})), BEST | FAR),
    ("rather near", near("podAffinity", term(namespaces=["shop"]), preferred=True), BEST | FAR),
    ("far from others", near("podAntiAffinity", term(namespaces=["shop"])), BEST | FAR),
    ("rather far", near("podAntiAffinity", term(namespaceSelector={}), preferred=True), BEST | FAR),
]


@pytest.mark.parametrize(("fields", "expected"), [row[1:] for row in PODS], ids=[row[0] for row in PODS])
def test_a_pod_matches_its_scopes_in_both_notations(fields: Object, expected: set[str]) -> None:
    asked = as_record(Pod, pod("web-1", **fields))
    assert {name for name in SCOPES if counts(scoped(scopes=(name,)), asked)} == expected
    assert {name for name in SCOPES if counts(scoped(wanting("Exists", scope=name)), asked)} == expected


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        ("In", ("gold", "silver"), {"gold", "silver"}),
        ("NotIn", ("gold", "silver"), {"iron", None}),
        ("Exists", (), {"gold", "silver", "iron"}),
        ("DoesNotExist", (), {None}),
    ],
)
def test_priority_classes_are_selected_as_kubernetes_does(
    operator: str, values: tuple[str, ...], expected: set[str | None]
) -> None:
    found = {
        name
        for name in ("gold", "silver", "iron", None)
        if counts(scoped(wanting(operator, *values)), as_record(Pod, pod("web-1", priorityClassName=name)))
    }
    assert found == expected


def test_all_scopes_must_match() -> None:
    gold = as_record(Pod, pod("web-1", priorityClassName="gold", cpu="1"))
    assert counts(scoped(), gold)
    assert counts(scoped(wanting("In", "gold"), scopes=("NotBestEffort",)), gold)
    assert not counts(scoped(wanting("In", "gold"), scopes=("BestEffort",)), gold)
    assert not counts(scoped(wanting("In", "gold"), wanting("NotIn", "gold")), gold)


@pytest.mark.parametrize("wrong", [wanting("Near"), wanting("In"), wanting("In", "not valid")])
def test_a_selector_that_kubernetes_refuses_refuses_the_pod(wrong: Object) -> None:
    with pytest.raises(SelectorError):
        counts(scoped(wrong, scopes=("BestEffort",)), as_record(Pod, pod("web-1", cpu="1")))
    unreadable = quota(*FULL, scopeSelector={"matchExpressions": [wrong]})
    context = context_of(peer(), replica(), unreadable)
    refused = refuse_protected(place_of(context), context)
    assert refused is not None
    assert refused.rule == "Quota"
    assert "cannot be read" in refused.reason


@pytest.mark.parametrize(("scope", "rule"), [("NotTerminating", "Quota"), ("Terminating", None)])
def test_a_full_quota_protects_only_the_pods_that_it_counts(scope: str, rule: str | None) -> None:
    context = context_of(peer(), replica(), quota(*FULL, scopes=[scope]))
    refused = refuse_protected(place_of(context), context)
    assert (refused.rule if refused else None) == rule
