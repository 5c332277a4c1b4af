"""Refusals and warnings of the webhook: each rule where it applies and where it does not."""

import pytest

from federation.admission.validation import find_ignored_fields, find_refusals
from federation.api.labels import LABELS
from tests.support.builders import Object
from tests.support.federation.crds import EXAMPLES, name_of

POLICIES = ["PropagationPolicy", "ClusterPropagationPolicy"]
EMPTY_WAIT = (
    "spec.failover.application.gracePeriodSeconds: Invalid value: null: "
    "should not be empty when purgeMode is gracefully"
)


@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.parametrize(
    ("application", "said"),
    [
        ({"purgeMode": "Gracefully"}, [EMPTY_WAIT]),
        ({"purgeMode": "Gracefully", "gracePeriodSeconds": None}, [EMPTY_WAIT]),
        ({"purgeMode": "Gracefully", "gracePeriodSeconds": 600}, []),
        ({"purgeMode": "Directly"}, []),
        ({"purgeMode": "Never"}, []),
    ],
)
def test_a_graceful_purge_has_an_end(kind: str, application: Object, said: list[str]) -> None:
    wanted = {"spec": {"failover": {"application": application}}}
    assert list(find_refusals(kind, wanted, None)) == said


@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.parametrize(
    ("selector", "said"),
    [
        (None, ""),
        ({}, ""),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}, ""),
        ({"matchExpressions": "the schema refuses it"}, ""),
        ({"matchExpressions": [{"key": "app", "operator": "in", "values": ["web"]}]}, "in"),
        ({"matchExpressions": [{"key": "app", "operator": "In"}]}, "values"),
    ],
)
def test_a_selector_can_be_read(kind: str, selector: object, said: str) -> None:
    selectors = [{"apiVersion": "v1", "kind": "Secret"}, {"labelSelector": selector}]
    refusals = list(find_refusals(kind, {"spec": {"resourceSelectors": selectors}}, None))
    assert bool(refusals) == bool(said)
    assert all(
        refusal.startswith("spec.resourceSelectors[1].labelSelector: Invalid value: ") and said in refusal
        for refusal in refusals
    )


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("function InterpretHealth(o) return true end", ""),
        ("function InterpretHealth(", "InterpretHealth:1: <name> or '...' expected near '<eof>'"),
        ("function interpretHealth(o) end", "no function InterpretHealth"),
        ("while true do end", "too many instructions"),
        (7, ""),  # the schema refuses it
    ],
)
def test_a_script_can_be_used(script: object, said: str) -> None:
    wanted = {"spec": {"customizations": {"healthInterpretation": {"luaScript": script}}}}
    refusals = list(find_refusals("ResourceInterpreterCustomization", wanted, None))
    place = "spec.customizations.healthInterpretation.luaScript: Invalid value: "
    assert refusals == ([place + said] if said else [])


def test_a_binding_is_not_validated_for_policy_rules() -> None:
    wanted = {"spec": {"failover": {"application": {"purgeMode": "Gracefully"}}}}
    assert not list(find_refusals("ResourceBinding", wanted, None))


def test_all_reasons_are_given() -> None:
    label = LABELS["PropagationPolicy"]
    wanted = {
        "metadata": {"labels": {label: "b"}},
        "spec": {"failover": {"application": {"purgeMode": "Gracefully"}}},
    }
    before = {"metadata": {"labels": {label: "a"}}}
    said = list(find_refusals("PropagationPolicy", wanted, before))
    assert len(said) == 2
    assert said[1] == EMPTY_WAIT


STATIC = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}
DYNAMIC = STATIC | {"weightPreference": {"dynamicWeight": "AvailableReplicas"}}
SPREAD = [{"spreadByField": "cluster", "minGroups": 1}]
STATIC_SPREAD = "spec.placement.spreadConstraints: ignored when replicas are divided by static weights"


