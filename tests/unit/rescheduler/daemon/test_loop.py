"""Cycles: which moves of a plan begin, and what the plan memory keeps."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from reberth.client.lease import LeaseLost
from reberth.cluster.object_files import load_objects
from reberth.runtime.worker_thread import Offload, run_inline
from reberth.values import errors
from reberth.values.refusal import Refused
from rescheduler.budgets.brakes import ClusterHealth
from rescheduler.daemon.loop import CycleInputs, CycleLoop
from rescheduler.execution.dispatcher import MoveDispatcher
from rescheduler.model.refusal_memory import RefusalMemory
from tests.support.builders import node
from tests.support.metrics import read_metric
from tests.support.rescheduler.fake_dispatcher import FakeDispatcher
from tests.support.rescheduler.plans import MODEL, NOW, VERSION, policy, replica

EAGER = {
    "level": 5,
    "worth": 0,
    "policies": {
        "underUtilisedNodes": {
            "hotFor": "0s",
            "low": {"cpu": "30%"},
            "high": {"cpu": "50%"},
        }
    },
    "protections": {"minReplicas": 1},
}


def cycle_loop(
    *,
    stop_reason: Callable[[], Refused | None] = lambda: None,
    mode: str = "apply",
    offload: Offload = run_inline,
) -> CycleLoop:
    full = [replica(f"web-{n}", f"web-{n}", "n1", cpu="1") for n in range(7)]
    peers = [replica(f"peer-{n}", f"web-{n}", "n3", cpu="10m") for n in range(7)]
    reading = load_objects([node("n1"), node("n2"), node("n3"), *full, *peers], now=NOW, version=VERSION)
    assert not reading.faults
    inputs = CycleInputs(
        contents=lambda: cast("Any", dict(reading.snapshot.contents)),
        policy=lambda: policy(**EAGER, mode=mode),
        model=lambda: MODEL,
        health=ClusterHealth,
        refusals=RefusalMemory,
        clock=lambda: NOW,
        warnings=lambda: ["mind the gap"],
        offload=offload,
        stop_reason=stop_reason,
    )
    return CycleLoop(inputs, None)


async def run(one: CycleLoop, dispatcher: FakeDispatcher) -> None:
    await one.cycle("start", cast("MoveDispatcher", dispatcher))


def remembered(one: CycleLoop) -> int:
    assert one.memory is not None
    return len(one.memory.moved)


async def test_the_moves_of_a_plan_are_begun_in_its_order_and_remembered() -> None:
    one, dispatcher = cycle_loop(), FakeDispatcher()
    await run(one, dispatcher)
    assert one.last is not None
    assert dispatcher.begun == list(one.last.plan.moves) != []
    assert remembered(one) == len(dispatcher.begun)
    assert one.last.plan.warnings[0] == "mind the gap"


@pytest.mark.parametrize("why", ["stopped_by", "waiting", "recommend"])
async def test_moves_that_are_not_begun_are_shown_and_not_remembered(why: str) -> None:
    paused = Refused("Paused", "for a while")
    one = cycle_loop(
        stop_reason=lambda: paused if why == "stopped_by" else None,
        mode="recommend" if why == "recommend" else "apply",
    )
    dispatcher = FakeDispatcher()
    dispatcher.waiting = int(why == "waiting")
    await run(one, dispatcher)
    assert one.last is not None
    assert one.last.plan.moves
    assert dispatcher.begun == []
    assert remembered(one) == 0


async def test_a_move_that_did_not_take_place_is_forgotten() -> None:
    one, dispatcher = cycle_loop(), FakeDispatcher(refuses=1)
    await run(one, dispatcher)
    assert one.last is not None
    count = len(one.last.plan.moves)
    assert count > 1
    assert remembered(one) == count - 1
    dropped, *kept = dispatcher.begun
    one.forget(dropped)
    one.forget(dropped)
    assert remembered(one) == count - 2
    for each in kept:
        one.settle(each)
        one.forget(each)
    assert remembered(one) == count - 2


async def test_a_move_that_is_refused_while_a_plan_is_made_does_not_come_back_with_it() -> None:
    refused: list[Callable[[], None]] = []

    async def think(work: Callable[[], Any]) -> Any:
        made = work()
        for refuse in refused:
            refuse()
        return made

    one, dispatcher = cycle_loop(offload=think), FakeDispatcher()
    await run(one, dispatcher)
    count = remembered(one)
    dropped = dispatcher.begun[0]
    assert count == len(dispatcher.begun) > 1
    refused.append(lambda: one.forget(dropped))
    one.last = None
    await run(one, FakeDispatcher(refuses=100))
    assert one.last is not None
    assert remembered(one) == count - 1


def failed() -> float:
    return read_metric("reberth_rescheduler_cycles_total", trigger="start", result="failed")


@pytest.mark.parametrize("error", [errors.Unreachable("list", "down"), ValueError("a fault of ours")])
async def test_a_failed_cycle_is_counted_and_the_next_one_starts_anew(error: Exception) -> None:
    one, before = cycle_loop(), failed()
    await run(one, FakeDispatcher(fails=error))
    assert (failed(), one.last) == (before + 1, None)
    dispatcher = FakeDispatcher()
    dispatcher.failed = True
    await run(one, dispatcher)
    assert dispatcher.resumed == 1
    assert one.last is not None


async def test_a_lost_lease_ends_the_cycles() -> None:
    with pytest.raises(LeaseLost):
        await run(cycle_loop(), FakeDispatcher(fails=LeaseLost("gone")))
