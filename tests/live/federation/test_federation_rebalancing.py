"""Replicas move back to better clusters, in members that really run pods."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from federation.objects.resources import BINDINGS as BINDING
from federation.objects.resources import REBALANCERS as REBALANCER
from federation.rebalancing.failback import is_returning
from localcluster.client import Refused
from localproduct.ready_pods import counting
from reberth.values.timestamp import parse_time
from tests.live.support.hub_and_members import Place, deployment, eventually, policy, weighted
from tests.live.support.hub_paths import (
    CLUSTER_BINDINGS,
    CLUSTER_POLICIES,
    CLUSTERS,
    DEPLOYMENTS,
    EVENTS,
    POLICIES,
    REBALANCERS,
)
from tests.live.support.rebalancing_members import (
    AGGREGATED,
    DYNAMIC,
    MEMBERS,
    PAIR,
    asking,
    binding_of,
    cordon,
    count,
    entries,
    finished,
    following,
    has_allocated,
    let_a_second_pass,
    outlast_reservations,
    propagate,
    rebalance,
    rebalancer,
    rebalancing,
    recover,
    reference,
    results,
    settled,
    stand,
    status,
    taint,
)

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

WAITING = "reberth_federation_rebalance_waiting_workloads"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "demo-role"}
GROUPS = [
    {"affinityName": "primary", "clusterNames": ["member1"]},
    {"affinityName": "backup", "clusterNames": ["member2"]},
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def federation(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    async with rebalancing("rebalancing", tmp_path_factory.mktemp("federation")) as place:
        yield place


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
    binding, role = binding_of("demo-deploy-1"), f"{CLUSTER_BINDINGS}/demo-role-clusterrole"
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


async def test_the_workload_list_may_change_and_a_missing_workload_may_appear(federation: Place) -> None:
    hub, path = federation.hub, f"{REBALANCERS}/demo"
    await propagate(federation, "demo-deploy-3", 2, clusterAffinity=PAIR, replicaScheduling=DYNAMIC)
    binding = binding_of("demo-deploy-3")
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


async def test_an_invalid_rebalancer_is_refused(federation: Place) -> None:
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
    async with counting(federation.clusters, "one") as pods:
        await pods.become({"member1": 2, "member2": 2})
        await taint(federation, "member1")
        await pods.become({"member2": 4})
        await recover(federation, "member1")
        await settled(federation, "one", {"member2": 4})
        entry = await rebalance(federation, "one")
        await pods.become({"member1": 2, "member2": 2})
    assert entry["from"] == [{"name": "member2", "replicas": 4}]
    assert entry["to"] == [{"name": "member1", "replicas": 2}, {"name": "member2", "replicas": 2}]


async def test_story_2_a_workload_reduced_to_one_cluster_spreads_again(federation: Place) -> None:
    """Its own failure drove it out of member1; now there is room again."""
    hub = federation.hub
    await propagate(federation, "two", 4, clusterAffinity=PAIR, replicaScheduling=DYNAMIC)
    async with counting(federation.clusters, "two") as pods:
        await pods.become({"member1": 2, "member2": 2})
        await hub.patch(
            binding_of("two"),
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
    """Each node has 32 cpus: six replicas of 4 find room in one member only when nothing else is there."""
    hub = federation.hub
    for client in federation.members.values():
        await client.create(DEPLOYMENTS, asking(deployment("foreign", 1), cpu="16", grace=0))
    for member in MEMBERS:
        await eventually(hub, f"{CLUSTERS}/{member}", has_allocated(least=16))
    await hub.create(DEPLOYMENTS, asking(deployment("three", 6), cpu="4"))
    await hub.create(POLICIES, policy("three", clusterAffinity=PAIR, replicaScheduling=AGGREGATED))
    async with counting(federation.clusters, "three") as pods:
        await pods.become({"member1": 3, "member2": 3})
        for client in federation.members.values():
            await client.patch(f"{DEPLOYMENTS}/foreign", {"spec": {"replicas": 0}})
        for member in MEMBERS:
            await eventually(hub, f"{CLUSTERS}/{member}", has_allocated(most=15.9))
        await outlast_reservations(federation, binding_of("three"))
        entry = await rebalance(federation, "three")
        (home,) = entry["to"]
        await pods.become({home["name"]: 6})


async def test_story_4_the_primary_takes_over_before_the_backup_lets_go(federation: Place) -> None:
    await propagate(federation, "four", 3, clusterAffinities=GROUPS)
    async with counting(federation.clusters, "four") as pods:
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


async def test_a_changed_policy_takes_no_pod_away_before_its_replacement_is_ready(federation: Place) -> None:
    await propagate(federation, "edited", 3, clusterAffinity={"clusterNames": ["member1"]})
    async with counting(federation.clusters, "edited") as pods:
        await pods.become({"member1": 3})
        pods.fewest = 3
        placement = {"clusterAffinity": {"clusterNames": ["member2"]}}
        await federation.hub.patch(f"{POLICIES}/edited", {"spec": {"placement": placement}})
        await pods.become({"member2": 3})
        assert pods.fewest == 3
    await settled(federation, "edited", {"member2": 3})


async def test_workloads_with_failback_return_one_after_the_other(
    federation: Place,
) -> None:
    names = ("home", "homely")
    for name in names:
        wanted = policy(name, clusterAffinities=GROUPS)
        wanted["spec"]["failover"] = {"failback": {"stabilizationSeconds": 2}}
        await federation.hub.create(DEPLOYMENTS, deployment(name, 2))
        await federation.hub.create(POLICIES, wanted)
    async with (
        counting(federation.clusters, "home") as pods,
        following(federation, BINDING, *(f"{name}-deployment" for name in names)) as seen,
    ):
        await pods.become({"member1": 2})
        await settled(federation, "homely", {"member1": 2})
        await taint(federation, "member1")
        await pods.become({"member2": 2})
        await settled(federation, "homely", {"member2": 2})
        pods.fewest = 2
        await recover(federation, "member1")
        await pods.become({"member1": 2})
        assert pods.fewest == 2
        for name in names:
            binding = await settled(federation, name, {"member1": 2})
            assert binding["status"]["schedulerObservingAffinityName"] == "primary"
            await eventually(federation.hub, binding_of(name), lambda one: "failback" not in status(one))
    returning: dict[str, bool] = {}
    for one in seen:
        returning[one.metadata.name] = is_returning(one)
        assert sum(returning.values()) <= 1


async def test_by_labels_and_no_more_at_once_than_may_move(federation: Place) -> None:
    """Each has two replicas, and two may move: none is triggered before the one before it is healthy."""
    hub, names = federation.hub, ("batch-1", "batch-2", "batch-3")
    both = weighted(member1=1, member2=1)
    for name in names:
        one = deployment(name, 2)
        one["metadata"]["labels"]["tier"] = "batch"
        await hub.create(DEPLOYMENTS, one)
        await hub.create(POLICIES, policy(name, clusterAffinity=PAIR, replicaScheduling=both))
        await let_a_second_pass(federation, binding_of(name))
        await stand(federation, name, {"member2": 2})
    selector = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "labelSelector": {"matchLabels": {"tier": "batch"}},
    }
    async with following(federation, REBALANCER, "batch") as seen:
        await hub.create(REBALANCERS, rebalancer("batch", workloadSelectors=[selector], maxMovingReplicas=2))
        await eventually(hub, f"{REBALANCERS}/batch", lambda one: healthy(one) == set(names), within=60)
    for name in names:
        await settled(federation, name, {"member1": 1, "member2": 1})
    assert max(len(under_way(msgspec.to_builtins(one))) for one in seen) == 1


def healthy(found: Any) -> set[str]:
    return {name for name, each in entries(found).items() if each.get("health") == "Healthy"}


def under_way(found: Any) -> set[str]:
    """Name the workloads that were asked for and are not healthy yet."""
    return {name for name, each in entries(found).items() if "triggeredAt" in each} - healthy(found)


async def test_an_added_workload_restarts_the_ttl_and_a_new_ttl_counts_from_finish_time(
    federation: Place,
) -> None:
    """The proposal's first and second corner case; the third one is in the kill tests."""
    hub, path = federation.hub, f"{REBALANCERS}/lasting"
    await hub.create(REBALANCERS, rebalancer("lasting", "no-1", ttlSecondsAfterFinished=4))
    first = parse_time(status(await finished(federation, "lasting"))["finishTime"])
    while time.time() < first + 1:
        await asyncio.sleep(0.05)
    await hub.patch(path, {"spec": {"workloads": [reference("no-1"), reference("no-2")]}})
    found = await eventually(hub, path, lambda one: len(results(one)) == 2)
    second = parse_time(status(found)["finishTime"])
    assert second > first
    await eventually(hub, path, lambda one: one is None)
    assert time.time() >= second + 4

    await hub.create(REBALANCERS, rebalancer("lasting", "no-1", ttlSecondsAfterFinished=1000))
    finish = parse_time(status(await finished(federation, "lasting"))["finishTime"])
    await hub.patch(path, {"spec": {"ttlSecondsAfterFinished": 2}})
    await eventually(hub, path, lambda one: one is None)
    assert time.time() >= finish + 2