@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.parametrize(
    ("placement", "said"),
    [
        ({"spreadConstraints": SPREAD, "replicaScheduling": STATIC}, [STATIC_SPREAD]),
        ({"spreadConstraints": SPREAD, "replicaScheduling": DYNAMIC}, []),
        (
            {
                "spreadConstraints": SPREAD,
                "replicaScheduling": STATIC | {"replicaDivisionPreference": "Aggregated"},
            },
            [],
        ),
        ({"spreadConstraints": SPREAD, "replicaScheduling": {"replicaSchedulingType": "Duplicated"}}, []),
        ({"spreadConstraints": SPREAD}, []),
        ({"spreadConstraints": [], "replicaScheduling": STATIC}, []),
        (
            {"spreadConstraints": [*SPREAD, {"spreadByLabel": "rack"}]},
            ["spec.placement.spreadConstraints[1].spreadByLabel: stored, but has no effect"],
        ),
        (
            {"workloadAffinity": {"affinity": {}}},
            ["spec.placement.workloadAffinity: stored, but has no effect"],
        ),
    ],
)
def test_ignored_placement_fields_are_warned_about(kind: str, placement: Object, said: list[str]) -> None:
    assert list(find_ignored_fields(kind, {"spec": {"placement": placement}})) == said


@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"failover": {"application": {"purgeMode": "Never"}}}, []),
        ({"failover": {"cluster": {"purgeMode": "Directly"}}}, []),
        ({"activationPreference": "Lazy"}, ["spec.activationPreference: Lazy"]),
        ({"dependentOverrides": ["a"]}, ["spec.dependentOverrides"]),
        ({"schedulePriority": {"priorityClassName": "high"}}, ["spec.schedulePriority"]),
        ({"dependentOverrides": [], "schedulePriority": None}, []),
    ],
)
def test_other_ignored_policy_fields_are_warned_about(kind: str, spec: Object, said: list[str]) -> None:
    assert list(find_ignored_fields(kind, {"spec": spec})) == [
        f"{each}: stored, but has no effect" for each in said
    ]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"syncMode": "Push"}, []),
        ({"syncMode": "Pull"}, ["spec.syncMode: Pull: stored, but has no effect"]),
        ({"resourceModels": [{}]}, ["spec.resourceModels: stored, but has no effect"]),
        ({"resourceModels": []}, []),
        ({"proxyHeader": {"a": "b"}}, ["spec.proxyHeader: stored, but has no effect"]),
    ],
)
def test_so_is_a_cluster(spec: Object, said: list[str]) -> None:
    assert list(find_ignored_fields("Cluster", {"spec": spec})) == said


@pytest.mark.parametrize("kind", ["ResourceBinding", "Work", "Pod"])
def test_programs_are_not_warned(kind: str) -> None:
    assert not list(
        find_ignored_fields(kind, {"spec": {"syncMode": "Pull", "placement": {"workloadAffinity": {"a": 1}}}})
    )


@pytest.mark.parametrize("one", EXAMPLES, ids=name_of)
def test_documented_objects_have_no_ignored_field(one: Object) -> None:
    assert list(find_ignored_fields(one["kind"], one)) == []


@pytest.mark.parametrize("kind", ["PropagationPolicy", "ClusterPropagationPolicy"])
@pytest.mark.parametrize("part", ["application", "cluster"])
def test_an_unsupported_json_path_is_warned_about(kind: str, part: str) -> None:
    rules = [{"aliasLabelName": "a", "jsonPath": path} for path in ("{.replicas}", "{.parts[*].a}")]
    wanted = {"spec": {"failover": {part: {"statePreservation": {"rules": rules}}}}}
    path = f"spec.failover.{part}.statePreservation.rules[1].jsonPath"
    assert list(find_ignored_fields(kind, wanted)) == [f"{path}: stored, but has no effect"]


@pytest.mark.parametrize(
    ("kind", "own", "named", "is_refused"),
    [
        ("ResourceBinding", {"namespace": "a"}, {"namespace": "a"}, False),
        ("ResourceBinding", {"namespace": "a"}, {"namespace": "karmada-cluster"}, True),
        ("ResourceBinding", {"namespace": "a"}, {}, True),
        ("ClusterResourceBinding", {}, {}, False),
        ("ClusterResourceBinding", {}, {"namespace": "a"}, True),
    ],
)
def test_a_binding_names_an_object_of_its_own_scope(
    kind: str, own: Object, named: Object, *, is_refused: bool
) -> None:
    wanted = {
        "metadata": own,
        "spec": {"resource": {"apiVersion": "v1", "kind": "Secret", "name": "x", **named}},
    }
    assert any("spec.resource.namespace" in each for each in find_refusals(kind, wanted, None)) is is_refused
