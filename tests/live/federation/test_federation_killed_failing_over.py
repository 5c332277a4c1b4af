"""Application failover while the federation is killed at any of its writes.

A workload fails at home and leaves for the other member. Whoever dies meanwhile: it leaves when it is due and
not before, once, with one entry of its history; the old copy goes only when the new one is ready.
"""

from typing import Any

import pytest

from localcluster.client import Object
from reberth.values.timestamp import parse_time
from tests.live.support.evictions import targets, unhealthy_since
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
from tests.live.support.hub_paths import BINDINGS, DEPLOYMENTS, POLICIES, WORKS

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

HOME, BACKUP = MEMBERS
REPLICAS, SECONDS = 2, 3

# Of the binding: it leaves, and its eviction ends. The Work at home tells the failure; there are the Work
# of the new copy, which is the second one, and the end of the old one.
WRITES = [
    *(Write("hub", "patch", "resourcebindings", number, "-deployment") for number in (1, 2)),
    *(Write("hub", "patch", "resourcebindings/status", number, "-deployment/status") for number in (3, 4)),
    *(Write("hub", "patch", "works/status", number) for number in (2, 3)),
    Write("hub", "create", "works", 2),
    Write("hub", "delete", "works", 1),
    Write("member", "delete", "deployments", 1),
]
POINTS = list_points(WRITES)
SAMPLE = [POINTS[1]]


stage = staging("federation-failing")


@pytest.mark.parametrize(("write", "when"), SAMPLE)
async def test_a_federation_killed_at_a_write_fails_over_once(stage: Stage, write: Write, when: str) -> None:
    await kill_and_go_on(stage, write, when, make_life())


@pytest.mark.soak
@pytest.mark.parametrize(("write", "when"), POINTS)
async def test_a_federation_killed_at_every_write_twenty_times(stage: Stage, write: Write, when: str) -> None:
    await prove("federation-failing", stage, write, when, make_life)


async def live(stage: Stage, name: str) -> None:
    """Be well at home, fail there, and be well in the other member."""
    hub = stage.place.hub
    home, backup = (stage.place.members[each] for each in MEMBERS)
    await hub.create(DEPLOYMENTS, deployment(name, REPLICAS))
    await hub.create(POLICIES, failing_over(name))
    await be_well(stage, name, HOME)
    await play(home, name, ready=0)
    began = await wait_for(stage, name, unhealthy_since)
    left = await wait_for(stage, name, lambda one: targets(one) == [BACKUP])
    (entry,) = left["spec"]["activeEvictionHistory"]
    assert parse_time(entry["creationTimestamp"]) - parse_time(unhealthy_since(began)) >= SECONDS
    await eventually(backup, f"{DEPLOYMENTS}/{name}", bool, within=WITHIN)
    assert await home.get(f"{DEPLOYMENTS}/{name}"), "the old copy stays until the new one is ready"
    await be_well(stage, name, BACKUP)
    await eventually(home, f"{DEPLOYMENTS}/{name}", is_gone, within=WITHIN)
    last = await hub.get(f"{BINDINGS}/{name}-deployment")
    (kept,) = last["spec"]["activeEvictionHistory"]
    assert kept == entry | {"clusterName": HOME}, "it has moved once"
    for path in (DEPLOYMENTS, POLICIES):
        await hub.delete(f"{path}/{name}")
    await eventually(hub, f"{BINDINGS}/{name}-deployment", is_gone, within=WITHIN)
    await eventually(hub, WORKS, lambda found: not found["items"], within=WITHIN)
    await eventually(backup, f"{DEPLOYMENTS}/{name}", is_gone, within=WITHIN)


make_life = lives("ailing", live)


def failing_over(name: str) -> Object:
    groups = [{"affinityName": each, "clusterNames": [each]} for each in MEMBERS]
    made = policy(name, clusterAffinities=groups)
    application = {"decisionConditions": {"tolerationSeconds": SECONDS}}
    made["spec"] |= {"failover": {"application": application}}
    return made


async def wait_for(stage: Stage, name: str, holds: Any) -> Any:
    return await eventually(stage.place.hub, f"{BINDINGS}/{name}-deployment", holds, within=WITHIN)


async def be_well(stage: Stage, name: str, member: str) -> None:
    client = stage.place.members[member]
    await eventually(client, f"{DEPLOYMENTS}/{name}", bool, within=WITHIN)
    await play(client, name)
    await wait_for(stage, name, lambda one: is_at_rest(one, member))


def is_at_rest(binding: Any, member: str) -> bool:
    spec, status = (binding or {}).get("spec", {}), (binding or {}).get("status", {})
    health = {each["clusterName"]: each.get("health") for each in status.get("aggregatedStatus", ())}
    return (
        targets(binding) == [member]
        and not spec.get("gracefulEvictionTasks")
        and health == {member: "Healthy"}
        and status.get("schedulerObservedGeneration") == binding["metadata"]["generation"]
    )