async def test_a_workload_returns_when_its_new_copies_do_not_get_ready(federation: Place) -> None:
    """The only node of member1 takes no pod."""
    hub, alone = federation.hub, weighted(member1=1)
    await hub.create(DEPLOYMENTS, deployment("late", 2))
    await hub.create(POLICIES, policy("late", clusterAffinity=PAIR, replicaScheduling=alone))
    await let_a_second_pass(federation, binding_of("late"))
    await stand(federation, "late", {"member2": 2})
    async with counting(federation.clusters, "late") as pods:
        await pods.become({"member2": 2})
        # The first copy in member1 must be forgotten: its last report would be taken for the next one's.
        await eventually(hub, binding_of("late"), lambda one: reporting(one) == ["member2"])
        pods.fewest = 2
        await cordon(federation, "member1", unschedulable=True)
        entry = await rebalance(federation, "late", handoverTimeoutSeconds=2)
        assert entry["health"] == "Progressing"
        binding = await settled(federation, "late", {"member2": 2})
        assert binding["spec"]["handover"]["returns"] == 1
        await eventually(
            hub,
            f"{REBALANCERS}/late",
            lambda one: entries(one)["late"].get("reason") == "NotReadyInTime",
        )
        await eventually(
            federation.members["member1"],
            f"{DEPLOYMENTS}/late",
            lambda one: one is None,
        )
        assert pods.fewest == 2
    await cordon(federation, "member1", unschedulable=None)
    for kind in ("Deployment", "ResourceBinding"):
        await eventually(hub, EVENTS, tells(kind, "HandoverTimedOut"))


