"""What `federation plan` foretells of a drawn hub is what the federation then does with it.

Each binding goes through the clusters that the plan names, in that order, and ends where it says; the same
evictions begin, the same handovers and evictions last, rebalancers and dry runs give the same answers.
"""

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from localcluster import manifests
from localcluster.client import Client
from localcluster.cluster import Cluster
from localcluster.components import CONTROLLERS, KWOK, SCHEDULER
from localcluster.state_dir import running
from tests.live.support import planned_hubs
from tests.support.federation.crds import FOLDER
from tests.support.federation.drawn_hubs import describe, draw_hub
from tests.support.resumable_rounds import Proof

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]
SAMPLE, ROUNDS = 20, 200


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hub() -> AsyncIterator[tuple[Cluster, Client]]:
    async with (
        running("planned-hub", without=[CONTROLLERS, SCHEDULER, KWOK]) as cluster,
        cluster.client() as client,
    ):
        await manifests.apply(client, FOLDER)
        for path in planned_hubs.KINDS:
            await client.wait(path, lambda found: "items" in found)
        yield cluster, client


@pytest.mark.parametrize("seed", range(SAMPLE))
async def test_what_is_foretold_happens(hub: tuple[Cluster, Client], tmp_path: Path, seed: int) -> None:
    await plan_and_compare(*hub, tmp_path, seed)


@pytest.mark.soak
async def test_what_is_foretold_happens_in_two_hundred_hubs(
    hub: tuple[Cluster, Client], tmp_path: Path
) -> None:
    proof = Proof("federation-plan")
    for seed in proof.remaining(range(ROUNDS)):
        steps = await plan_and_compare(*hub, tmp_path, seed)
        print(f"hub {seed:3}: {steps} steps foretold, all of them happened")
        proof.note([seed])


async def plan_and_compare(cluster: Cluster, client: Client, folder: Path, seed: int) -> int:
    drawn = draw_hub(seed, now=time.time())
    await planned_hubs.clear(client)
    await planned_hubs.lay_out(client, drawn)
    answer, _ = await planned_hubs.foretell(cluster, folder)
    outcome = await planned_hubs.carry_out(cluster, client)
    context = f"{describe(drawn)}\n{json.dumps(answer['steps'])}\n{answer['warnings']}"
    assert planned_hubs.last_states(outcome) == planned_hubs.foretold_states(answer), context
    assert planned_hubs.paths_of(outcome) == planned_hubs.foretold_paths(answer), context
    assert planned_hubs.begun_evictions(outcome) == planned_hubs.foretold_evictions(answer), context
    assert planned_hubs.results_of(outcome) == planned_hubs.foretold_results(answer), context
    return len(answer["steps"])
