"""A move is killed at any of its writes, and the next process finishes it.

The fault proxy holds the nth write, either before it reaches the API server or after it took effect, and the
process is killed while it waits. Then somebody asks for the same move again. Whatever stands then must be
as if nobody had died: each decision evicts at most one pod, once, and history, ledger and notes agree.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path

import pytest
import pytest_asyncio

from localcluster.cluster import Cluster
from localcluster.faults import Delay, Stall, nth
from tests.live.support.memory_objects import definitions
from tests.live.support.moves import MOVES_WRITES, NODES, consistent, move, proxied, start_command, workload
from tests.support.resumable_rounds import Proof

pytestmark = pytest.mark.live

# History made, Noted; side by side the note, and the ledger made and the debit; eviction; outcome; Spent.
WRITES_OF_A_MOVE = 8
POINTS = list(product(range(1, WRITES_OF_A_MOVE + 1), ("before", "after")))
ROUNDS = 20
SAMPLE = [(6, "before"), (6, "after"), *random.Random(6).sample(POINTS[:10] + POINTS[12:], 2)]


@pytest_asyncio.fixture(autouse=True, scope="module", loop_scope="session")
async def defined(shared: Cluster) -> AsyncIterator[None]:
    async with definitions(shared):
        yield


@pytest.mark.parametrize(("write", "when"), SAMPLE)
async def test_a_mover_killed_at_a_write_leaves_nothing_double(
    shared: Cluster, tmp_path: Path, write: int, when: str
) -> None:
    await kill_and_resume(shared, tmp_path, write, when)


@pytest.mark.soak
@pytest.mark.parametrize(("write", "when"), POINTS)
async def test_a_mover_killed_at_every_write_twenty_times(
    shared: Cluster, tmp_path: Path, write: int, when: str
) -> None:
    proof = Proof(f"mover-killed-{write}-{when}")
    for number in proof.remaining(range(ROUNDS)):
        await kill_and_resume(shared, tmp_path, write, when)
        proof.note([number])


async def kill_and_resume(cluster: Cluster, folder: Path, write: int, when: str) -> None:
    async with workload(cluster, f"mortal-{write}-{when}", budget=1) as mortal, proxied(cluster) as proxy:
        victim = await mortal.pick()
        to = [node for node in NODES if node != victim["spec"]["nodeName"]][:3]
        hold = Delay(60) if when == "before" else Stall()
        async with proxy.fault(MOVES_WRITES, hold, nth(write)) as rule:
            name = f"default/{victim['metadata']['name']}"
            process = await start_command(cluster, folder, "move", name, "--to", *to, user="mover")
            async with asyncio.timeout(30):
                await proxy.until(lambda: rule.acted == 1)
            process.kill()
            await process.communicate()
        came, said = await move(cluster, victim, to)
        assert await consistent(mortal) == 1, (came, said)
