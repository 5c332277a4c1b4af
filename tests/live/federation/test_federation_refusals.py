"""Objects of the federation that a real API server rejects, with the field and the message."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from localcluster.client import Client, Refused
from localcluster.cluster import Cluster
from tests.live.support.webhook_hub import LABEL_KEY, collection_of, guarded, keep, refusal, tidy
from tests.support.builders import Object
from tests.support.federation.crds import example

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def hub(bare: Cluster) -> AsyncIterator[Client]:
    async with guarded(bare) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="session")
async def client(hub: Client) -> AsyncIterator[Client]:
    yield hub
    await tidy(hub)


POLICIES = ["PropagationPolicy", "ClusterPropagationPolicy"]
SELECTED = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
FAILOVER = "spec.failover.application"


def failing_over(**application: Any) -> Object:
    return {"failover": {"application": {"decisionConditions": {}} | application}}


def preserving(alias: str) -> Object:
    return {"statePreservation": {"rules": [{"aliasLabelName": alias, "jsonPath": "{.replicas}"}]}}


def placed(**affinity: Any) -> Object:
    return {"placement": {"clusterAffinity": affinity}}


WRONG: list[tuple[Object, str, str]] = [
    (
        failing_over() | {"propagateDeps": False},
        "spec.propagateDeps",
        "application failover is set, propagateDeps must be true",
    ),
    (
        failing_over(decisionConditions={"tolerationSeconds": -100}),
        f"{FAILOVER}.decisionConditions.tolerationSeconds",
        "Invalid value: -100: must be greater than or equal to 0",
    ),
    (
        failing_over(preConditions={"delaySeconds": -1}),
        f"{FAILOVER}.preConditions.delaySeconds",
        "must be greater than or equal to 0",
    ),
    (
        failing_over(preConditions={"healthyState": "Fine"}),
        f"{FAILOVER}.preConditions.healthyState",
        "Unsupported value",
    ),
    (
        failing_over(blockPredecessorSeconds=-1),
        f"{FAILOVER}.blockPredecessorSeconds",
        "must be greater than or equal to 0",
    ),
    *[
        (
            failing_over(purgeMode=mode, gracePeriodSeconds=100),
            f"{FAILOVER}.gracePeriodSeconds",
            "only takes effect when purgeMode is gracefully",
        )
        for mode in ("Directly", "Immediately", "Never")
    ],
    *[
        (
            failing_over(gracePeriodSeconds=seconds),
            f"{FAILOVER}.gracePeriodSeconds",
            f"Invalid value: {seconds}: must be greater than 0",
        )
        for seconds in (0, -100)
    ],
    (failing_over(purgeMode="Softly"), f"{FAILOVER}.purgeMode", "Unsupported value"),
    (failing_over(onGraceEnd="Wait"), f"{FAILOVER}.onGraceEnd", "Unsupported value"),
    (
        failing_over(decisionConditions={"healthyState": ["Unhealthy", "Healthy"]}),
        f"{FAILOVER}.decisionConditions.healthyState[1]",
        "Unsupported value",
    ),
    ({"failover": {"application": {}}}, f"{FAILOVER}.decisionConditions", "Required value"),
    *[
        (
            {
                "failover": {
                    part: preserving(alias) | ({"decisionConditions": {}} if part == "application" else {})
                }
            },
            f"spec.failover.{part}.statePreservation.rules[0].aliasLabelName",
            said,
        )
        for part, alias, said in [
            ("application", "-invalid-label", LABEL_KEY),
            ("cluster", "invalid@label", LABEL_KEY),
            ("application", "a" * 64, "name part must be no more than 63"),
            (
                "application",
                "INVALID.COM/my-state",
                "prefix part a lowercase RFC 1123 subdomain must consist of",
            ),
        ]
    ],
    (
        {"preemption": "Always", "resourceSelectors": [SELECTED, {"apiVersion": "v1", "kind": "Pod"}]},
        "spec.resourceSelectors",
        "name cannot be empty if preemption is Always",
    ),
    (
        {"suspension": {"dispatching": True, "dispatchingOnClusters": {"clusterNames": ["m1"]}}},
        "spec.suspension",
        "suspension dispatching cannot co-exist with dispatchingOnClusters.clusterNames",
    ),
    ({"resourceSelectors": []}, "spec.resourceSelectors", "should have at least 1 items"),
    ({"conflictResolution": "Fight"}, "spec.conflictResolution", "Unsupported value"),
    ({"preemption": "Maybe"}, "spec.preemption", "Unsupported value"),
    ({"activationPreference": "Eager"}, "spec.activationPreference", "Unsupported value"),
    ({"colour": "red"}, "", 'unknown field "spec.colour"'),
    (
        {"placement": {"clusterAffinity": {"propagatePriority": []}}},
        "",
        'unknown field "spec.placement.clusterAffinity.propagatePriority"',
    ),
    ({"failover": []}, "spec.failover", "must be of type object"),
    ({"resourceSelectors": [SELECTED] * 65}, "spec.resourceSelectors", "must have at most 64 items"),
    *[
        (
            {"resourceSelectors": [SELECTED | changed]},
            f"spec.resourceSelectors[0].{next(iter(changed))}",
            said,
        )
        for changed, said in [
            ({"apiVersion": f"{'a' * 253}/{'v' * 64}"}, "Too long: may not be more than 317"),
            ({"apiVersion": "../v1"}, "Invalid value"),
            ({"apiVersion": "a/b/v1"}, "Invalid value"),
            ({"kind": "K" * 64}, "Too long: may not be more than 63"),
            ({"kind": "Pod/log"}, "Invalid value"),
            ({"namespace": ".."}, "Invalid value"),
            ({"name": "n" * 254}, "Too long: may not be more than 253"),
            ({"name": "../secrets/x"}, "Invalid value"),
            ({"name": ".."}, "Invalid value"),
            ({"name": "a%2Fb"}, "Invalid value"),
        ]
    ],
    (
        placed(clusterNames=["m" * 254]),
        "spec.placement.clusterAffinity.clusterNames[0]",
        "Too long: may not be more than 253",
    ),
    (
        placed(labelSelector={"matchLabels": {f"k{each}": "v" for each in range(65)}}),
        "spec.placement.clusterAffinity.labelSelector.matchLabels",
        "must have at most 64 items",
    ),
]


def largest_policy() -> Object:
    """As much as the definition takes, in what our code reads."""
    expression = {"key": f"{'a' * 253}/{'k' * 63}", "operator": "In", "values": ["v" * 63] * 200}
    selected = {
        "apiVersion": f"{'a' * 253}/{'v' * 63}",
        "kind": "K" * 63,
        "namespace": "",
        "name": "n" * 253,
        "labelSelector": {"matchExpressions": [expression]},
    }
    affinity = {
        "clusterNames": ["m" * 253] * 1000,
        "exclude": ["m" * 253] * 1000,
        "labelSelector": {"matchLabels": {f"k{each}": "v" * 63 for each in range(64)}},
    }
    return {
        "resourceSelectors": [selected] * 10 + [SELECTED] * 54,
        "placement": {"clusterAffinity": affinity},
    }


def a_policy(kind: str, spec: Object) -> Object:
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": "one"},
        "spec": {"resourceSelectors": [SELECTED]} | spec,
    }


@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.parametrize(("spec", "field", "said"), WRONG)
async def test_a_wrong_policy_is_refused_by_its_field(
    client: Client, kind: str, spec: Object, field: str, said: str
) -> None:
    refused = await refusal(client, a_policy(kind, spec))
    assert refused.status in (400, 422)
    assert field in str(refused)
    assert said in str(refused)


@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.parametrize(
    "spec",
    [
        failing_over(),
        failing_over() | {"propagateDeps": True},
        failing_over(purgeMode="Graciously", gracePeriodSeconds=1),
        failing_over(decisionConditions={"tolerationSeconds": 0}, blockPredecessorSeconds=0),
        {"preemption": "Always"},
        {"suspension": {"dispatching": True}},
        {"suspension": {"dispatching": True, "dispatchingOnClusters": {"clusterNames": []}}},
        {"suspension": {"dispatching": False, "dispatchingOnClusters": {"clusterNames": ["m1"]}}},
        {"suspension": {"dispatchingOnClusters": {"clusterNames": ["m1"]}}},
        {"failover": {"cluster": {"purgeMode": "Directly"}}},
        {"schedulePriority": {"priorityClassSource": "KubePriorityClass", "priorityClassName": "high"}},
        {"association": True, "dependentOverrides": ["a"], "preserveResourcesOnDeletion": True},
        largest_policy(),
    ],
)
async def test_a_right_policy_is_not(client: Client, kind: str, spec: Object) -> None:
    assert await keep(client, a_policy(kind, spec))


@pytest.mark.parametrize("kind", POLICIES)
async def test_a_policy_keeps_its_scheduler(client: Client, kind: str) -> None:
    made = await keep(client, a_policy(kind, {}))
    with pytest.raises(Refused, match="spec.schedulerName: .*the schedulerName should not be updated"):
        await client.patch(f"{collection_of(made)}/one", {"spec": {"schedulerName": "another"}})


REST: list[tuple[str, Object, str]] = [
    ("WorkloadRebalancer", {"workloads": []}, "spec.workloads in body should have at least 1 items"),
    ("WorkloadRebalancer", {"workloads": None}, "spec.workloads"),
    (
        "WorkloadRebalancer",
        {"workloads": [{"kind": "A", "name": "a"}]},
        "spec.workloads[0].apiVersion: Required value",
    ),
    (
        "WorkloadRebalancer",
        {"ttlSecondsAfterFinished": -5},
        "spec.ttlSecondsAfterFinished: Invalid value: -5: must be greater than or equal to 0",
    ),
    ("Cluster", {"syncMode": None}, "spec.syncMode"),
    ("Cluster", {"syncMode": "Sideways"}, "spec.syncMode: Unsupported value"),
    (
        "Cluster",
        {"apiEndpoint": "10.0.0.1:6443"},
        'spec.apiEndpoint: Invalid value: "10.0.0.1:6443": host must be provided',
    ),
    ("Cluster", {"apiEndpoint": "/path"}, "host must be provided"),
    (
        "Cluster",
        {"proxyURL": "ftp://proxy"},
        'spec.proxyURL: Invalid value: "ftp://proxy": unsupported scheme',
    ),
    ("Cluster", {"taints": [{"key": "a", "effect": "Never"}]}, "spec.taints[0].effect: Unsupported value"),
    ("Cluster", {"taints": [{"key": "a b", "effect": "NoSchedule"}]}, LABEL_KEY),
    ("Cluster", {"taints": [{"key": "a", "effect": "NoSchedule"}] * 2}, "spec.taints[1]: Duplicate value"),
    ("Cluster", {"secretRef": {"name": "a"}}, "spec.secretRef.namespace: Required value"),
    ("ResourceBinding", {"resource": {"kind": "A", "name": "a"}}, "spec.resource.apiVersion: Required value"),
    (
        "ResourceBinding",
        {"gracefulEvictionTasks": [{"fromCluster": "a", "reason": "not one word", "producer": "me"}]},
        "spec.gracefulEvictionTasks[0].reason: Invalid value",
    ),
    (
        "ResourceBinding",
        {"activeEvictionHistory": [{"clusterName": f"m{number}"} for number in range(65)]},
        "spec.activeEvictionHistory: Too many: 65",
    ),
    ("ResourceBinding", {"clusters": [{"replicas": 1}]}, "spec.clusters[0].name: Required value"),
    ("ResourceBinding", {"rescheduleTriggeredAt": "yesterday"}, "spec.rescheduleTriggeredAt"),
    ("Work", {"workload": {"manifests": ["text"]}}, "spec.workload.manifests[0]"),
    ("Work", {"workload": {"manifests": [{}] * 65}}, "spec.workload.manifests: Too many: 65"),
    *[
        (
            "ResourceBinding",
            {"replicaRequirements": {"resourceRequest": {"cpu": quantity}}},
            f"spec.replicaRequirements.resourceRequest.cpu: {said}",
        )
        for quantity, said in [
            ("1e1.5", "Invalid value"),
            ("1" * 65, "Too long: may not be more than 64"),
            ("1.2.3", "Invalid value"),
        ]
    ],
    (
        "ResourceBinding",
        {"resource": {"apiVersion": "v1", "kind": "Secret", "name": "../../x"}},
        "spec.resource.name: Invalid value",
    ),
    ("Cluster", {"secretRef": {"name": "a/b", "namespace": "ns"}}, "spec.secretRef.name: Invalid value"),
]


async def test_the_longest_quantity_is_taken(client: Client) -> None:
    one = example("ResourceBinding")
    one["spec"]["replicaRequirements"] = {"resourceRequest": {"cpu": "1" * 64, "memory": "1e" + "1" * 62}}
    assert await keep(client, one)


@pytest.mark.parametrize(("kind", "spec", "said"), REST)
async def test_other_wrong_objects_are_refused(client: Client, kind: str, spec: Object, said: str) -> None:
    one = example(kind)
    one["spec"] |= spec
    refused = await refusal(client, one)
    assert refused.status == 422
    assert said in str(refused)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("x" * 49, "the name of a cluster must be no more than 48 characters"),
        ("a.b", "the name of a cluster must hold no dots"),
    ],
)
async def test_a_cluster_has_a_name_that_a_namespace_can_be_made_of(
    client: Client, name: str, said: str
) -> None:
    one = example("Cluster")
    one["metadata"]["name"] = name
    assert said in str(await refusal(client, one))


async def test_a_workload_may_stand_twice_in_a_rebalancer(client: Client) -> None:
    one = example("WorkloadRebalancer")
    one["spec"]["workloads"] *= 2
    one["spec"]["ttlSecondsAfterFinished"] = 0
    assert len((await keep(client, one))["spec"]["workloads"]) == 2
