"""The life of a workload while the federation is killed at any of its writes.

The result must be the same as without a kill: what was decided stays decided, though the clusters have
other room by then, and each copy is there once.
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
    prove,
    staging,
)
from tests.live.support.hub_and_members import deployment, eventually, policy
from tests.live.support.hub_paths import BINDINGS, DEPLOYMENTS, POLICIES, WORKS

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

BY_ROOM = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {"dynamicWeight": "AvailableReplicas"},
}
WRITES = [
    Write("hub", "create", "resourcebindings"),
    Write("hub", "patch", "resourcebindings/status", 1),
    Write("hub", "patch", "deployments"),
    Write("hub", "create", "works", 1),
    Write("hub", "create", "works", 2),
    Write("member", "patch", "deployments", 1),
    Write("hub", "patch", "works/status", 1),
    Write("hub", "patch", "works/status", 2),
    Write("hub", "patch", "resourcebindings/status", 2),
    Write("hub", "patch", "resourcebindings", 1),
    Write("hub", "patch", "resourcebindings", 2),
    Write("hub", "patch", "resourcebindings/status", 3),
    Write("hub", "patch", "works", 1),
    Write("member", "patch", "deployments", 2),
    Write("hub", "delete", "resourcebindings"),
    Write("hub", "delete", "works"),
    Write("member", "delete", "deployments"),
    Write("hub", "patch", "works", 3),
]
POINTS = list_points(WRITES)
SAMPLE = [POINTS[1], POINTS[20], *random.Random(10).sample(POINTS[2:20] + POINTS[21:], 2)]


stage = staging("federation-killed")


@pytest.mark.parametrize(("write", "when"), SAMPLE)
async def test_a_federation_killed_at_a_write_changes_nothing(stage: Stage, write: Write, when: str) -> None:
    await kill_and_go_on(stage, write, when, make_life())


@pytest.mark.soak
@pytest.mark.parametrize(("write", "when"), POINTS)
async def test_a_federation_killed_at_every_write_twenty_times(stage: Stage, write: Write, when: str) -> None:
    await prove("federation-killed", stage, write, when, make_life)


async def live(stage: Stage, name: str) -> None:
    """The life of a workload, in which everything is as it must be after each step."""
    hub = stage.place.hub
    await hub.create(DEPLOYMENTS, deployment(name, 4))
    await hub.create(POLICIES, policy(name, replicaScheduling=BY_ROOM))
    await be_settled(stage, name, 4)
    await hub.patch(f"{DEPLOYMENTS}/{name}", {"spec": {"replicas": 9}})
    await be_settled(stage, name, 9)
    await hub.delete(f"{DEPLOYMENTS}/{name}")
    await hub.delete(f"{POLICIES}/{name}")
    await eventually(hub, f"{BINDINGS}/{name}-deployment", is_gone, within=WITHIN)
    await eventually(hub, WORKS, lambda found: not found["items"], within=WITHIN)
    for client in stage.place.members.values():
        await eventually(client, f"{DEPLOYMENTS}/{name}", is_gone, within=WITHIN)


make_life = lives("mortal", live)


async def be_settled(stage: Stage, name: str, replicas: int) -> None:
    """Wait for the copies, and look whether they are those that were there and were decided on."""
    path = f"{BINDINGS}/{name}-deployment"
    found = await eventually(
        stage.place.hub, path, lambda binding: is_settled(binding, replicas), within=WITHIN
    )
    given = {each["name"]: each["replicas"] for each in found["spec"]["clusters"]}
    before = stage.seen.get(f"{name}-deployment", {}).get("spec", {})
    if before.get("replicas") == replicas == total(before):
        assert {each["name"]: each["replicas"] for each in before["clusters"]} == given
    works = (await stage.place.hub.get(WORKS))["items"]
    assert sorted(each["metadata"]["namespace"] for each in works) == [f"karmada-es-{one}" for one in given]
    for member, share in given.items():
        await be_there(stage, member, name, share)


async def be_there(stage: Stage, member: str, name: str, replicas: int) -> None:
    client: Client = stage.place.members[member]
    copy = await eventually(
        client,
        f"{DEPLOYMENTS}/{name}",
        lambda found: found is not None and found["spec"]["replicas"] == replicas,
        within=WITHIN,
    )
    before = stage.seen.get(f"{member}/{name}")
    assert before is None or before["metadata"]["uid"] == copy["metadata"]["uid"]


def is_settled(binding: Any, replicas: int) -> bool:
    """Everything is scheduled, reported, applied and aggregated, for the newest generation."""
    status = (binding or {}).get("status", {})
    conditions = {each["type"]: each["status"] for each in status.get("conditions", ())}
    clusters = (binding or {}).get("spec", {}).get("clusters", ())
    applied = [each for each in status.get("aggregatedStatus", ()) if each.get("applied")]
    return (
        conditions.get("Scheduled") == conditions.get("FullyApplied") == "True"
        and status.get("schedulerObservedGeneration") == binding["metadata"]["generation"]
        and "lastScheduledTime" in status
        and binding["spec"]["replicas"] == replicas == total(binding["spec"])
        and {each["clusterName"] for each in applied} == {each["name"] for each in clusters}
    )


def total(spec: Object) -> int:
    return sum(each["replicas"] for each in spec.get("clusters") or ())
