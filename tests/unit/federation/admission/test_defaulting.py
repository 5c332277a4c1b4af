"""Defaults set by the webhook: each rule where it applies and where it does not."""

import copy
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.admission.defaulting import set_defaults
from federation.admission.json_patch import encode
from tests.support.builders import Object
from tests.support.federation.crds import EXAMPLES, apply_json_patch, name_of

NOW = 1_795_003_200.7
POLICY, CLUSTER_POLICY = "PropagationPolicy", "ClusterPropagationPolicy"
BINDING = "ResourceBinding"
GOLDEN = {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop"}]}


def completed(kind: str, spec: Any, *, namespace: str = "shop") -> Any:
    """The spec of an object of that kind once it is completed."""
    wanted: Object = {"kind": kind, "metadata": {"name": "one"}, "spec": spec}
    before = copy.deepcopy(wanted)
    changes = list(set_defaults(kind, wanted, namespace=namespace, now=NOW))
    assert wanted == before
    made = apply_json_patch(wanted, encode(changes))
    assert not list(set_defaults(kind, made, namespace=namespace, now=NOW + 1)), "completed twice"
    return made["spec"]


@pytest.mark.parametrize(
    ("given", "namespace", "kept"),
    [
        ({}, "shop", "shop"),
        ({"namespace": ""}, "shop", "shop"),
        ({"namespace": None}, "shop", "shop"),
        ({"namespace": "other"}, "shop", "other"),
    ],
)
def test_a_policy_selects_in_its_own_namespace(given: Object, namespace: str, kept: str) -> None:
    spec = completed(POLICY, {"resourceSelectors": [{"kind": "Pod"} | given]}, namespace=namespace)
    assert spec["resourceSelectors"][0]["namespace"] == kept


def test_a_cluster_policy_selects_in_every_namespace() -> None:
    spec = {"resourceSelectors": [{"kind": "Pod"}]}
    assert completed(CLUSTER_POLICY, spec, namespace="") == spec


@pytest.mark.parametrize("kind", [POLICY, CLUSTER_POLICY])
@pytest.mark.parametrize(
    ("constraint", "added"),
    [
        ({}, {"spreadByField": "cluster", "minGroups": 1}),
        ({"maxGroups": 2}, {"spreadByField": "cluster", "minGroups": 1}),
        ({"spreadByField": "region"}, {"minGroups": 1}),
        ({"spreadByLabel": "rack"}, {"minGroups": 1}),
        ({"spreadByField": "region", "minGroups": 0}, {"minGroups": 1}),
        ({"spreadByField": "region", "minGroups": 3}, {}),
        ({"spreadByField": "region", "minGroups": -1}, {}),
        ({"spreadByField": "region", "minGroups": False}, {}),
    ],
)
def test_replicas_are_spread_over_clusters_one_at_least(kind: str, constraint: Object, added: Object) -> None:
    spec = completed(kind, GOLDEN | {"placement": {"spreadConstraints": [constraint]}})
    assert spec["placement"]["spreadConstraints"] == [constraint | added]


@pytest.mark.parametrize("kind", [POLICY, CLUSTER_POLICY])
@pytest.mark.parametrize(
    ("scheduling", "preference"),
    [
        ({"replicaSchedulingType": "Divided"}, "Weighted"),
        ({"weightPreference": {}}, "Weighted"),
        ({"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}, "Aggregated"),
        ({"replicaSchedulingType": "Duplicated"}, None),
    ],
)
def test_replicas_are_divided_by_weight(kind: str, scheduling: Object, preference: str | None) -> None:
    spec = completed(kind, GOLDEN | {"placement": {"replicaScheduling": scheduling}})
    assert spec["placement"]["replicaScheduling"].get("replicaDivisionPreference") == preference


def test_malformed_list_entries_are_skipped() -> None:
    spec = {"resourceSelectors": ["x", None], "placement": {"spreadConstraints": [[], 1]}}
    assert completed(POLICY, spec) == spec


def test_a_policy_without_scheduling_gets_none() -> None:
    assert completed(POLICY, GOLDEN | {"placement": {}}) == GOLDEN | {"placement": {}}


@pytest.mark.parametrize(
    ("application", "made"),
    [
        ({}, {"gracePeriodSeconds": 600}),
        ({"purgeMode": "Gracefully"}, {"purgeMode": "Gracefully", "gracePeriodSeconds": 600}),
        ({"purgeMode": "Graciously"}, {"purgeMode": "Gracefully", "gracePeriodSeconds": 600}),
        ({"purgeMode": "Immediately"}, {"purgeMode": "Directly"}),
        ({"purgeMode": "Directly"}, {"purgeMode": "Directly"}),
        ({"purgeMode": "Never"}, {"purgeMode": "Never"}),
        ({"gracePeriodSeconds": 30}, {"gracePeriodSeconds": 30}),
        ({"gracePeriodSeconds": -1}, {"gracePeriodSeconds": -1}),
    ],
)
@pytest.mark.parametrize("kind", [POLICY, CLUSTER_POLICY])
def test_application_failover_defaults_follow_its_purge_mode(
    kind: str, application: Object, made: Object
) -> None:
    conditions = {"decisionConditions": {"tolerationSeconds": 300}}
    spec = completed(kind, GOLDEN | {"failover": {"application": conditions | application}})
    assert spec["failover"]["application"] == conditions | made


@pytest.mark.parametrize(
    ("said", "made"), [({}, True), ({"propagateDeps": None}, True), ({"propagateDeps": False}, False)]
)
def test_a_policy_with_failover_propagates_dependencies_by_default(said: Object, made: bool) -> None:  # noqa: FBT001 - a table's column
    failover = {"failover": {"application": {"decisionConditions": {}, "purgeMode": "Never"}}}
    assert completed(POLICY, GOLDEN | failover | said)["propagateDeps"] is made


@pytest.mark.parametrize("said", [{}, {"failover": {}}, {"failover": {"cluster": {}}}])
def test_a_policy_without_failover_gets_no_default_for_dependencies(said: Object) -> None:
    assert "propagateDeps" not in completed(POLICY, GOLDEN | said)


@pytest.mark.parametrize("kind", [BINDING, "ClusterResourceBinding"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            {"failover": {"application": {"purgeMode": "Graciously"}}},
            {"failover": {"application": {"purgeMode": "Gracefully"}}},
        ),
        (
            {"failover": {"application": {"purgeMode": "Never"}}},
            {"failover": {"application": {"purgeMode": "Never"}}},
        ),
        (
            {"failover": {"application": {"decisionConditions": {"healthyState": "Unknown"}}}},
            {"failover": {"application": {"decisionConditions": {"healthyState": ["Unknown"]}}}},
        ),
        (
            {"failover": {"application": {"decisionConditions": {"healthyState": ["Unknown"]}}}},
            {"failover": {"application": {"decisionConditions": {"healthyState": ["Unknown"]}}}},
        ),
        (
            {"gracefulEvictionTasks": [{"purgeMode": "Immediately"}]},
            {"gracefulEvictionTasks": [{"purgeMode": "Directly"}]},
        ),
        (
            {"gracefulEvictionTasks": [{"purgeMode": "Never"}, {}]},
            {"gracefulEvictionTasks": [{"purgeMode": "Never"}, {}]},
        ),
        (
            {"activeEvictionHistory": [{"clusterName": "m", "createTimestamp": "then"}]},
            {"activeEvictionHistory": [{"clusterName": "m", "creationTimestamp": "then"}]},
        ),
        (
            {"activeEvictionHistory": [{"createTimestamp": "then", "creationTimestamp": "before"}]},
            {"activeEvictionHistory": [{"creationTimestamp": "before"}]},
        ),
        (
            {"activeEvictionHistory": [{"clusterName": "m"}]},
            {"activeEvictionHistory": [{"clusterName": "m"}]},
        ),
    ],
)
def test_deprecated_fields_of_a_binding_are_translated(kind: str, old: Object, new: Object) -> None:
    assert completed(kind, old) == new


@pytest.mark.parametrize(
    ("taint", "added"),
    [
        ({"key": "k", "effect": "NoExecute"}, {"timeAdded": "2026-11-18T12:00:00Z"}),
        ({"key": "k", "effect": "NoExecute", "timeAdded": None}, {"timeAdded": "2026-11-18T12:00:00Z"}),
        ({"key": "k", "effect": "NoExecute", "timeAdded": "2020-01-01T00:00:00Z"}, {}),
        ({"key": "k", "effect": "NoSchedule"}, {}),
    ],
)
def test_an_evicting_taint_gets_its_time(taint: Object, added: Object) -> None:
    assert completed("Cluster", {"taints": [taint]}) == {"taints": [taint | added]}


@pytest.mark.parametrize(
    ("said", "made"),
    [
        ({"zone": "a"}, {"zone": "a", "zones": ["a"]}),
        ({"zone": "a", "zones": []}, {"zone": "a", "zones": ["a"]}),
        ({"zone": "a", "zones": ["b"]}, {"zone": "a", "zones": ["b"]}),
        ({"zone": ""}, {"zone": ""}),
        ({}, {}),
    ],
)
def test_the_deprecated_zone_field_is_copied_to_zones(said: Object, made: Object) -> None:
    assert completed("Cluster", said) == made


@pytest.mark.parametrize("kind", ["Work", "WorkloadRebalancer", "Pod"])
def test_kinds_without_defaults_are_unchanged(kind: str) -> None:
    assert completed(kind, {"zone": "a", "placement": {"spreadConstraints": [{}]}})


OLD_WORDS = {"nginx-propagation", "nginx-pod"}
COMPLETED = [one for one in EXAMPLES if one["metadata"]["name"] not in {*OLD_WORDS, "foo", "nginx", "roles"}]


@pytest.mark.parametrize("one", COMPLETED, ids=name_of)
def test_a_complete_documented_object_needs_no_defaults(one: Object) -> None:
    assert completed(one["kind"], one.get("spec"), namespace="default") is not None
    wanted = copy.deepcopy(one)
    for selector in wanted["spec"].get("resourceSelectors", ()):
        selector.setdefault("namespace", "default")
    assert not list(set_defaults(one["kind"], wanted, namespace="default", now=NOW))


json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from(["", "Divided", "Graciously", "NoExecute", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "spec",
                    "placement",
                    "spreadConstraints",
                    "replicaScheduling",
                    "failover",
                    "application",
                    "purgeMode",
                    "resourceSelectors",
                    "namespace",
                    "taints",
                    "effect",
                    "zone",
                    "zones",
                    "gracefulEvictionTasks",
                    "activeEvictionHistory",
                    "createTimestamp",
                    "replicaSchedulingType",
                    "minGroups",
                    "spreadByField",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=25,
)


@given(
    st.sampled_from([POLICY, CLUSTER_POLICY, BINDING, "Cluster", "Work"]),
    st.dictionaries(st.just("spec"), json),
)
def test_defaulting_any_object_is_idempotent(kind: str, wanted: Object) -> None:
    before = copy.deepcopy(wanted)
    changes: Sequence[Any] = list(set_defaults(kind, wanted, namespace="shop", now=NOW))
    assert wanted == before
    made = apply_json_patch(wanted, encode(changes))
    assert not list(set_defaults(kind, made, namespace="shop", now=NOW))
