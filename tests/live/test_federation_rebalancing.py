"""Replicas go back to better places, in members in which pods really run."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from localcluster.client import Refused
from tests.builders import Object
from tests.live.federating import Place, deployment, eventually, federated, policy, weighted
from tests.live.hub_paths import (
    BINDINGS,
    CLUSTER_BINDINGS,
    CLUSTER_POLICIES,
    CLUSTERS,
    DEPLOYMENTS,
    EVENTS,
    POLICIES,
    REBALANCERS,
)
from tests.live.rebalancing import (
    AGGREGATED,
    DYNAMIC,
    counting,
    entries,
    finished,
    let_a_second_pass,
    rebalancer,
    recover,
    reference,
    results,
    status,
    taint,
)

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

MEMBERS = ("member1", "member2", "member3")
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "demo-role"}
PAIR = {"clusterNames": ["member1", "member2"]}
GROUPS = [
    {"affinityName": "primary", "clusterNames": ["member1"]},
    {"affinityName": "backup", "clusterNames": ["member2"]},
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def federation(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    folder: Path = tmp_path_factory.mktemp("federation")
    async with federated("rebalancing", MEMBERS, without=()) as place:
        for cluster in place.clusters.values():
            await cluster.add_nodes(1)
        await place.start(
            folder,
            members={"probeEvery": "500ms", "threshold": "1s"},
            scheduler={"reportedWithin": "1s", "reserveFor": "5s"},
            rebalancer={"gatherFor": "200ms"},
            failback={"gatherFor": "200ms"},
        )
        for name in MEMBERS:
            await eventually(place.hub, f"{CLUSTERS}/{name}", has_room)
        yield place
        assert await place.stop() == 0
        assert " error " not in (folder / "federation.log").read_text()


def has_room(cluster: Any) -> Any:
    status = cluster.get("status", {})
    return status.get("apiEnablements") and status.get("resourceSummary", {}).get("allocatable")


def scheduled(found: Any) -> dict[str, int]:
    return {each["name"]: each.get("replicas", 0) for each in found["spec"].get("clusters", ())}


async def settled(place: Place, name: str, wanted: dict[str, int]) -> Any:
    """Wait until a workload is where it is to be and nothing holds or evicts it any more."""
    return await eventually(
        place.hub,
        f"{BINDINGS}/{name}-deployment",
        lambda one: (
            one
            and scheduled(one) == wanted
            and not one["spec"].get("gracefulEvictionTasks")
            and not one["spec"].get("handover", {}).get("clusters")
        ),
        within=60,
    )


async def propagate(place: Place, name: str, replicas: int, **placement: Any) -> None:
    await place.hub.create(DEPLOYMENTS, deployment(name, replicas))
    await place.hub.create(POLICIES, policy(name, **placement))


async def rebalance(place: Place, name: str, **spec: Any) -> Object:
    """Rebalance one Deployment and give what became of it."""
    await let_a_second_pass(place, f"{BINDINGS}/{name}-deployment")
    await place.hub.create(REBALANCERS, rebalancer(name, name, **spec))
    found = await finished(place, name)
    return entries(found)[name]


async def test_the_proposals_example_step_by_step(federation: Place) -> None:
    hub = federation.hub
    await propagate(federation, "demo-deploy-1", 3, clusterAffinity=PAIR, replicaScheduling=DYNAMIC)
    await hub.create(ROLES, {"metadata": {"name": "demo-role"}, "rules": []})
    await hub.create(
        CLUSTER_POLICIES,
        {
            "apiVersion": "policy.karmada.io/v1alpha1",
            "kind": "ClusterPropagationPolicy",
            "metadata": {"name": "demo"},
            "spec": {"resourceSelectors": [ROLE], "placement": {}},
        },
    )
    binding, role = f"{BINDINGS}/demo-deploy-1-deployment", f"{CLUSTER_BINDINGS}/demo-role-clusterrole"
    await let_a_second_pass(federation, binding)
    await let_a_second_pass(federation, role)
    wanted = rebalancer("demo", "demo-deploy-1", "demo-deploy-2")
    wanted["spec"]["workloads"].insert(1, ROLE)
    created = (await hub.create(REBALANCERS, wanted))["metadata"]["creationTimestamp"]

    found = await finished(federation, "demo")
    assert [
        (each["workload"]["name"], each.get("result"), each.get("reason"))
        for each in found["status"]["observedWorkloads"]
    ] == [
        ("demo-deploy-1", "Successful", None),
        ("demo-deploy-2", "Failed", "ReferencedBindingNotFound"),
        ("demo-role", "Successful", None),
    ]
    assert found["status"]["observedGeneration"] == 1
    for path in (binding, role):
        one = await hub.get(path)
        assert one["spec"]["rescheduleTriggeredAt"] == created
        assert status(one)["lastScheduledTime"] >= created
        conditions = {each["type"]: each["reason"] for each in status(one)["conditions"]}
        assert conditions["Scheduled"] == "Success"
    for kind in ("Deployment", "ResourceBinding"):
        await eventually(
            hub, EVENTS, tells(kind, "ScheduleBindingSucceed", "RescheduleTriggered", "WorkloadRebalanced")
        )


def tells(kind: str, *reasons: str) -> Any:
    """Find Events of all these reasons on objects of a kind."""
    return lambda events: (
        set(reasons) <= {each["reason"] for each in events["items"] if each["regarding"]["kind"] == kind}
    )


async def test_its_list_may_be_changed_and_what_was_not_found_may_come(federation: Place) -> None:
    hub, path = federation.hub, f"{REBALANCERS}/demo"
    await propagate(federation, "demo-deploy-3", 2, clusterAffinity=PAIR, replicaScheduling=DYNAMIC)
    binding = f"{BINDINGS}/demo-deploy-3-deployment"
    before = await eventually(hub, binding, lambda one: one and status(one).get("lastScheduledTime"))
    workloads = [reference("demo-deploy-3"), ROLE, reference("demo-deploy-4"), reference("demo-deploy-4")]
    await hub.patch(path, {"spec": {"workloads": workloads}})
    found = await eventually(
        hub,
        path,
        lambda one: (
            results(one)
            == {
                "demo-deploy-1": "Successful",
                "demo-deploy-3": "Successful",
                "demo-deploy-4": "Failed",
                "demo-role": "Successful",
            }
            and status(one)["observedGeneration"] == 2
        ),
    )
    after = await hub.get(binding)
    assert after["spec"]["rescheduleTriggeredAt"] > before["status"]["lastScheduledTime"]
    assert "as soon as" in entries(found)["demo-deploy-4"]["message"]

    await propagate(federation, "demo-deploy-4", 2, clusterAffinity=PAIR, replicaScheduling=DYNAMIC)
    await eventually(hub, path, lambda one: results(one)["demo-deploy-4"] == "Successful")
    kept = await eventually(hub, path, lambda one: status(one).get("finishTime"))
    await hub.patch(path, {"spec": {"workloads": list(reversed(workloads)), "ttlSecondsAfterFinished": 1000}})
    found = await eventually(hub, path, lambda one: status(one)["observedGeneration"] == 3)
    assert found["status"]["finishTime"] == kept["status"]["finishTime"]
    await hub.patch(path, {"spec": {"ttlSecondsAfterFinished": 0}})
    await eventually(hub, path, lambda one: one is None)


async def test_what_cannot_be_meant_is_refused(federation: Place) -> None:
    for spec, said in (
        ({"workloads": []}, "should have at least 1 items"),
        ({}, "workloads or workloadSelectors must be given"),
        ({"workloads": [reference("a")], "ttlSecondsAfterFinished": -5}, "greater than or equal to 0"),
        ({"workloads": [reference("a")], "maxMovingReplicas": 0}, "greater than 0"),
    ):
        with pytest.raises(Refused) as refused:
            await federation.hub.create(REBALANCERS, rebalancer("bad", **spec))
        assert refused.value.status == 422
        assert said in str(refused.value)


async def test_story_1_a_cluster_that_has_recovered_is_used_again(federation: Place) -> None:
    await propagate(
        federation, "one", 4, clusterAffinity=PAIR, replicaScheduling=weighted(member1=1, member2=1)
    )
    async with counting(federation, "one") as pods:
        await pods.become({"member1": 2, "member2": 2})
        await taint(federation, "member1")
        await pods.become({"member2": 4})
        await recover(federation, "member1")
        await settled(federation, "one", {"member2": 4})
        entry = await rebalance(federation, "one")
        await pods.become({"member1": 2, "member2": 2})
    assert entry["from"] == [{"name": "member2", "replicas": 4}]
    assert entry["to"] == [{"name": "member1", "replicas": 2}, {"name": "member2", "replicas": 2}]


async def test_story_2_what_had_to_shrink_to_one_cluster_spreads_again(federation: Place) -> None:
    """Its own failure drove it out of member1; now there is room again."""
    hub = federation.hub
    await propagate(federation, "two", 4, clusterAffinity=PAIR, replicaScheduling=DYNAMIC)
    async with counting(federation, "two") as pods:
        await pods.become({"member1": 2, "member2": 2})
        await hub.patch(
            f"{BINDINGS}/two-deployment",
            {
                "spec": {
                    "gracefulEvictionTasks": [
                        {
                            "fromCluster": "member1",
                            "replicas": 2,
                            "reason": "ApplicationFailure",
                            "producer": "somebody",
                        }
                    ]
                }
            },
        )
        await pods.become({"member2": 4})
        await settled(federation, "two", {"member2": 4})
        await rebalance(federation, "two")
        await pods.become({"member1": 2, "member2": 2})


async def test_story_3_replicas_that_had_to_spread_come_together(federation: Place) -> None:
    """Each node has 8 cpus: six replicas of one find room in one member only when nothing else is there."""
    for member in MEMBERS:
        await federation.members[member].create(DEPLOYMENTS, asking(deployment("foreign", 1), cpu="3500m"))
    for member in MEMBERS:
        await eventually(federation.hub, f"{CLUSTERS}/{member}", has_at_least_allocated(3.5))
    await federation.hub.create(DEPLOYMENTS, asking(deployment("three", 6), cpu="1"))
    await federation.hub.create(POLICIES, policy("three", clusterAffinity=PAIR, replicaScheduling=AGGREGATED))
    async with counting(federation, "three") as pods:
        await pods.become({"member1": 3, "member2": 3})
        for member in MEMBERS:
            await federation.members[member].patch(f"{DEPLOYMENTS}/foreign", {"spec": {"replicas": 0}})
        for member in MEMBERS:
            is_free = has_at_most_allocated(4.9)  # its pods have half a minute to go
            await eventually(federation.hub, f"{CLUSTERS}/{member}", is_free, within=120)
        entry = await rebalance(federation, "three")
        (home,) = entry["to"]
        await pods.become({home["name"]: 6})


async def test_story_4_the_primary_takes_over_before_the_backup_lets_go(federation: Place) -> None:
    await propagate(federation, "four", 3, clusterAffinities=GROUPS)
    async with counting(federation, "four") as pods:
        await pods.become({"member1": 3})
        await taint(federation, "member1")
        await pods.become({"member2": 3})
        await recover(federation, "member1")
        await settled(federation, "four", {"member2": 3})
        pods.fewest = 3
        await rebalance(federation, "four")
        await pods.become({"member1": 3})
        assert pods.fewest == 3
    binding = await settled(federation, "four", {"member1": 3})
    assert binding["status"]["schedulerObservingAffinityName"] == "primary"
    await eventually(
        federation.hub,
        EVENTS,
        lambda events: any(
            each["reason"] == "HandedOver" and each["regarding"]["name"] == "four" for each in events["items"]
        ),
    )


async def test_a_workload_that_asks_for_it_comes_home_by_itself(federation: Place) -> None:
    wanted = policy("home", clusterAffinities=GROUPS)
    wanted["spec"]["failover"] = {"failback": {"stabilizationSeconds": 2}}
    await federation.hub.create(DEPLOYMENTS, deployment("home", 2))
    await federation.hub.create(POLICIES, wanted)
    async with counting(federation, "home") as pods:
        await pods.become({"member1": 2})
        await taint(federation, "member1")
        await pods.become({"member2": 2})
        pods.fewest = 2
        await recover(federation, "member1")
        await pods.become({"member1": 2})
        assert pods.fewest == 2
    binding = await settled(federation, "home", {"member1": 2})
    assert binding["status"]["schedulerObservingAffinityName"] == "primary"
    await eventually(federation.hub, f"{BINDINGS}/home-deployment", lambda one: "failback" not in status(one))


async def test_by_labels_a_few_at_once(federation: Place) -> None:
    hub = federation.hub
    for name in ("batch-1", "batch-2", "batch-3"):
        one = deployment(name, 2)
        one["metadata"]["labels"]["tier"] = "batch"
        await hub.create(DEPLOYMENTS, one)
        await hub.create(POLICIES, policy(name, clusterAffinities=GROUPS))
        await let_a_second_pass(federation, f"{BINDINGS}/{name}-deployment")
    selector = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "labelSelector": {"matchLabels": {"tier": "batch"}},
    }
    spec = {"workloadSelectors": [selector], "maxMovingReplicas": 2}
    await hub.create(REBALANCERS, rebalancer("batch", **spec))
    found = await finished(federation, "batch")
    assert results(found) == dict.fromkeys(("batch-1", "batch-2", "batch-3"), "Successful")


def asking(wanted: Object, *, cpu: str) -> Object:
    wanted["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return wanted


def allocated(cluster: Any) -> float:
    summary = cluster["status"]["resourceSummary"]
    text = {**summary.get("allocated", {})}.get("cpu", "0")
    return int(text[:-1]) / 1000 if text.endswith("m") else float(text)


def has_at_least_allocated(cpus: float) -> Any:
    return lambda cluster: allocated(cluster) >= cpus


def has_at_most_allocated(cpus: float) -> Any:
    return lambda cluster: allocated(cluster) <= cpus