def reporting(found: Any) -> list[str]:
    return [each["clusterName"] for each in status(found).get("aggregatedStatus", ())]


async def test_rebalancing_is_reported_by_events_and_metrics(federation: Place) -> None:
    hub = federation.hub
    await hub.create(REBALANCERS, rebalancer("waiting", "nobody"))
    await finished(federation, "waiting")
    for kind in ("Deployment", "ResourceBinding"):
        reasons = ("RescheduleTriggered", "WorkloadRebalanced", "HandedOver", "FailbackTriggered")
        await eventually(hub, EVENTS, tells(kind, *reasons))
    counted = await count(federation)
    for series, least in (
        ("rebalance_triggered_total by=rebalancer", 8),
        ("rebalance_triggered_total by=failback", 1),
        ("rebalance_rescheduled_total", 8),
        ("rebalance_moved_replicas_total", 2 + 2 + 3 + 3 + 3 + 1),
        ("rebalance_duration_seconds_count", 8),
        ("rebalance_waiting_workloads reason=BindingNotFound", 1),
        ("handovers_total result=ready", 2),
        ("handovers_total result=returned", 1),
    ):
        assert counted[f"reberth_federation_{series}"] >= least, series
    assert counted[f"{WAITING} reason=Budget"] == 0
    await hub.delete(f"{REBALANCERS}/waiting")
    async with asyncio.timeout(30):
        while (await count(federation))[f"{WAITING} reason=BindingNotFound"]:
            await asyncio.sleep(0.1)
