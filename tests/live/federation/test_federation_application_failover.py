"""Workloads that fail in a member leave it for another one: the stories of application failover."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from federation.failover.health_clock import MOMENT
from federation.settings import FederationSettings
from reberth.values.timestamp import parse_time
from tests.live.support.commands import run_command
from tests.live.support.evictions import is_gone, remove, targets, tasks, told, unhealthy_since, works
from tests.live.support.failing_members import (
    LIVING,
    NAMES,
    Partitioned,
    PodTimes,
    condition,
    counting,
    partitioned,
    until,
    watching,
)
from tests.live.support.hub_and_members import deployment, eventually, policy
from tests.live.support.hub_paths import BINDINGS, CLUSTERS, DEPLOYMENTS, POLICIES
from tests.live.support.rebalancing_members import AGGREGATED, DYNAMIC, cordon, has_allocated, stand
from tests.support.builders import Object
from tests.support.federation.crds import EXAMPLES

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]
LIFE = "localcluster.reberth.dev/life"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
PODS = "/api/v1/namespaces/default/pods"
STATEFUL_SETS = "/apis/apps/v1/namespaces/default/statefulsets"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/reberth-federation"
GRACE = 3
"""Seconds that pods take to end where that matters."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Partitioned]:
    folder = tmp_path_factory.mktemp("federation")
    async with partitioned("application-failover", folder, living=NAMES) as place:
        await place.run(sections={"pendingReplicas": {"longerThan": "3s", "lookEvery": "300ms"}})
        yield place


def failing_over(*members: str, seconds: int = 2, **more: Any) -> Object:
    """The first members that have room, one at a time: each is a group of its own."""
    groups = [{"affinityName": name, "clusterNames": [name]} for name in members]
    scheduling = {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Aggregated",
    }
    application = {"decisionConditions": {"tolerationSeconds": seconds}, **more}
    return {
        "placement": {"clusterAffinities": groups, "replicaScheduling": scheduling},
        "failover": {"application": application},
    }


async def apply(
    place: Partitioned, name: str, spec: Object, *, life: str = "", replicas: int = 2, **template: Any
) -> None:
    made = deployment(name, replicas, grace=1)
    pod = made["spec"]["template"]
    pod["spec"] |= template
    if life:
        pod["metadata"]["annotations"] = {LIFE: life}
    await place.hub.create(DEPLOYMENTS, made)
    await place.hub.create(POLICIES, {**(one := policy(name)), "spec": {**one["spec"], **spec}})


async def binding_that(place: Partitioned, name: str, holds: Any, *, within: float = 30) -> Any:
    return await eventually(place.hub, f"{BINDINGS}/{name}-deployment", holds, within=within)


def held(reason: str) -> Any:
    def holds(one: Any) -> bool:
        conditions = (one or {}).get("status", {}).get("conditions", ())
        return any((each["type"], each["reason"]) == ("Failover", reason) for each in conditions)

    return holds


async def ready_in(place: Partitioned, member: str, name: str, count: int = 2) -> None:
    await eventually(
        place.members[member],
        f"{DEPLOYMENTS}/{name}",
        lambda one: (one or {}).get("status", {}).get("readyReplicas", 0) == count,
    )


async def crowd(place: Partitioned, member: str) -> None:
    """Business peaks: pods of a high priority take the whole node of a member."""
    high = deployment("peak", 8, grace=1)
    high["spec"]["template"]["spec"] |= {"priorityClassName": "high"}
    (container,) = high["spec"]["template"]["spec"]["containers"]
    container["resources"] = {"requests": {"cpu": "1"}}
    await place.members[member].create(DEPLOYMENTS, high)


async def test_a_workload_that_is_preempted_for_long_moves_to_a_cluster_with_room(place: Partitioned) -> None:
    for client in place.members.values():
        await client.create(PRIORITIES, {"metadata": {"name": "high"}, "value": 1000})
    await apply(place, "low", failing_over(*NAMES))
    await ready_in(place, "member1", "low")
    async with counting(place.place, "low", NAMES) as census:
        await until(lambda: census.count == 2, "it is not ready")
        await asyncio.sleep(MOMENT + 1)
        await crowd(place, "member1")
        found = await binding_that(place, "low", lambda one: targets(one) == ["member2"])
        (task,) = tasks(found)
        (entry,) = found["spec"]["activeEvictionHistory"]
        assert (task["reason"], task["fromCluster"]) == ("ApplicationFailure", "member1")
        assert (entry["clusterName"], entry["reason"]) == ("member1", "ApplicationFailure")
        since = {each["clusterName"]: each for each in found["status"]["aggregatedStatus"]}["member1"]
        assert since["settled"] is True
        assert parse_time(entry["creationTimestamp"]) - parse_time(since["unhealthySince"]) >= 2
        census.begin()
        await ready_in(place, "member2", "low")
        await binding_that(place, "low", lambda one: not tasks(one))
        await eventually(place.members["member1"], f"{DEPLOYMENTS}/low", is_gone)
        await until(lambda: census.count == 2, "the pods of the old copy stay")
    await told(place, "EvictWorkloadFromClusterStarted", "member1")
    await told(place, "EvictWorkloadFromClusterSucceed", "member1")
    await binding_that(place, "low", held("Calm"))
    await place.members["member1"].delete(f"{DEPLOYMENTS}/peak")
    await clean_up(place, "low")


