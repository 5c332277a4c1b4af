"""A leader is killed at any write of its moves, and the next one finishes them.

The fault proxy holds every move at a write of its own, either before it reaches the API server or after it
took effect; or a write of the ledger, which all moves share. Then the process is killed. Whatever stands in
the end must be as if nobody had died: each move evicts at most one pod, once, and history, ledger, notes and
the API server's audit log agree.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from itertools import product
from pathlib import Path

import pytest
import pytest_asyncio

from localcluster.faults import Delay, Effect, Rule, Stall, nth
from localcluster.host import processes
from tests.live.support.move_stage import MoveStage, populated
from tests.live.support.take_overs import (
    TakeOvers,
    hold_creation,
    hold_eviction,
    hold_history,
    hold_ledger,
    hold_note,
    taking_over,
)
from tests.support.builders import Object
from tests.support.resumable_rounds import Proof

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

WORKLOADS, REPLICAS = 16, 2
ROUNDS = 20
ROUNDS_AT_MOST = 4
"""Of one kill, until all of its writes were held."""
EFFECTS: Mapping[str, Effect] = {"before": Delay(60), "after": Stall()}
OWN: Mapping[str, Callable[..., Rule]] = {
    "Noted": hold_history,
    "note": hold_note,
    "eviction": hold_eviction,
    "outcome": partial(hold_history, turn=2),
}
"""The writes that each move has to itself; those of the first move of a workload begin with its history."""
SHARED = ("ledger", "debit", "Spent")
KILLS = ["own", *(f"{write} {when}" for write, when in product(SHARED, EFFECTS))]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MoveStage]:
    async with populated(tmp_path_factory.mktemp("audit"), WORKLOADS, replicas=REPLICAS) as stage:
        yield stage


async def test_a_leader_killed_at_any_write_leaves_nothing_double(stage: MoveStage, tmp_path: Path) -> None:
    async with taking_over(stage, tmp_path, replicas=REPLICAS, longest_request=1.0) as both:
        for kill in KILLS:
            await kill_at_all(both, kill)


@pytest.mark.soak
async def test_a_leader_killed_at_every_write_twenty_times(stage: MoveStage, tmp_path: Path) -> None:
    async with taking_over(stage, tmp_path, replicas=REPLICAS, longest_request=1.0) as both:
        for kill in KILLS:
            proof = Proof(f"leader-killed-{kill.replace(' ', '-')}")
            for number in proof.remaining(range(ROUNDS)):
                await kill_at_all(both, kill)
                proof.note([number])
            print(f"killed, {kill}: {len(proof.passed())} rounds", flush=True)


async def kill_at_all(both: TakeOvers, kill: str) -> None:
    """Kill until each of the writes was held: a move that shares a node with a held one waits for it."""
    left, rounds = await kill_and_resume(both, kill), 1
    while left:
        assert rounds < ROUNDS_AT_MOST
        left &= await kill_and_resume(both, kill)
        rounds += 1


async def kill_and_resume(both: TakeOvers, kill: str) -> set[str]:
    """Kill a leader once; which writes it did not come to."""
    began, stage = time.time(), both.stage
    victims = await stage.pick()
    names = sorted(victims)
    assert len(names) == WORKLOADS
    if kill == "own":
        await stage.forget_histories(names[-4::2])
    if kill.startswith("ledger"):
        await stage.forget_ledger()
    leader = await both.start_anew()
    rules = hold_own(victims, leader.name) if kill == "own" else {kill: hold_shared(kill, leader.name)}
    if not kill.startswith("Spent"):
        both.add(rules)
    await stage.drive_out(victims.values())
    if kill.startswith("Spent"):
        await wait_until_evicted(stage, victims)
        both.add(rules)
    held = await both.until_held(rules)
    assert held
    await processes.kill(leader.running)
    for one in held.values():
        both.proxy.remove(one.rule)
    await both.find_leader(but=leader)
    await stage.finish()
    assert both.list_violations() == []
    assert await stage.list_disagreements(since=began) == []
    return rules.keys() - held.keys()


def hold_own(victims: Mapping[str, Object], client: str) -> dict[str, Rule]:
    """Each at a write of its own; every second move goes on, and so the leader begins ever more at once."""
    odd = sorted(victims)[1::2]
    points = list(product(OWN, EFFECTS))
    assert len(points) == len(odd)
    found = {
        f"{write} {when}": OWN[write](victims[name], EFFECTS[when], client=client)
        for name, (write, when) in zip(odd, points, strict=True)
    }
    creation = hold_creation("evictionhistories", EFFECTS["before"], client=client)
    second = Rule(creation.match, EFFECTS["after"], nth(2))
    return {**found, "creation before": creation, "creation after": second}


def hold_shared(kill: str, client: str) -> Rule:
    write, _, when = kill.partition(" ")
    if write == "ledger":
        return hold_creation("moveledgers", EFFECTS[when], client=client)
    return hold_ledger(EFFECTS[when], client=client)


async def wait_until_evicted(stage: MoveStage, victims: Mapping[str, Object]) -> None:
    """Wait until one of them is gone: its debit is Spent with the next write of the ledger."""
    uids = {pod["metadata"]["uid"] for pod in victims.values()}
    async with asyncio.timeout(30):
        while uids <= {pod["metadata"]["uid"] for pod in await stage.list_pods()}:
            await asyncio.sleep(0.01)
