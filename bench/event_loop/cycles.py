"""Runs cycles as the daemon does, with the plan in a thread, and measures what is left to the event loop."""

import asyncio
import time
from dataclasses import dataclass
from typing import cast

from bench.planning.fleet import NOW
from bench.planning.planning import settings_of
from reberth.cluster.cache import Cache
from reberth.cluster.kinds import POD
from reberth.cluster.tables import ObjectIdentity
from reberth.runtime.worker_thread import WorkerThread
from rescheduler.budgets.brakes import ClusterHealth
from rescheduler.daemon.loop import CycleInputs, CycleLoop
from rescheduler.execution.dispatcher import MoveDispatcher
from rescheduler.model.refusal_memory import RefusalMemory
from tests.support.loop_stretches import measuring_stretches
from tests.support.rescheduler.fake_dispatcher import FakeDispatcher
from tests.support.rescheduler.plans import MODEL

_MOVES = 100


@dataclass(frozen=True)
class CycleCost:
    """Seconds of CPU: of the whole process, of the event loop, and of its longest step."""

    process: float
    loop: float
    longest: float


async def run_cycles(cache: Cache, arm: str, *, cycles: int) -> list[CycleCost]:
    """Run cycles, each after a change in every namespace; one with fewer moves would be too cheap."""
    one, found = _make_cycle_loop(cache, arm), list[CycleCost]()
    for _ in range(cycles):
        _touch_all_namespaces(cache)
        one.memory = None
        began = time.process_time()
        with measuring_stretches() as stretches:
            await asyncio.create_task(one.cycle("bench", cast("MoveDispatcher", FakeDispatcher())))
        found.append(CycleCost(time.process_time() - began, sum(stretches), max(stretches)))
        if one.last is None or len(one.last.plan.moves) != _MOVES:
            raise AssertionError("the cycle has not planned its moves")
    return found


def _make_cycle_loop(cache: Cache, arm: str) -> CycleLoop:
    inputs = CycleInputs(
        contents=cache.contents,
        policy=lambda: settings_of(arm),
        model=lambda: MODEL,
        health=ClusterHealth,
        refusals=RefusalMemory,
        clock=lambda: NOW,
        warnings=tuple,
        offload=WorkerThread(),
        stop_reason=lambda: None,
    )
    return CycleLoop(inputs, None)


def _touch_all_namespaces(cache: Cache) -> None:
    """Change a pod in each of them, so that the next snapshot must read all of them again."""
    pods = cache.of(POD)
    for part in pods.rows().parts:
        row = part.rows[0]
        pods.put(ObjectIdentity(row.namespace, row.name, row.uid, row.version), row)