async def test_a_workload_whose_spot_nodes_go_away_moves_on(place: Partitioned) -> None:
    await apply(place, "spot", failing_over(*NAMES))
    await ready_in(place, "member1", "spot")
    await break_down(place, "member1")
    await ready_in(place, "member2", "spot")
    await binding_that(place, "spot", lambda one: targets(one) == ["member2"] and not tasks(one))
    await clean_up(place, "spot")


async def test_an_image_that_is_bad_everywhere_moves_twice_and_is_given_up(place: Partitioned) -> None:
    spec = failing_over("member1", "member2", seconds=1, blockPredecessorSeconds=1, gracePeriodSeconds=2)
    await apply(place, "bad", spec, life="never-ready")
    found = await binding_that(place, "bad", held("GivenUp"))
    history = {
        each["clusterName"]: each.get("fruitless", 0) for each in found["spec"]["activeEvictionHistory"]
    }
    assert history == {"member1": 0, "member2": 1}
    assert targets(found) == ["member1"]
    await told(place, "ApplicationFailoverGivenUp", "2 moves in a row")
    await asyncio.sleep(4)
    assert targets(await place.hub.get(f"{BINDINGS}/bad-deployment")) == ["member1"]
    await forgive(place, "bad", history)
    await remove(place, "bad")


async def forgive(place: Partitioned, name: str, history: Object) -> None:
    """Have the workload move at once; a binding that is not there is an error that names it."""
    kubeconfig, binding = place.place.account, f"default/{name}-deployment"
    answer = await run_command(kubeconfig, "federation", "forgive", binding)
    assert answer.code == 0, answer.err
    assert answer.out.startswith(f"{binding} may return to the clusters in which it failed: ")
    assert all(each in answer.out for each in history)
    await binding_that(place, name, lambda one: targets(one) == ["member2"])
    missing = await run_command(kubeconfig, "federation", "forgive", "nobody", "-n", "default")
    assert (missing.code, missing.err) == (2, "federation: BINDING: default/nobody not found\n")


async def test_purged_directly_there_are_never_two_copies(place: Partitioned) -> None:
    await replace_directly(place, "alone")


@pytest.mark.soak
async def test_purged_directly_the_next_copy_comes_soon_after_the_end_of_the_last_pod(
    place: Partitioned,
) -> None:
    gaps = [await replace_directly(place, f"alone-{number}") for number in range(20)]
    print(f"\nseconds without a pod: {sorted(round(each, 2) for each in gaps)}")
    assert max(gaps) <= 2


async def replace_directly(place: Partitioned, name: str) -> float:
    """Count the copies until the last old pod has ended; return how long after it the first new one came."""
    pods = PodTimes()
    await apply(place, name, failing_over(*NAMES, purgeMode="Directly"), terminationGracePeriodSeconds=GRACE)
    await ready_in(place, "member1", name)
    async with watching(place.place, name, pods, NAMES):
        await lose_one(place, "member1", name)
        await ready_in(place, "member2", name)
    (old, gone), new = (pods.came["member1"], pods.gone["member1"]), pods.came["member2"]
    assert len(old) == len(gone) == 3, "two pods, and the one in the place of the lost one"
    assert max(gone).revision < min(new).revision
    assert not pods.came["member3"]
    await clean_up(place, name)
    return min(new).at - max(gone).at


