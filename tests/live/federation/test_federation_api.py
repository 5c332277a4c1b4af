"""The federation's kinds on a real API server with the webhook: accepted, completed, printed."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from localcluster.client import Client, Refused
from localcluster.cluster import Cluster
from tests.live.support.webhook_hub import MANIFESTS, collection_of, guarded, keep, tidy
from tests.support.builders import Object
from tests.support.federation.crds import CRDS, EXAMPLES, RECORDS, example, name_of, values

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def hub(bare: Cluster) -> AsyncIterator[Client]:
    async with guarded(bare) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="session")
async def client(hub: Client) -> AsyncIterator[Client]:
    yield hub
    await tidy(hub)


@pytest.mark.parametrize("kind", CRDS)
async def test_a_definition_is_established_and_structural(client: Client, kind: str) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    found = await client.get(f"{path}/{CRDS[kind]['metadata']['name']}")
    truths = {each["type"]: each["status"] for each in found["status"]["conditions"]}
    assert truths == {"NamesAccepted": "True", "Established": "True"}


@pytest.mark.parametrize("kind", CRDS)
async def test_a_kind_is_found_under_its_common_name(client: Client, kind: str) -> None:
    spec = CRDS[kind]["spec"]
    found = await client.get(f"/apis/{spec['group']}/{spec['versions'][0]['name']}")
    (own,) = [one for one in found["resources"] if one["kind"] == kind and "/" not in one["name"]]
    assert own["categories"] == ["karmada-io"]
    assert own.get("shortNames", []) == spec["names"].get("shortNames", [])


@pytest.mark.parametrize("one", EXAMPLES, ids=name_of)
async def test_a_documented_object_is_taken_as_it_stands(client: Client, one: Object) -> None:
    kept = values(await keep(client, one))
    renamed = {".spec.activeEvictionHistory.0.createTimestamp"}
    assert values(one).items() - kept.items() <= {(place, values(one).get(place)) for place in renamed}


@pytest.mark.parametrize("one", EXAMPLES, ids=name_of)
async def test_stored_objects_can_be_read_and_written_again(client: Client, one: Object) -> None:
    kept = await keep(client, one)
    record = RECORDS[one["kind"]]
    read = msgspec.json.decode(msgspec.json.encode(kept), type=record)
    again = msgspec.json.decode(msgspec.json.encode(read))
    path = f"{collection_of(one)}/{one['metadata']['name']}"
    body = kept | {"spec": again["spec"]}
    found = await client.request("PUT", f"{path}?fieldValidation=Strict", body)
    assert msgspec.json.decode(msgspec.json.encode(found), type=record).spec == read.spec


def policy(kind: str = "PropagationPolicy", **spec: Any) -> Object:
    """A policy that says little, and this."""
    selected = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": "one"},
        "spec": {"resourceSelectors": [selected]} | spec,
    }


RARE: list[Object] = [
    {
        "id": "5f0c3c52",
        "syncMode": "Push",
        "impersonatorSecretRef": {"namespace": "karmada-cluster", "name": "member1-impersonator"},
        "insecureSkipTLSVerification": True,
        "proxyURL": "socks5://10.0.0.9:1080",
        "proxyHeader": {"Proxy-Authorization": "a,b"},
        "resourceModels": [{"grade": 0, "ranges": [{"name": "cpu", "min": "0", "max": 1}]}],
    },
    {
        "resourceSelectors": [{"apiVersion": "v1", "kind": "Secret", "namespace": "shop", "name": "web"}],
        "association": False,
        "propagateDeps": True,
        "placement": {
            "clusterAffinity": {
                "labelSelector": {
                    "matchExpressions": [{"key": "tier", "operator": "Exists"}],
                    "matchLabels": {"a": "b"},
                },
            },
            "replicaScheduling": {
                "replicaDivisionPreference": "Weighted",
                "replicaSchedulingType": "Divided",
                "weightPreference": {
                    "staticWeightList": [
                        {"targetCluster": {"clusterNames": ["member1"]}, "weight": 1},
                        {"targetCluster": {"clusterNames": ["member2"], "exclude": ["member1"]}, "weight": 2},
                    ]
                },
            },
            "workloadAffinity": {"affinity": {"groupByLabelKey": "app.group"}},
        },
        "preemption": "Always",
        "dependentOverrides": ["image"],
        "schedulerName": "another-scheduler",
        "failover": {
            "application": {
                "decisionConditions": {"tolerationSeconds": 0},
                "purgeMode": "Directly",
                "blockPredecessorSeconds": 600,
                "statePreservation": {
                    "rules": [{"aliasLabelName": "job-id", "jsonPath": "{.jobStatus.jobID}"}]
                },
            },
            "cluster": {
                "purgeMode": "Gracefully",
                "statePreservation": {"rules": [{"aliasLabelName": "a.b/c", "jsonPath": "{.a}"}]},
            },
        },
        "activationPreference": "Lazy",
        "suspension": {"dispatchingOnClusters": {"clusterNames": ["member1"]}},
        "preserveResourcesOnDeletion": True,
        "schedulePriority": {"priorityClassSource": "KubePriorityClass", "priorityClassName": "high"},
    },
    {
        "propagateDeps": True,
        "replicaRequirements": {
            "nodeClaim": {
                "hardNodeAffinity": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}],
                            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}],
                        }
                    ]
                },
                "nodeSelector": {"disk": "ssd"},
                "tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 7}],
            },
            "resourceRequest": {"cpu": 1, "memory": "1.5Gi"},
            "namespace": "default",
            "priorityClassName": "high",
        },
        "components": [
            {
                "name": "jobmanager",
                "replicas": 1,
                "replicaRequirements": {"resourceRequest": {"cpu": "1"}, "priorityClassName": "high"},
            }
        ],
        "requiredBy": [{"namespace": "default", "name": "b", "clusters": [{"name": "m1", "replicas": 1}]}],
        "gracefulEvictionTasks": [
            {
                "fromCluster": "m1",
                "purgeMode": "Never",
                "reason": "ApplicationFailure",
                "message": "unhealthy",
                "producer": "resource-binding-application-failover-controller",
                "suppressDeletion": True,
                "preservedLabelState": {"a": "b"},
                "clustersBeforeFailover": ["m0"],
            }
        ],
        "suspension": {"dispatching": False, "scheduling": True},
        "preserveResourcesOnDeletion": False,
        "schedulePriority": {"priority": 5},
        "workloadAffinityGroups": {"affinityGroup": "a=b", "antiAffinityGroup": "c=d"},
    },
    {"suspendDispatching": True, "preserveResourcesOnDeletion": True},
]


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("Cluster", RARE[0]),
        ("PropagationPolicy", RARE[1]),
        ("ClusterPropagationPolicy", RARE[1]),
        ("ResourceBinding", RARE[2]),
        ("ClusterResourceBinding", RARE[2]),
        ("Work", RARE[3]),
    ],
)
async def test_rarely_used_fields_are_stored_as_well(client: Client, kind: str, spec: Object) -> None:
    one = example(kind)
    one["spec"] |= spec
    assert values(one).items() <= values(await keep(client, one)).items()


async def test_the_least_policy_gets_the_documented_defaults(client: Client) -> None:
    kept = await keep(
        client, policy(placement={"replicaScheduling": {}, "spreadConstraints": [{"maxGroups": 3}]})
    )
    assert kept["spec"] == {
        "resourceSelectors": [
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "default"}
        ],
        "priority": 0,
        "preemption": "Never",
        "schedulerName": "default-scheduler",
        "conflictResolution": "Abort",
        "placement": {
            "replicaScheduling": {
                "replicaSchedulingType": "Divided",
                "replicaDivisionPreference": "Weighted",
            },
            "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 3}],
        },
    }
    assert list(kept["metadata"]["labels"]) == ["propagationpolicy.karmada.io/permanent-id"]


async def test_the_least_cluster_policy_selects_everywhere(client: Client) -> None:
    kept = await keep(client, policy("ClusterPropagationPolicy"))
    assert "namespace" not in kept["spec"]["resourceSelectors"][0]
    assert list(kept["metadata"]["labels"]) == ["clusterpropagationpolicy.karmada.io/permanent-id"]


@pytest.mark.parametrize(
    ("application", "made"),
    [
        ({}, {"purgeMode": "Gracefully", "gracePeriodSeconds": 600}),
        ({"purgeMode": "Graciously"}, {"purgeMode": "Gracefully", "gracePeriodSeconds": 600}),
        ({"purgeMode": "Immediately"}, {"purgeMode": "Directly"}),
        ({"purgeMode": "Never"}, {"purgeMode": "Never"}),
    ],
)
async def test_f_01_application_failover_gets_the_documented_defaults(
    client: Client, application: Object, made: Object
) -> None:
    kept = await keep(client, policy(failover={"application": {"decisionConditions": {}} | application}))
    always = {"blockPredecessorSeconds": 600, "onGraceEnd": "KeepBetter", "preserveAvailableReplicas": False}
    wanted = {"decisionConditions": {"tolerationSeconds": 300}} | always | made
    assert kept["spec"]["failover"]["application"] == wanted
    assert kept["spec"]["propagateDeps"] is True


async def test_a_binding_gets_an_id_and_the_new_words(client: Client) -> None:
    (old,) = [one for one in EXAMPLES if one["metadata"]["name"] == "nginx-pod"]
    kept = await keep(client, old)
    assert kept["metadata"]["labels"]["resourcebinding.karmada.io/permanent-id"]
    assert kept["spec"]["conflictResolution"] == "Abort"
    assert kept["spec"]["activeEvictionHistory"] == [
        {"clusterName": "member2", "creationTimestamp": "2023-04-03T01:44:31Z"}
    ]


async def test_a_cluster_gets_times_and_zones(client: Client) -> None:
    cluster = example("Cluster")
    cluster["spec"] |= {"taints": [{"key": "k", "effect": "NoExecute"}], "zone": "eu-1a"}
    del cluster["spec"]["zones"]
    kept = await keep(client, cluster)
    (taint,) = kept["spec"]["taints"]
    assert taint["timeAdded"].endswith("Z")
    assert kept["spec"]["zones"] == ["eu-1a"]


async def test_an_id_outlives_every_change(client: Client) -> None:
    made = await keep(client, policy())
    label = "propagationpolicy.karmada.io/permanent-id"
    path = f"{collection_of(made)}/one"
    changed = policy(priority=7)
    changed["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"]
    kept = await client.request("PUT", path, changed)
    assert kept["metadata"]["labels"][label] == made["metadata"]["labels"][label]
    with pytest.raises(Refused, match=f"label {label} is immutable") as refused:
        await client.patch(path, {"metadata": {"labels": {label: "another"}}})
    assert refused.value.status == 403


async def test_objects_being_deleted_are_not_validated(client: Client) -> None:
    held = policy()
    held["metadata"]["finalizers"] = ["example.com/held"]
    label = "propagationpolicy.karmada.io/permanent-id"
    made = await keep(client, held)
    path = f"{collection_of(made)}/one"
    await client.delete(path)
    await client.patch(path, {"metadata": {"labels": {label: "another"}}})
    await client.patch(path, {"metadata": {"finalizers": None}})
    with pytest.raises(Refused, match="404"):
        await client.get(path)


async def test_the_status_is_written_by_its_own_path_only(client: Client) -> None:
    for kind in ("Cluster", "ResourceBinding", "ClusterResourceBinding", "Work", "WorkloadRebalancer"):
        one = example(kind)
        made = await client.create(collection_of(one), one)
        assert "status" not in made


async def table(client: Client, path: str) -> list[Object]:
    """What kubectl prints: the rows, by the names of the columns."""
    session = client._session
    assert session is not None
    wanted = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    async with session.get(path, headers=wanted) as answer:
        found = await answer.json()
    names = [column["name"] for column in found["columnDefinitions"]]
    return [dict(zip(names, row["cells"], strict=True)) for row in found["rows"]]


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (
            "Cluster",
            {"Version": "v1.37.1", "Mode": "Push", "Ready": "True", "Region": "eu-1", "Provider": "acme"},
        ),
        ("PropagationPolicy", {"Conflict-Resolution": "Abort", "Priority": 0}),
        ("ClusterPropagationPolicy", {"Conflict-Resolution": "Overwrite", "Priority": 10}),
        ("ResourceBinding", {"Scheduled": "True", "FullyApplied": None}),
        ("ClusterResourceBinding", {"Scheduled": None}),
        ("Work", {"Workload-Kind": "ConfigMap", "Workload-Name": "settings", "Applied": "True"}),
        ("WorkloadRebalancer", {"Observed": 1}),
    ],
)
async def test_kubectl_columns_show_the_status(client: Client, kind: str, told: Object) -> None:
    one = example(kind)
    await keep(client, one)
    (row,) = await table(client, collection_of(one))
    assert {key: row[key] for key in told} == told
    assert row["Name"] == one["metadata"]["name"]


async def test_a_warning_reaches_the_client(client: Client) -> None:
    cluster = example("Cluster")
    cluster["spec"]["syncMode"] = "Pull"
    session = client._session
    assert session is not None
    async with session.post(collection_of(cluster), json=cluster) as answer:
        assert answer.status == 201
        assert "spec.syncMode: Pull: stored, but has no effect" in answer.headers["Warning"]


async def apply(client: Client, path: str, own: Object) -> None:
    """What a controller says of its own fields."""
    session = client._session
    assert session is not None
    kind = {"Content-Type": "application/apply-patch+yaml"}
    async with session.patch(path, data=msgspec.json.encode(own), headers=kind) as answer:
        assert answer.status == 200


async def test_several_writers_apply_each_its_own_taints(client: Client) -> None:
    cluster = example("Cluster")
    await keep(client, cluster)
    path = f"{collection_of(cluster)}/member1"
    for writer in ("lifecycle", "operator"):
        own = {key: cluster[key] for key in ("apiVersion", "kind")} | {
            "metadata": {"name": "member1"},
            "spec": {"syncMode": "Push", "taints": [{"key": writer, "effect": "NoSchedule"}]},
        }
        await apply(client, f"{path}?fieldManager={writer}", own)
    taints = (await client.get(path))["spec"]["taints"]
    assert {taint["key"] for taint in taints} == {"maintenance", "lifecycle", "operator"}


@pytest.mark.parametrize("one", MANIFESTS, ids=lambda one: one["kind"])
async def test_the_manifests_hold_nothing_that_the_api_server_does_not_know(
    client: Client, one: Object
) -> None:
    """Tried on, strictly, under other names."""
    version, plural = one["apiVersion"], f"{one['kind'].lower()}s".replace("policys", "policies")
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    meta, within = {**one["metadata"], "name": "tried"}, ""
    if "namespace" in meta:
        meta, within = meta | {"namespace": "default"}, "/namespaces/default"
    path = f"{root}{within}/{plural}?dryRun=All&fieldValidation=Strict"
    assert (await client.create(path, {**one, "metadata": meta}))["metadata"]["uid"]
