"""After any fault of the leader another daemon leads soon, and no move is made twice.

It is killed, frozen or cut off, or leaves, and the API server is killed and started again. The audit log is
the proof: who led when, who evicted which pod, and what was written by one that did not lead any more.
"""

import random
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from localcluster import audit_log, manifests
from localcluster.state_dir import running
from localproduct.rescheduler_process import RESCHEDULER_ACCOUNT
from tests.live.support.audited import AuditedCluster
from tests.live.support.contending_daemons import (
    EVICTION,
    KINDS,
    LEASE_SECONDS,
    LEAVE,
    PERIOD,
    RESTART,
    Contest,
    contest,
    untaint,
)
from tests.live.support.daemon_process import imbalance, install
from tests.live.support.extender_process import MANIFESTS
from tests.live.support.leader_audit import Fence
from tests.support.resumable_rounds import Proof

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

WORKLOADS, REPLICAS, NODES = 8, 2, 8
STRIKES, KILLS = 100, 200
SAMPLE = random.Random(8).sample(range(0, STRIKES, len(KINDS)), 1)
ROUNDS_AT_ONCE = 10


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ground(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[AuditedCluster]:
    audit = tmp_path_factory.mktemp("audit")
    flags = audit_log.write_audit_flags(audit, [RESCHEDULER_ACCOUNT], memory=True)
    async with running(nodes=NODES, flags=flags) as cluster, cluster.client() as client:
        for folder in ("crds", "extender"):
            await manifests.apply(client, MANIFESTS / folder)
        await install(cluster)
        yield AuditedCluster(cluster, audit)


async def test_another_daemon_leads_after_any_fault_and_no_move_is_made_twice(
    ground: AuditedCluster, tmp_path: Path
) -> None:
    """Killed, frozen, cut off, leaving by itself; and the API server killed in the middle of moves."""
    first = SAMPLE[0]
    strikes = {number: KINDS[number % 3] for number in range(first, first + 3)}
    print(await strike(ground, tmp_path, {**strikes, STRIKES: LEAVE, STRIKES + 1: RESTART}))


@pytest.mark.soak
async def test_a_hundred_strikes(ground: AuditedCluster, tmp_path: Path) -> None:
    await prove(ground, tmp_path, "leader-struck", {n: KINDS[n % 3] for n in range(STRIKES)})


@pytest.mark.soak
async def test_two_hundred_kills_at_random_instants(ground: AuditedCluster, tmp_path: Path) -> None:
    """And the API server's own, every tenth time."""
    await prove(ground, tmp_path, "leader-killed", {n: KINDS[0] if n % 10 else RESTART for n in range(KILLS)})


async def prove(ground: AuditedCluster, folder: Path, name: str, rounds: dict[int, str]) -> None:
    """So many rounds at once, and each lot counts once all of it has settled."""
    proof = Proof(name)
    left = list(proof.remaining(rounds))
    for at in range(0, len(left), ROUNDS_AT_ONCE):
        lot = left[at : at + ROUNDS_AT_ONCE]
        said = await strike(ground, folder, {number: rounds[number] for number in lot})
        proof.note(lot)
        print(f"{name}: {len(proof.passed())} rounds; {said}", flush=True)


async def strike(ground: AuditedCluster, folder: Path, rounds: dict[int, str]) -> str:
    """Gives figures of what was seen."""
    cluster = ground.cluster
    async with (
        imbalance(cluster, workloads=WORKLOADS, replicas=REPLICAS, nodes=NODES, cpu="100m") as crowd,
        contest(cluster, crowd, folder, replicas=REPLICAS, audit=ground.audit) as contenders,
    ):
        restarts: list[tuple[float, float]] = []
        try:
            for number, kind in rounds.items():
                began = time.time()
                await contenders.round(number, kind)
                if kind == RESTART:
                    restarts.append((began, time.time()))
            await contenders.settle()
            return await judge(contenders, restarts)
        except (AssertionError, TimeoutError) as error:
            error.add_note(await contenders.describe())
            raise
        finally:
            await untaint(crowd.client)


async def judge(contenders: Contest, restarts: list[tuple[float, float]]) -> str:
    await contenders.see_the_holder()
    fence = contenders.read_fence()
    assert len(fence.evicted) >= max(1, contenders.struck[EVICTION])
    moments = ", ".join(f"{count} after {moment}" for moment, count in sorted(contenders.struck.items()))
    load = f"load {min(contenders.loads):.1f} to {max(contenders.loads):.1f}"
    return f"struck {moments}; {see_the_fence(fence, restarts)}; {load}"


def see_the_fence(fence: Fence, restarts: list[tuple[float, float]]) -> str:
    """The lease was handed over in time and not too early, and a replaced leader wrote once more at most."""
    usual = [each for each in fence.list_handovers() if not is_within(restarts, each.at)]
    left = [each.seconds for each in usual if each.is_released]
    taken = [each.seconds for each in usual if not each.is_released]
    late = [len(calls) for calls in fence.list_late()]
    assert [at for at in fence.list_forbidden() if not is_within(restarts, at)] == []
    assert min(taken, default=LEASE_SECONDS) >= LEASE_SECONDS, "the leader before might still have written"
    assert max(taken, default=0.0) <= LEASE_SECONDS + 2
    assert max(left, default=0.0) <= 1
    assert max(late, default=0) <= 1
    return (
        f"{len(fence.evicted)} pods evicted, at most {fence.count_fullest(PERIOD)} in {PERIOD:g} s; "
        f"the lease taken {len(taken)} times, after {max(taken, default=0):.1f} s at most; "
        f"{len(left)} times given back, and taken after {max(left, default=0):.2f} s at most; "
        f"{sum(late)} writes came late"
    )


def is_within(times: list[tuple[float, float]], at: float) -> bool:
    return any(began <= at <= ended for began, ended in times)