async def test_of_a_workload_in_two_clusters_all_that_is_in_the_failing_one_moves(place: Partitioned) -> None:
    """The replica in the other cluster stays, and so does the one that is ready, until others are."""
    failover = failing_over(*NAMES)["failover"]
    await apply(
        place, "partial", {"placement": {"replicaScheduling": DYNAMIC}, "failover": failover}, replicas=3
    )
    await binding_that(place, "partial", targets)
    await stand(place.place, "partial", {"member1": 2, "member2": 1})
    async with counting(place.place, "partial", NAMES) as census:
        await ready_in(place, "member1", "partial")
        await ready_in(place, "member2", "partial", 1)
        await until(lambda: census.count == 3, "it is not ready, or pods of it are elsewhere")
        await lose_one(place, "member1", "partial")
        census.begin()
        found = await binding_that(place, "partial", lambda one: "member1" not in targets(one))
        given = {each["name"]: each["replicas"] for each in found["spec"]["clusters"]}
        assert sum(given.values()) == 3
        assert given["member2"] >= 1
        await eventually(place.members["member1"], f"{DEPLOYMENTS}/partial", is_gone)
        await until(lambda: census.count == 3, "the new replicas are not ready")
        assert census.lowest == 2
    await clean_up(place, "partial")


async def test_with_never_the_old_copy_stays_until_a_person_ends_the_task(place: Partitioned) -> None:
    await apply(place, "kept", failing_over(*NAMES, purgeMode="Never"))
    await ready_in(place, "member1", "kept")
    await break_down(place, "member1")
    await ready_in(place, "member2", "kept")
    await asyncio.sleep(3)
    found = await place.hub.get(f"{BINDINGS}/kept-deployment")
    (task,) = tasks(found)
    assert task["suppressDeletion"] is True
    assert await place.members["member1"].get(f"{DEPLOYMENTS}/kept")
    await place.hub.patch(f"{BINDINGS}/kept-deployment", {"spec": {"gracefulEvictionTasks": None}})
    await eventually(place.members["member1"], f"{DEPLOYMENTS}/kept", is_gone)
    await clean_up(place, "kept")


async def test_state_travels_to_the_next_copy_as_labels(place: Partitioned) -> None:
    rules = {"rules": [{"aliasLabelName": "shop.example/wanted", "jsonPath": "{.replicas}"}]}
    await apply(place, "state", failing_over(*NAMES, purgeMode="Directly", statePreservation=rules))
    await ready_in(place, "member1", "state")
    await break_down(place, "member1")
    await ready_in(place, "member2", "state")
    copy = await place.members["member2"].get(f"{DEPLOYMENTS}/state")
    assert copy["metadata"]["labels"]["shop.example/wanted"] == "2"
    await clean_up(place, "state")


async def test_a_replica_without_a_node_goes_elsewhere_and_the_ready_one_stays(place: Partitioned) -> None:
    """Without application failover, and with one that keeps what is available."""
    keeping = failing_over(*NAMES, seconds=15, preserveAvailableReplicas=True)["failover"]
    for name, more in (("crowded", {}), ("kept", {"failover": keeping})):
        await apply(place, name, {"placement": {"replicaScheduling": AGGREGATED}, **more})
        binding = await binding_that(place, name, lambda one: len(targets(one)) == 1)
        (home,) = targets(binding)
        await ready_in(place, home, name)
        async with counting(place.place, name, NAMES) as census:
            await until(lambda: census.count == 2, "it is not ready")
            await lose_one(place, home, name)
            census.begin()
            found = await binding_that(place, name, lambda one: len(targets(one)) == 2)
            assert {each["replicas"] for each in found["spec"]["clusters"]} == {1}
            assert home in targets(found)
            assert not tasks(found)
            await until(lambda: census.count == 2, "the other replica is not ready")
            assert census.lowest == 1
        (work,) = (await place.hub.get(works(home)))["items"]
        await eventually(
            place.hub,
            f"{works(home)}/{work['metadata']['name']}",
            lambda one: condition(one, "Unschedulable").get("reason") == "Scheduled",
        )
        await told(place, "PendingReplicasGiven", f"1 of {home}", "node(s) were unschedulable")
        await clean_up(place, name)


async def test_killed_again_and_again_it_moves_once_and_keeps_its_clock(place: Partitioned) -> None:
    await survive_kills(place, "killed")


@pytest.mark.soak
async def test_killed_again_and_again_it_leaves_when_it_is_due_and_somebody_leads(place: Partitioned) -> None:
    late = [await survive_kills(place, f"killed-{number}") for number in range(20)]
    print(f"\nlate, in whole seconds: {sorted(late)}")
    assert max(late) <= 2


