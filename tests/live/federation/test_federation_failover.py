"""Workloads leave lost, tainted or deleted members for others, and never run nowhere meanwhile."""

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from reberth.values.timestamp import parse_time, write_time
from tests.live.support.evictions import (
    apply,
    effects,
    groups,
    is_gone,
    remove,
    targets,
    tasks,
    told,
    works,
)
from tests.live.support.failing_members import (
    NAMES,
    Partitioned,
    condition,
    counting,
    partitioned,
    ready_members,
    until,
)
from tests.live.support.hub_and_members import cluster_of, deployment, eventually, policy, secret_of
from tests.live.support.hub_paths import BINDINGS, CLUSTERS, DEPLOYMENTS, POLICIES, SECRETS

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Partitioned]:
    async with partitioned("federation-failover", tmp_path_factory.mktemp("federation")) as place:
        yield place


async def test_a_workload_moves_on_and_returns_and_is_never_at_zero(place: Partitioned) -> None:
    hub, (home, backup, _) = place.hub, place.members.values()
    binding = f"{BINDINGS}/nginx-deployment"
    await place.run(taintLostMembersAfter="500ms")
    async with counting(place.place, "nginx") as census:
        walk = (("dc-shanghai", "unavailable"), ("dc-beijing", "member1"), ("dc-hongkong", "member2"))
        await apply(place, "nginx", **groups(*walk))
        await until(lambda: census.count == 2, "the workload is not ready in the second group")
        census.begin()
        await eventually(hub, binding, observes("dc-beijing", "member1"))

        await place.lose("member1")
        await eventually(hub, f"{CLUSTERS}/member1", lambda one: effects(one) == {"NoSchedule", "NoExecute"})
        await eventually(hub, binding, observes("dc-hongkong", "member2"))
        await until(lambda: census.count == 4, "the workload is not ready in the third group")
        await eventually(hub, binding, lambda one: not tasks(one))
        await told(place, "EvictWorkloadFromClusterSucceed", "member1")

        await place.find("member1")
        await ready_members(place, ["member1"])
        await eventually(home, f"{DEPLOYMENTS}/nginx", is_gone)
        await until(lambda: census.count == 2, "the old copy stays")
        assert observes("dc-hongkong", "member2")(await hub.get(binding))

        await place.lose("member2")
        await eventually(hub, binding, tasks)
        await place.crash()
        await eventually(hub, binding, observes("dc-beijing", "member1"))
        await until(lambda: census.count == 4, "the workload is not back at home")
        await eventually(hub, binding, lambda one: not tasks(one))
        await place.find("member2")
        await ready_members(place)
        await eventually(backup, f"{DEPLOYMENTS}/nginx", is_gone)
        assert observes("dc-beijing", "member1")(await hub.get(binding))
        assert census.lowest == 2
        await remove(place, "nginx")


def observes(group: str, *clusters: str) -> Any:
    return lambda one: (
        targets(one) == list(clusters) and one["status"].get("schedulerObservingAffinityName") == group
    )


async def test_members_report_version_apis_nodes_and_resources(place: Partitioned) -> None:
    await place.run()
    found = await place.hub.get(f"{CLUSTERS}/member1")
    assert found["status"]["kubernetesVersion"].startswith("v1.")
    groups = {each["groupVersion"] for each in found["status"]["apiEnablements"]}
    assert groups >= {"v1", "apps/v1", "batch/v1"}
    assert found["metadata"]["finalizers"] == ["karmada.io/cluster-controller"]
    found = await eventually(place.hub, f"{CLUSTERS}/member1", lambda one: one["status"].get("nodeSummary"))
    assert found["status"]["nodeSummary"] == {"totalNum": 1, "readyNum": 1}
    assert found["status"]["resourceSummary"]["allocatable"]["cpu"] == "8"
    await place.place.clusters["member1"].add_nodes(1, first=1)
    await eventually(
        place.hub,
        f"{CLUSTERS}/member1",
        lambda one: one["status"]["resourceSummary"]["allocatable"]["cpu"] == "16",
    )


async def test_f_31_an_unreachable_member_gets_no_new_replicas_and_keeps_its_own(place: Partitioned) -> None:
    await place.run()
    await apply(place, "kept", clusterAffinity={"clusterNames": ["member1"]})
    await eventually(place.hub, f"{DEPLOYMENTS}/kept", lambda one: ready(one) == (2, 2))
    await place.lose("member1")
    found = await eventually(place.hub, f"{CLUSTERS}/member1", effects)
    assert effects(found) == {"NoSchedule"}
    assert condition(found, "Ready")["reason"] == "ClusterNotReachable"
    await told(place, "ClusterNotReachable", "cannot connect")
    binding = await eventually(
        place.hub, f"{BINDINGS}/kept-deployment", lambda one: healths(one) == ["Unknown"]
    )
    assert (targets(binding), tasks(binding)) == (["member1"], [])
    await eventually(place.hub, f"{DEPLOYMENTS}/kept", lambda one: ready(one) == (2, 0))
    await place.find("member1")
    await ready_members(place, ["member1"])
    await eventually(place.hub, f"{DEPLOYMENTS}/kept", lambda one: ready(one) == (2, 2))
    await remove(place, "kept")


