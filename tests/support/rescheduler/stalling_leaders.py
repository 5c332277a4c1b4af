"""A leader that is cut off while its moves begin; what it sent arrives within a minute, when another leads.

The next leader resumes the moves that it finds, some of its evictions are refused, and it begins moves of the
same workloads. Everything follows from the seed.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, NamedTuple

from reberth.records import DebitState, Outcome
from reberth.values import errors
from rescheduler.execution.context import ExecutionContext
from rescheduler.execution.dispatcher import MoveDispatcher
from rescheduler.execution.orders import compose_order
from rescheduler.moves.order import MoveOrder
from rescheduler.moves.outcome import MoveReport
from tests.support.rescheduler.crash_simulator import FakeMirror, make_context
from tests.support.rescheduler.racing_resumes import (
    WORKLOADS,
    RaceWorld,
    SlowApi,
    planned_move,
    target_of,
)

LONGEST_STALL = 59.0
NO_BUDGET = errors.TooManyRequests("evict", "no", causes=[("DisruptionBudget", "none left", "")])


class TakeOver(NamedTuple):
    """What is left when the next leader has nothing more to do."""

    world: RaceWorld
    late: int  # evictions of the first leader that took effect after the other one led
    refused: int


class StallingApi(SlowApi):
    """Its writes go on when its process is no more: from then on they may take up to a minute."""

    def __init__(self, world: RaceWorld, dice: random.Random) -> None:
        super().__init__(world, dice)
        self.stalled = False
        self.late = 0
        self._sent: set[asyncio.Task[Any]] = set()

    async def create(self, *given: Any, **place: Any) -> Any:
        return await self._send(super().create(*given, **place))

    async def replace(self, *given: Any, **place: Any) -> Any:
        return await self._send(super().replace(*given, **place))

    async def merge(self, *given: Any, **place: Any) -> Any:
        return await self._send(super().merge(*given, **place))

    async def evict(self, name: str, **given: Any) -> None:
        await self._send(self._evict(name, **given))

    async def arrived(self) -> None:
        """Wait until nothing is on its way any more."""
        await asyncio.gather(*self._sent, return_exceptions=True)

    async def _evict(self, name: str, *, dry_run: bool, **place: Any) -> None:
        assert not self.stalled, "a leader that was cut off sends"
        if not dry_run:
            await asyncio.sleep(self._dice.uniform(0.0, 0.5))
        await super().evict(name, dry_run=dry_run, **place)
        self.late += self.stalled and not dry_run

    async def _send(self, request: Coroutine[Any, Any, Any]) -> Any:
        task = asyncio.get_running_loop().create_task(request)
        self._sent.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._sent.discard(task)
        if not task.cancelled():
            task.exception()  # nobody is left to hear of it

    async def _lag(self) -> None:
        await super()._lag()
        if self.stalled:
            await asyncio.sleep(self._dice.uniform(0.0, LONGEST_STALL))


async def take_over(seed: int) -> TakeOver:
    """Cut a leader off, have the next one take over at once, and wait until nothing is left to do."""
    dice = random.Random(seed)
    world = RaceWorld()
    stalling, api = StallingApi(world, dice), SlowApi(world, dice)
    first = asyncio.get_running_loop().create_task(_lead(world, stalling, dice))
    await asyncio.sleep(dice.uniform(0.02, 1.0))
    stalling.stalled = True
    first.cancel()
    with suppress(asyncio.CancelledError):
        await first
    api.refuse(dict.fromkeys(dice.sample(range(1, 3 * WORKLOADS), WORKLOADS), NO_BUDGET))
    context = make_context(world, api)
    mirror = context.mirror
    assert isinstance(mirror, FakeMirror)
    async with asyncio.TaskGroup() as group:
        dispatcher = MoveDispatcher(context, group, on_end=lambda _move, _end: None)
        await _resume(dispatcher)
        movers = [
            group.create_task(_begin(context, dispatcher, number, dice.uniform(0.0, 2 * LONGEST_STALL)))
            for number in range(WORKLOADS)
        ]
        arrived = group.create_task(stalling.arrived())
        coming = [arrived, *movers]
        while not all(each.done() for each in coming) or _is_busy(dispatcher, mirror, world):
            await asyncio.sleep(dice.uniform(0.0, 2.0))
            if _is_busy(dispatcher, mirror, world):
                await _resume(dispatcher)
    await context.ledger.flush()
    refused = sum(move.evicted_at is None for move in world.past())
    return TakeOver(world, stalling.late, refused)


def find_contradictions(one: TakeOver) -> list[str]:
    """List evictions that are not paid, noted and recorded, and what is left of moves that were undone.

    A debit that the first leader's last request reserved may be Spent without an eviction: nobody can tell.
    """
    world, debits = one.world, one.world.debits()
    past = {move.id: move for move in world.past()}
    evicted = Counter(move for move, _ in world.evictions)
    pods = Counter(uid for _, uid in world.evictions)
    found = [f"{each} evicted {count} times" for each, count in (evicted + pods).items() if count > 1]
    found += [f"the debit of {move} is Tentative" for move in debits if _is_tentative(world, move)]
    found += [f"{move} was evicted unpaid" for move in evicted if move not in debits]
    found += [f"{move} was evicted, and no note is left" for move in evicted.keys() - world.all_noted()]
    found += [f"a note of {move}, which is no move" for move in world.all_noted() - past.keys()]
    found += [f"{move} was evicted, and is recorded nowhere" for move in evicted.keys() - past.keys()]
    for move in past.values():
        is_recorded = move.evicted_at is not None and move.outcome is not Outcome.REFUSED
        if is_recorded != (move.id in evicted):
            found.append(f"{move.id}: {evicted[move.id]} evictions, and its history says {move.outcome}")
    return found


def _is_tentative(world: RaceWorld, move: str) -> bool:
    return world.debits()[move].state is DebitState.TENTATIVE


async def _lead(world: RaceWorld, api: SlowApi, dice: random.Random) -> None:
    context = make_context(world, api)
    async with asyncio.TaskGroup() as group:
        dispatcher = MoveDispatcher(context, group, on_end=lambda _move, _end: None)
        for number in range(WORKLOADS):
            group.create_task(_begin(context, dispatcher, number, dice.uniform(0.0, 0.1)))


async def _resume(dispatcher: MoveDispatcher) -> None:
    with suppress(errors.ApiError):
        await dispatcher.resume()


def _is_busy(dispatcher: MoveDispatcher, mirror: FakeMirror, world: RaceWorld) -> bool:
    """Tell whether there is anything to do; a move that could not be resumed rests first."""
    mirror.sync()
    at_work = len(dispatcher) > 0 or dispatcher.failed
    return at_work or world.has_open_moves() or dispatcher.has_orphans()


async def _begin(context: ExecutionContext, dispatcher: MoveDispatcher, number: int, pause: float) -> None:
    """Begin a move of a workload, unless its pod has been moved already."""

    async def hear(_report: MoveReport) -> None:
        pass

    await asyncio.sleep(pause)
    workload = f"workload-{number}"
    if number % 2:
        dispatcher.begin(planned_move(workload))
        return
    order = await compose_order(context, "shop", f"{workload}-1", to=(target_of(workload),), reason="why not")
    if isinstance(order, MoveOrder):
        dispatcher.begin_order(order, hear)
