"""The leader is killed, frozen or cut off: somebody else leads soon, and nothing is done twice."""

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from localcluster import manifests
from localcluster.cluster import Cluster
from localcluster.folders import running
from tests.live.contending import KINDS, contest, untaint
from tests.live.daemons import imbalance, install
from tests.live.extending import MANIFESTS
from tests.proving import Proof

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

WORKLOADS, REPLICAS, NODES = 8, 2, 8
STRIKES, KILLS = 100, 200
SAMPLE = random.Random(8).sample(range(0, STRIKES, len(KINDS)), 1)
ROUNDS_AT_ONCE = 10


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster() -> AsyncIterator[Cluster]:
    async with running(nodes=NODES) as cluster, cluster.client() as client:
        for folder in ("crds", "extender"):
            await manifests.apply(client, MANIFESTS / folder)
        await install(cluster)
        yield cluster


async def test_after_each_of_three_strikes_another_one_leads_and_nothing_is_done_twice(
    cluster: Cluster, tmp_path: Path
) -> None:
    first = SAMPLE[0]
    await strike(cluster, tmp_path, {number: KINDS[number % 3] for number in range(first, first + 3)})


@pytest.mark.soak
async def test_a_hundred_strikes(cluster: Cluster, tmp_path: Path) -> None:
    await prove(cluster, tmp_path, "leader-struck", {n: KINDS[n % 3] for n in range(STRIKES)})


@pytest.mark.soak
async def test_two_hundred_kills_at_random_instants(cluster: Cluster, tmp_path: Path) -> None:
    await prove(cluster, tmp_path, "leader-killed", dict.fromkeys(range(KILLS), "kill"))


async def prove(cluster: Cluster, folder: Path, name: str, rounds: dict[int, str]) -> None:
    """So many rounds at once, and each lot counts once all of it has settled."""
    proof = Proof(name)
    left = list(proof.remaining(rounds))
    for at in range(0, len(left), ROUNDS_AT_ONCE):
        lot = left[at : at + ROUNDS_AT_ONCE]
        longest = await strike(cluster, folder, {number: rounds[number] for number in lot})
        proof.note(lot)
        print(
            f"{name}: {len(proof.passed())} rounds, another one led after {longest:.1f} s at most", flush=True
        )


async def strike(cluster: Cluster, folder: Path, rounds: dict[int, str]) -> float:
    """Gives the longest time until another one led."""
    async with (
        imbalance(cluster, workloads=WORKLOADS, replicas=REPLICAS, nodes=NODES, cpu="100m") as crowd,
        contest(cluster, crowd, folder, replicas=REPLICAS) as contenders,
    ):
        try:
            for number, kind in rounds.items():
                await contenders.round(number, kind)
            await contenders.settle()
        finally:
            await untaint(crowd.client)
        assert len(contenders.witness.evicted) > len(rounds)
        return contenders.longest