def healths(found: Any) -> list[str]:
    return [each["health"] for each in found["status"].get("aggregatedStatus", ())]


def ready(found: Any) -> tuple[int, int]:
    """The replicas of a template, and those of them that are ready."""
    status = found.get("status", {})
    return status.get("replicas", 0), status.get("readyReplicas", 0)


async def test_a_taint_set_by_hand_evicts_workloads_that_do_not_tolerate_it(place: Partitioned) -> None:
    hub, (old, _, new) = place.hub, place.members.values()
    walk = groups(("first", "member1"), ("second", "member3"))
    patience = {"key": "maintenance", "operator": "Exists", "effect": "NoExecute"}
    await place.run()
    await apply(place, "leaves", **walk)
    await apply(place, "waits", clusterTolerations=[{**patience, "tolerationSeconds": 4}], **walk)
    await apply(place, "stays", clusterTolerations=[patience], **walk)
    await apply(place, "alone", clusterAffinity={"clusterNames": ["member1"]})
    for name in ("leaves", "waits", "stays", "alone"):
        await eventually(old, f"{DEPLOYMENTS}/{name}", lambda one: one is not None)
    now = time.time()
    await taint(place, "member1", {"timeAdded": write_time(now)})

    found = await eventually(
        hub,
        f"{BINDINGS}/leaves-deployment",
        lambda one: targets(one) == ["member3"] and tasks(one) and tasks(one)[0].get("creationTimestamp"),
    )
    (task,) = tasks(found)
    begun = parse_time(task.pop("creationTimestamp"))
    assert begun >= int(now)
    assert task == {
        "fromCluster": "member1",
        "purgeMode": "Gracefully",
        "replicas": 2,
        "reason": "TaintUntolerated",
        "message": "cluster(s) had untolerated taint {maintenance:NoExecute}",
        "producer": "taint-manager",
    }
    found = await eventually(
        hub,
        f"{BINDINGS}/waits-deployment",
        lambda one: tasks(one) and tasks(one)[0].get("creationTimestamp"),
    )
    assert parse_time(tasks(found)[0]["creationTimestamp"]) >= int(now) + 4

    await hub.patch(f"{DEPLOYMENTS}/leaves", {"spec": {"replicas": 3}})
    await eventually(new, f"{DEPLOYMENTS}/leaves", lambda one: one and one["spec"]["replicas"] == 3)
    assert (await old.get(f"{DEPLOYMENTS}/leaves"))["spec"]["replicas"] == 2
    await play_healthy(place, "leaves", 3)
    await eventually(old, f"{DEPLOYMENTS}/leaves", is_gone)
    await hub.patch(
        f"{BINDINGS}/waits-deployment",
        {"spec": {"gracefulEvictionTasks": [{**tasks(found)[0], "suppressDeletion": False}]}},
    )
    await eventually(old, f"{DEPLOYMENTS}/waits", is_gone)

    assert targets(await hub.get(f"{BINDINGS}/stays-deployment")) == ["member1"]
    found = await eventually(hub, f"{BINDINGS}/alone-deployment", tasks)
    assert targets(found) == ["member1"]
    found = await eventually(
        hub,
        f"{BINDINGS}/alone-deployment",
        lambda one: condition(one, "Scheduled").get("reason") == "NoClusterFit",
    )
    assert "1 cluster(s) is in the process of eviction" in condition(found, "Scheduled")["message"]
    await hub.patch(f"{CLUSTERS}/member1", {"spec": {"taints": []}})
    await eventually(hub, f"{BINDINGS}/alone-deployment", lambda one: not tasks(one))
    await told(place, "EvictWorkloadFromClusterWithdrawn", "member1")
    await remove(place, "leaves", "waits", "stays", "alone")


