"""What `federation plan` foretells is what happens, where the members run pods.

The federation stands still while the hub changes: a policy, a size, a taint, new workloads and requests. Then
it is planned and carried out, until pods are where they are to be and nothing is held or evicted any more.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from federation.api import ResourceBinding
from federation.objects.resources import BINDINGS as BINDING
from localcluster.client import Refused
from tests.live.support.hub_and_members import Place, deployment, eventually, policy
from tests.live.support.hub_paths import CLUSTERS, DEPLOYMENTS, POLICIES, REBALANCERS
from tests.live.support.plan_outcomes import Outcome, list_differences
from tests.live.support.planned_hubs import foretell_with
from tests.live.support.rebalancing_members import (
    AGGREGATED,
    DYNAMIC,
    MEMBERS,
    PAIR,
    QUICK,
    binding_of,
    following,
    has_allocated,
    let_a_second_pass,
    propagate,
    rebalancer,
    rebalancing,
    settled,
    stand,
    taint,
)
from tests.support.builders import Object

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

WITHIN = 120.0
# `quiet` is large: which of two members has more room must not depend on who is decided about first.
STANDING = {
    "edited": {"member1": 2},
    "evicted": {"member3": 2},
    "lopsided": {"member1": 4},
    "grown": {"member2": 1},
    "quiet": {"member2": 40},
}
NEW, HUGE = "new", "huge"
ACTIONS = {"Bind", "Update", "Grow", "Move", "Evict", "Rebalance"}
NAMES = (*STANDING, NEW, HUGE)


class Stage(NamedTuple):
    place: Place
    folder: Path


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    folder = tmp_path_factory.mktemp("federation")
    async with rebalancing("planned-pods", folder) as place:
        yield Stage(place, folder)


async def test_what_is_foretold_happens_to_pods(stage: Stage) -> None:
    place, folder = stage
    await lay_out(place)
    assert await place.stop() == 0
    await change(place)
    answer = await foretell_with(folder / "federation.yaml", place.account)
    foretold = {name.removesuffix("-deployment"): where for name, where in list_targets(answer).items()}
    assert {each["action"] for each in answer["steps"]} >= ACTIONS
    async with following(place, BINDING, *(f"{name}-deployment" for name in NAMES)) as seen:
        await place.start(folder, **QUICK)  # the settings that it had, which are those of the plan
        for name in NAMES:
            await settled(place, name, foretold[name])
            await have_pods(place, name, foretold[name])
        await agree(place, seen, answer)
    assert foretold[HUGE] == {}
    assert foretold["quiet"] == STANDING["quiet"]
    assert foretold["evicted"] == foretold[NEW] == {"member1": 2}


async def lay_out(place: Place) -> None:
    """Workloads with ready pods; one of them stands where it would not go by itself."""
    await propagate(place, "edited", 2, clusterAffinity={"clusterNames": ["member1"]})
    await propagate(place, "grown", 1, clusterAffinity={"clusterNames": ["member2"]})
    await propagate(place, "quiet", 40, clusterAffinity={"clusterNames": ["member2"]})
    await propagate(place, "evicted", 2, replicaScheduling=AGGREGATED)
    await propagate(place, "lopsided", 4, clusterAffinity=PAIR, replicaScheduling=DYNAMIC)
    for name, where in STANDING.items():
        await eventually(place.hub, binding_of(name), lambda one: one and one["spec"].get("clusters"))
        await stand(place, name, where)
        await have_pods(place, name, where)
    await eventually(place.hub, f"{CLUSTERS}/member2", has_allocated(least=4))
    await let_a_second_pass(place, binding_of("lopsided"))


async def change(place: Place) -> None:
    """Give the federation something to do of each kind, while it stands still."""
    hub = place.hub
    await hub.patch(
        f"{POLICIES}/edited", {"spec": {"placement": {"clusterAffinity": {"clusterNames": ["member2"]}}}}
    )
    await hub.patch(f"{DEPLOYMENTS}/grown", {"spec": {"replicas": 3}})
    await taint(place, "member3")
    await hub.create(REBALANCERS, rebalancer("really", "lopsided"))
    await hub.create(REBALANCERS, rebalancer("asking", "quiet", dryRun=True))
    for name, replicas in ((NEW, 2), (HUGE, 2000)):
        await hub.create(DEPLOYMENTS, deployment(name, replicas))
        await hub.create(POLICIES, policy(name, replicaScheduling=AGGREGATED))


async def have_pods(place: Place, name: str, where: dict[str, int]) -> None:
    """Wait until the members have so many ready replicas, and the others have none at all."""
    async with asyncio.timeout(WITHIN):
        while await count_ready(place, name) != where:
            await asyncio.sleep(0.2)


async def count_ready(place: Place, name: str) -> dict[str, int]:
    found = {}
    for member in MEMBERS:
        try:
            copy = await place.members[member].get(f"{DEPLOYMENTS}/{name}")
        except Refused:
            continue
        found[member] = copy.get("status", {}).get("readyReplicas", 0)
    return found


def list_targets(answer: Object) -> dict[str, dict[str, int]]:
    return {
        name.partition("/")[2]: {each["name"]: each.get("replicas", 0) for each in one["to"]}
        for name, one in answer["bindings"].items()
    }


async def agree(place: Place, seen: list[ResourceBinding], answer: Object) -> None:
    """Wait until everything has become as it was foretold; nothing may have gone through anything else."""
    end = time.monotonic() + WITHIN
    while found := list(list_differences(await read_outcome(place, seen), answer, waits_end=True)):
        assert time.monotonic() < end, "\n".join(found)
        await asyncio.sleep(0.5)


async def read_outcome(place: Place, seen: list[ResourceBinding]) -> Outcome:
    states: dict[str, list[Any]] = defaultdict(list)
    for each in seen:
        states[each.metadata.name].append(each)
    rebalancers = (await place.hub.get(REBALANCERS))["items"]
    return Outcome(dict(states), {each["metadata"]["name"]: each for each in rebalancers})