async def survive_kills(place: Partitioned, name: str) -> float:
    """Kill three leaders while it fails; return how long after it was due, and somebody led, it leaves."""
    seconds = 12
    await apply(place, name, failing_over(*NAMES, seconds=seconds))
    await ready_in(place, "member1", name)
    await break_down(place, "member1")
    await binding_that(place, name, held("Tolerating"))
    since = parse_time(unhealthy_since(await binding_that(place, name, unhealthy_since)))
    for _ in range(3):
        await asyncio.sleep(1)
        await place.crash()
    found = await binding_that(place, name, lambda one: targets(one) == ["member2"], within=60)
    (task,) = tasks(found)
    begun = parse_time(task["creationTimestamp"])
    assert begun - since >= seconds
    counted = parse_time(task["message"].rpartition(" since ")[2].rstrip("."))
    assert counted - since == 1  # by so much the clocks of two processes may differ
    leads = parse_time((await place.hub.get(LEASE))["spec"]["acquireTime"])
    await ready_in(place, "member2", name)
    await binding_that(place, name, lambda one: not tasks(one))
    assert (await place.hub.get(works("member2")))["items"]
    await clean_up(place, name)
    return begun - max(counted + seconds, leads)


async def test_the_documented_policy_runs_as_it_is_written(place: Partitioned) -> None:
    """Two members have both workloads whole, so that one that fails has to stay; but only after its delay."""
    (written,) = (each for each in EXAMPLES if each["metadata"]["name"] == "nginx-propagation")
    await place.hub.create(DEPLOYMENTS, deployment("nginx", 1, grace=1))
    await place.hub.create(STATEFUL_SETS, stateful_set("mysql"))
    await place.hub.create(POLICIES, written)
    for name in ("nginx-deployment", "mysql-statefulset"):
        await eventually(
            place.hub, f"{BINDINGS}/{name}", lambda one: sorted(targets(one)) == ["member1", "member2"]
        )
    for member in ("member1", "member2"):
        await ready_in(place, member, "nginx", 1)
        await eventually(place.members[member], f"{STATEFUL_SETS}/mysql", bool)
    await break_down(place, "member1")
    # Why it does not move, and what the copies tell, are written by controllers of their own.
    found = await binding_that(
        place, "nginx", lambda one: held("Delayed")(one) and find_creation(one, "member1")
    )
    first = find_creation(found, "member1")
    assert first is not None
    until = condition(found, "Failover")["message"].rpartition(" ")[2].removesuffix(".")
    # A copy of the second in which the process began may be from before it, by another clock.
    skew = FederationSettings().application_failover.clock_skew
    assert 5000 <= parse_time(until) - parse_time(first) <= 5000 + skew
    soon = {"preConditions": {"delaySeconds": 1}, "decisionConditions": {"tolerationSeconds": 1}}
    await place.hub.patch(f"{POLICIES}/nginx-propagation", {"spec": {"failover": {"application": soon}}})
    found = await binding_that(place, "nginx", held("NoSubstitute"))
    assert sorted(targets(found)) == ["member1", "member2"]
    for path in (f"{POLICIES}/nginx-propagation", f"{STATEFUL_SETS}/mysql", f"{DEPLOYMENTS}/nginx"):
        await place.hub.delete(path)
    await eventually(place.hub, f"{BINDINGS}/nginx-deployment", is_gone)
    await clean_up(place)


def find_creation(binding: Any, cluster: str) -> str | None:
    """Since when a cluster has a copy, as the binding tells."""
    told = binding["status"].get("aggregatedStatus", ())
    return next((each.get("creationTimestamp") for each in told if each["clusterName"] == cluster), None)


def stateful_set(name: str) -> Object:
    made = deployment(name, 1)
    return made | {"kind": "StatefulSet", "spec": made["spec"] | {"serviceName": name}}


async def break_down(place: Partitioned, member: str) -> None:
    """Take the nodes of a member away from the pods there, and from all that replace them."""
    await cordon(place.place, member, unschedulable=True)
    for pod in (await place.members[member].get(PODS))["items"]:
        await place.members[member].delete(f"{PODS}/{pod['metadata']['name']}")


async def lose_one(place: Partitioned, member: str, name: str) -> None:
    """Have one pod there for which no node is left; the other one keeps its node."""
    await cordon(place.place, member, unschedulable=True)
    pods = (await place.members[member].get(f"{PODS}?labelSelector=app%3D{name}"))["items"]
    await place.members[member].delete(f"{PODS}/{pods[0]['metadata']['name']}")


async def clean_up(place: Partitioned, *names: str) -> None:
    """Have the next workload find nodes again, and nothing of these."""
    await remove(place, *names)
    for member in LIVING:
        await cordon(place.place, member, unschedulable=None)
        await eventually(place.hub, f"{CLUSTERS}/{member}", is_empty)


def is_empty(cluster: Any) -> bool:
    """Tell whether all of its room is free, and there is some: nodes that take no pods count as none."""
    room = cluster["status"].get("resourceSummary", {}).get("allocatable", {}).get("cpu", "0")
    return room != "0" and bool(has_allocated(most=0)(cluster))