async def test_a_workload_returns_to_its_old_copy_when_the_new_one_is_driven_out_too(
    place: Partitioned,
) -> None:
    hub, (old, _, new) = place.hub, place.members.values()
    binding = f"{BINDINGS}/returns-deployment"
    await place.run()
    async with counting(place.place, "returns") as census:
        await apply(place, "returns", **groups(("first", "member1"), ("second", "member3")))
        await until(lambda: census.count == 2, "the workload is not ready in the first group")
        census.begin()
        await taint(place, "member1", {})
        await eventually(hub, binding, observes("second", "member3"))
        await eventually(new, f"{DEPLOYMENTS}/returns", lambda one: one is not None)
        await hub.patch(f"{CLUSTERS}/member1", {"spec": {"taints": []}})
        await taint(place, "member3", {})
        await eventually(hub, binding, observes("first", "member1"))
        await eventually(new, f"{DEPLOYMENTS}/returns", is_gone)
        await eventually(hub, binding, lambda one: not tasks(one))
        assert census.lowest == 2
        assert await old.get(f"{DEPLOYMENTS}/returns")
        await hub.patch(f"{CLUSTERS}/member3", {"spec": {"taints": []}})
        await remove(place, "returns")


async def taint(place: Partitioned, member: str, more: dict[str, Any]) -> None:
    wanted = [{"key": "maintenance", "effect": "NoExecute", **more}]
    await place.hub.patch(f"{CLUSTERS}/{member}", {"spec": {"taints": wanted}})


async def play_healthy(place: Partitioned, name: str, count: int) -> None:
    """Stand in for the controllers and kubelets that the third member does not have."""
    client = place.members["member3"]
    found = await eventually(client, f"{DEPLOYMENTS}/{name}", lambda one: one is not None)
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), count)
    status = {"observedGeneration": found["metadata"]["generation"], **counts}
    await client.patch(f"{DEPLOYMENTS}/{name}/status", {"status": status})


async def test_purge_mode_directly_removes_the_old_copy_before_creating_the_new_one(
    place: Partitioned,
) -> None:
    hub = place.hub
    await place.run()
    await hub.create(DEPLOYMENTS, deployment("once", 1, grace=1))
    wanted = policy("once", **groups(("first", "member1"), ("second", "member2")))
    wanted["spec"]["failover"] = {"cluster": {"purgeMode": "Directly"}}
    await hub.create(POLICIES, wanted)
    await eventually(place.members["member1"], f"{DEPLOYMENTS}/once", lambda one: one is not None)
    await place.lose("member1")
    await eventually(hub, f"{CLUSTERS}/member1", effects)
    now = {"key": "maintenance", "effect": "NoExecute"}
    found = await hub.get(f"{CLUSTERS}/member1")
    await hub.patch(f"{CLUSTERS}/member1", {"spec": {"taints": [*found["spec"]["taints"], now]}})
    await eventually(hub, f"{BINDINGS}/once-deployment", lambda one: targets(one) == ["member2"])
    await eventually(
        hub,
        works("member1"),
        lambda one: [each for each in one["items"] if each["metadata"].get("deletionTimestamp")],
    )
    new, old = await hub.get(works("member2")), await hub.get(works("member1"))
    assert (len(new["items"]), len(old["items"])) == (0, 1)
    await place.find("member1")
    await eventually(hub, works("member2"), lambda one: one["items"])
    assert not (await hub.get(works("member1")))["items"]
    await hub.patch(f"{CLUSTERS}/member1", {"spec": {"taints": []}})
    await remove(place, "once")


async def test_a_failed_over_copy_gets_the_preserved_state_of_the_one_before(place: Partitioned) -> None:
    hub, label = place.hub, "shop.example/available"
    await place.run()
    await hub.create(DEPLOYMENTS, deployment("state", 2, grace=1))
    wanted = policy("state", **groups(("first", "member1"), ("second", "member2")))
    rules = [{"aliasLabelName": label, "jsonPath": "{.availableReplicas}"}]
    wanted["spec"]["failover"] = {"cluster": {"purgeMode": "Directly", "statePreservation": {"rules": rules}}}
    await hub.create(POLICIES, wanted)
    path = f"{BINDINGS}/state-deployment"
    await eventually(
        hub,
        path,
        lambda one: (
            one
            and [
                each
                for each in one.get("status", {}).get("aggregatedStatus", ())
                if each.get("status", {}).get("availableReplicas") == 2
            ]
        ),
        within=60,
    )
    await taint(place, "member1", {})
    await eventually(place.members["member1"], f"{DEPLOYMENTS}/state", is_gone, within=60)
    new = await eventually(place.members["member2"], f"{DEPLOYMENTS}/state", lambda one: one is not None)
    assert new["metadata"]["labels"][label] == "2"
    await eventually(hub, path, lambda one: not tasks(one), within=60)
    await hub.patch(f"{DEPLOYMENTS}/state", {"spec": {"replicas": 3}})
    changed = await eventually(
        place.members["member2"], f"{DEPLOYMENTS}/state", lambda one: one["spec"]["replicas"] == 3
    )
    assert changed["metadata"]["labels"][label] == "2"
    await hub.patch(f"{CLUSTERS}/member1", {"spec": {"taints": []}})
    await remove(place, "state")


