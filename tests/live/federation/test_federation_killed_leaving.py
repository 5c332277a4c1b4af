"""Failover and failback while the federation is killed at any of its writes.

It is evicted with what its pods need, replaced, and brought back when it may return. Whoever dies meanwhile:
the old copy goes only when the new one is ready, and nothing is left behind.
"""

import random
from typing import Any

import pytest

from localcluster.client import Client, Object
from tests.live.support.federation_kill_loop import (
    WITHIN,
    Stage,
    Write,
    is_gone,
    kill_and_go_on,
    list_points,
    lives,
    play,
    prove,
    staging,
)
from tests.live.support.hub_and_members import MEMBERS, deployment, eventually, policy
from tests.live.support.hub_paths import BINDINGS, CLUSTERS, DEPLOYMENTS, POLICIES, WORKS

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

MAPS = "/api/v1/namespaces/default/configmaps"
HOME, BACKUP = MEMBERS
REPLICAS = 2
QUICK = {"failback": {"gatherFor": "200ms", "lookAgain": "1s"}}

# Of the workload's binding: its eviction is begun, it is placed anew, its task gets a time and ends; it is
# asked home, and its old copy is let go. Of the other one: its need is told, changed and changed again.
WRITES = [
    *(Write("hub", "patch", "resourcebindings", number, "-deployment") for number in range(1, 8)),
    *(Write("hub", "patch", "resourcebindings/status", number, "-deployment/status") for number in (2, 5)),
    Write("hub", "create", "resourcebindings", 2),
    *(Write("hub", "patch", "resourcebindings", number, "-configmap") for number in range(1, 4)),
    Write("hub", "create", "works", 3),
    Write("hub", "delete", "works", 1),
    Write("member", "delete", "deployments", 1),
    Write("member", "delete", "configmaps", 1),
]
POINTS = list_points(WRITES)
SAMPLE = random.Random(10).sample(POINTS, 2)


stage = staging("federation-leaving", **QUICK)


@pytest.mark.parametrize(("write", "when"), SAMPLE)
async def test_a_federation_killed_at_a_write_fails_over_and_back(
    stage: Stage, write: Write, when: str
) -> None:
    await kill_and_go_on(stage, write, when, make_life())


@pytest.mark.soak
@pytest.mark.parametrize(("write", "when"), POINTS)
async def test_a_federation_killed_at_every_write_twenty_times(stage: Stage, write: Write, when: str) -> None:
    await prove("federation-leaving", stage, write, when, make_life)


async def live(stage: Stage, name: str) -> None:
    """Begin at home, leave it when it is tainted, and return when it is not any more."""
    hub = stage.place.hub
    home, backup = (stage.place.members[each] for each in MEMBERS)
    await hub.create(MAPS, {"metadata": {"name": name}, "data": {"tide": "low"}})
    await hub.create(DEPLOYMENTS, needy(name))
    await hub.create(POLICIES, returning(name))
    await be_well(stage, name, HOME)
    await taint(stage, {"key": "maintenance", "effect": "NoExecute"})
    await hand_over(home, backup, name)
    await be_well(stage, name, BACKUP)
    await taint(stage)
    await hand_over(backup, home, name)
    await be_well(stage, name, HOME)
    for path in (DEPLOYMENTS, POLICIES, MAPS):
        await hub.delete(f"{path}/{name}")
    await eventually(hub, BINDINGS, lambda found: not found["items"], within=WITHIN)
    await eventually(hub, WORKS, lambda found: not found["items"], within=WITHIN)
    for client in (home, backup):
        await be_gone(client, name)


make_life = lives("mobile", live)


def needy(name: str) -> Object:
    made = deployment(name, REPLICAS)
    (container,) = made["spec"]["template"]["spec"]["containers"]
    container["envFrom"] = [{"configMapRef": {"name": name}}]
    return made


def returning(name: str) -> Object:
    groups = [{"affinityName": each, "clusterNames": [each]} for each in MEMBERS]
    made = policy(name, clusterAffinities=groups)
    made["spec"] |= {"propagateDeps": True, "failover": {"failback": {"stabilizationSeconds": 1}}}
    return made


async def taint(stage: Stage, *taints: Object) -> None:
    await stage.place.hub.patch(f"{CLUSTERS}/{HOME}", {"spec": {"taints": list(taints)}})


async def hand_over(old: Client, new: Client, name: str) -> None:
    """Have the new copy ready; until then the old one must stay."""
    path = f"{DEPLOYMENTS}/{name}"
    before = await old.get(path)
    await eventually(new, path, lambda found: found is not None, within=WITHIN)
    await eventually(new, f"{MAPS}/{name}", lambda found: found is not None, within=WITHIN)
    kept = await old.get(path)
    assert kept["metadata"]["uid"] == before["metadata"]["uid"]
    assert kept["spec"]["replicas"] == REPLICAS
    await play(new, name)
    await be_gone(old, name)


async def be_gone(client: Client, name: str) -> None:
    for path in (DEPLOYMENTS, MAPS):
        await eventually(client, f"{path}/{name}", is_gone, within=WITHIN)


async def be_well(stage: Stage, name: str, member: str) -> None:
    """Wait until it stands there and nowhere else, with what it needs, and nothing is under way."""
    client = stage.place.members[member]
    await eventually(client, f"{DEPLOYMENTS}/{name}", lambda found: found is not None, within=WITHIN)
    await play(client, name)
    hub, path = stage.place.hub, f"{BINDINGS}/{name}-deployment"
    await eventually(hub, path, lambda found: is_at_rest(found, member), within=WITHIN)
    await eventually(
        hub, f"{BINDINGS}/{name}-configmap", lambda found: is_needed_in(found, member), within=WITHIN
    )
    await eventually(hub, WORKS, lambda found: namespaces_of(found) == [f"karmada-es-{member}"] * 2)


def is_at_rest(binding: Any, member: str) -> bool:
    spec, status = (binding or {}).get("spec", {}), (binding or {}).get("status", {})
    conditions = {each["type"]: each["status"] for each in status.get("conditions", ())}
    return (
        spec.get("clusters") == [{"name": member, "replicas": REPLICAS}]
        and not spec.get("gracefulEvictionTasks")
        and not spec.get("handover", {}).get("clusters")
        and conditions.get("Scheduled") == conditions.get("FullyApplied") == "True"
        and status.get("schedulerObservedGeneration") == binding["metadata"]["generation"]
        and status.get("schedulerObservingAffinityName") == member
        and [each.get("health") for each in status["aggregatedStatus"]] == ["Healthy"]
    )


def is_needed_in(binding: Any, member: str) -> bool:
    needs = (binding or {}).get("spec", {}).get("requiredBy", ())
    return [[one["name"] for one in each["clusters"]] for each in needs] == [[member]]


def namespaces_of(works: Any) -> list[str]:
    return [each["metadata"]["namespace"] for each in works["items"]]
