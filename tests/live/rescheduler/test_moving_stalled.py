"""What a leader has sent arrives when another one leads: no pod is evicted unpaid, unnoted or twice.

The leader freezes in the middle of moves, and the fault proxy detains a write of each. The next leader takes
over. Some of the moves have lost their reason by then, so that it undoes them; of others the second replica
is to go as well. Then the detained writes arrive, each at its own time.
"""

import asyncio
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio

from localcluster.faults import Detain, Rule
from tests.live.support.daemon_process import Daemon
from tests.live.support.move_stage import MoveStage, populated
from tests.live.support.take_overs import (
    HeldRequest,
    TakeOvers,
    hold_eviction,
    hold_history,
    hold_note,
    taking_over,
)
from tests.support.builders import Object
from tests.support.resumable_rounds import Proof

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

HELD, FREE, REPLICAS = 8, 8, 2
ROUNDS = 200 // HELD
STAYS, CALM, OTHER = "its node stays tainted", "its node is calm again", "the other replica is to go"
FATES = (STAYS, CALM, OTHER)
LONGEST_REQUEST = 6.0
"""How long the next leader reckons with requests that may be on their way: less than the true minute."""
AFTER_ALL = 13.0
"""When everything has arrived, after the freeze: the next leader leads, and waits for nothing any more."""
IN_DOUBT = 7.5
"""Until then an eviction may arrive of a move that the next leader undoes: it is still waiting for it."""

Hold = Callable[..., Rule]
HELD_WRITES: dict[str, Hold] = {
    "history": hold_history,
    "eviction": hold_eviction,
    "note": hold_note,
    "outcome": partial(hold_history, turn=2),
}


class Arrivals(NamedTuple):
    """What became of the detained writes, and how long the next leader was waited for."""

    answers: Counter[str]
    taken_after: float


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MoveStage]:
    async with populated(tmp_path_factory.mktemp("audit"), HELD + FREE, replicas=REPLICAS) as stage:
        yield stage


async def test_what_a_frozen_leader_has_sent_arrives_late(stage: MoveStage, tmp_path: Path) -> None:
    """Histories that the next leader did not find, and evictions of moves that it found."""
    async with taking_over(stage, tmp_path, replicas=REPLICAS, longest_request=LONGEST_REQUEST) as both:
        for written in ("history", "eviction"):
            print(written, await stall(both, 0, HELD_WRITES[written]))


@pytest.mark.soak
@pytest.mark.parametrize("written", HELD_WRITES)
async def test_two_hundred_writes_arrive_late(stage: MoveStage, tmp_path: Path, written: str) -> None:
    proof, seen = Proof(f"arrived-late-{written}"), Counter[str]()
    async with taking_over(stage, tmp_path, replicas=REPLICAS, longest_request=LONGEST_REQUEST) as both:
        for number in proof.remaining(range(ROUNDS)):
            found = await stall(both, number, HELD_WRITES[written])
            seen += found.answers
            proof.note([number])
            print(f"{written}: {len(proof.passed())} take-overs; {dict(seen)}", flush=True)


async def stall(both: TakeOvers, number: int, hold: Hold) -> Arrivals:
    """One take-over with so many detained writes."""
    began, stage = time.time(), both.stage
    leader = await both.start_anew()
    victims = await stage.pick()
    names = sorted(victims)[1::2]  # the others go on, and so the leader begins ever more at once
    rules = {name: hold(victims[name], Detain(), client=leader.name) for name in names}
    both.add(rules)
    await stage.drive_out(victims.values())
    held = await both.until_held(rules)
    assert len(held) > HELD // 2, leader.log[-4000:]
    leader.send(signal.SIGSTOP)
    arrivals = await arrive(both, leader, victims, held, random.Random(number))
    await stage.finish()
    assert both.list_violations() == []
    assert await stage.list_disagreements(since=began) == []
    return arrivals


async def arrive(
    both: TakeOvers,
    leader: Daemon,
    victims: dict[str, Object],
    held: dict[str, HeldRequest],
    dice: random.Random,
) -> Arrivals:
    """Let everything arrive at its own time, while another one takes over."""
    stage, clock = both.stage, time.monotonic
    frozen, fates = clock(), {name: dice.choice(FATES) for name in held}
    await change_reasons(stage, victims, fates)
    answers = Counter[str]()

    async def let_go(name: str) -> None:
        latest = AFTER_ALL if fates[name] == STAYS else IN_DOUBT
        await asyncio.sleep(frozen + dice.uniform(0, latest) - clock())
        code = await both.let_arrive(held[name])
        answers[f"{'before' if taken_after is None else 'after'} the take-over: {code}"] += 1

    taken_after: float | None = None
    async with asyncio.TaskGroup() as group:
        for name in held:
            group.create_task(let_go(name))
        await both.find_leader(but=leader)
        taken_after = clock() - frozen
        if dice.random() < 0.5:
            leader.send(signal.SIGCONT)
        group.create_task(asyncio.sleep(LONGEST_REQUEST + 1))
    return Arrivals(answers, taken_after)


async def change_reasons(stage: MoveStage, victims: dict[str, Object], fates: dict[str, str]) -> None:
    """Take the taint from nodes whose pod need not go any more; taint those of other replicas."""
    sources = {name: pod["spec"]["nodeName"] for name, pod in victims.items()}
    others = await stage.pick(but=sources.values())
    await stage.calm([sources[name] for name, fate in fates.items() if fate != STAYS])
    await stage.drive_out([others[name] for name, fate in fates.items() if fate == OTHER and name in others])