async def test_a_misconfigured_member_or_name_is_reported_and_the_rest_goes_on(place: Partitioned) -> None:
    hub = place.hub
    endpoint = place.place.cluster.design.url
    authority = (await hub.get(f"{SECRETS}/member1"))["data"]["caBundle"]
    await place.run()
    for name, data, words in (
        ("no-token", {"caBundle": authority}, "data.token: is missing"),
        ("wrong-ca", {"caBundle": authority, "token": "bm9ib2R5"}, "certificate verify failed"),
        ("no-secret", None, 'secrets "no-secret" not found'),
    ):
        if data is not None:
            await hub.create(SECRETS, secret_of(name, endpoint, data))
        await hub.create(CLUSTERS, cluster_of(name, endpoint))
        found = await eventually(hub, f"{CLUSTERS}/{name}", effects)
        ready = condition(found, "Ready")
        assert (ready["status"], ready["reason"]) == ("False", "StatusCollectionFailed")
        assert words in ready["message"]
        await told(place, "StatusCollectionFailed", words)
    await apply(place, "lost", clusterAffinity={"clusterNames": ["nowhere"]})
    found = await eventually(
        hub, f"{BINDINGS}/lost-deployment", lambda one: condition(one, "Scheduled").get("status")
    )
    assert condition(found, "Scheduled")["reason"] == "NoClusterFit"
    await told(place, "UnknownCluster", "nowhere")
    await apply(place, "goes-on", clusterAffinity={"clusterNames": [*NAMES, "wrong-ca"]})
    for client in place.members.values():
        await eventually(client, f"{DEPLOYMENTS}/goes-on", lambda one: one is not None)
    for name in ("no-token", "wrong-ca", "no-secret"):
        await hub.delete(f"{CLUSTERS}/{name}")
        await eventually(hub, f"{CLUSTERS}/{name}", is_gone)
    await remove(place, "lost", "goes-on")


async def leaving(place: Partitioned, name: str, to: str) -> float:
    """Wait until a workload has been given another cluster; return when that was."""
    path = f"{BINDINGS}/{name}-deployment"
    found = await eventually(place.hub, path, lambda one: targets(one) == [to] and status_time(one))
    return parse_time(status_time(found))


def status_time(found: Any) -> str:
    return str(found["status"].get("lastScheduledTime", ""))


async def test_workloads_leave_a_deleted_member_and_a_lost_one_keeps_its_copies(
    place: Partitioned,
) -> None:
    hub, (one, two, three) = place.hub, place.members.values()
    await place.run()
    async with counting(place.place, "moves") as census:
        await apply(place, "moves", **groups(("first", "member1"), ("second", "member2")))
        many = [f"moves-{number}" for number in range(4)]
        for name in many:
            await apply(place, name, **groups(("first", "member1"), ("second", "member2")))
            await eventually(one, f"{DEPLOYMENTS}/{name}", lambda found: found is not None)
        await apply(place, "orphan", clusterAffinity={"clusterNames": ["member3"]})
        await until(lambda: census.count == 2, "the workload is not ready in the first group")
        census.begin()
        await hub.delete(f"{CLUSTERS}/member1")
        left = [await leaving(place, name, "member2") for name in many]
        assert max(left) - min(left) >= 1, "all of them have left at once"
        await eventually(hub, f"{CLUSTERS}/member1", is_gone)
        await eventually(one, f"{DEPLOYMENTS}/moves", is_gone)
        assert targets(await hub.get(f"{BINDINGS}/moves-deployment")) == ["member2"]
        assert census.lowest is not None
        assert census.lowest >= 2
        found = await hub.get("/api/v1/namespaces/karmada-es-member1")
        assert found["metadata"]["deletionTimestamp"]

        await eventually(three, f"{DEPLOYMENTS}/orphan", lambda found: found is not None)
        await place.lose("member3")
        await eventually(hub, f"{CLUSTERS}/member3", effects)
        await hub.delete(f"{CLUSTERS}/member3")
        await told(place, "WaitingForSubstitutes", "default/orphan-deployment")
        await eventually(hub, f"{CLUSTERS}/member3", is_gone)
        await eventually(hub, works("member3"), lambda found: not found["items"])
        assert (await three.get(f"{DEPLOYMENTS}/orphan"))["metadata"]["name"] == "orphan"
        assert await two.get(f"{DEPLOYMENTS}/moves")
