"""A leader whose moves begin, wait and fail while it resumes moves again and again, with a slow API server.

Every request takes a while, before and after it takes effect. Lists may take a second, as when they are
answered with an error and sent again, and some of them fail. The moves of one workload are interrupted:
that is what makes a leader look for moves that were left behind. Everything follows from the seed.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, cast

from msgspec.structs import replace

from reberth.cluster.kinds import HISTORIES, NODES, PODS, Resource
from reberth.memory.notes import ANNOTATION, read_notes
from reberth.protocol.response import Page
from reberth.records import (
    DebitState,
    EvictionHistory,
    Node,
    Outcome,
    PastMove,
    Pod,
    TemplatedOwner,
    TemplatedSpec,
)
from reberth.values import errors
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_time
from rescheduler.execution.context import ExecutionContext
from rescheduler.execution.dispatcher import MoveDispatcher
from rescheduler.execution.orders import compose_order
from rescheduler.model.plan import Destination, PlannedMove
from rescheduler.moves.order import MoveOrder
from rescheduler.moves.outcome import MoveReport
from tests.support import builders
from tests.support.memory.objects import NOW, OWNERS, web_pod
from tests.support.rescheduler.crash_simulator import (
    REPLICA_SETS,
    FakeApi,
    World,
    make_context,
)

WORKLOADS = 6
TROUBLED = "workload-0"
_LANDING_TIME = 0.05


class RaceWorld(World):
    """Workloads of one pod each, every one with nodes of its own: no move waits for another."""

    def __init__(self) -> None:
        super().__init__()
        self.objects.clear()
        for number in range(WORKLOADS):
            name = f"workload-{number}"
            owner = replace(
                OWNERS["uid-rs"],
                name=name,
                uid=f"uid-{name}",
                owner_references=None,
            )
            self.put(REPLICA_SETS, TemplatedOwner(owner, TemplatedSpec(replicas=1)))
            for node in (source_of(name), target_of(name)):
                self.put(NODES, builders.as_record(Node, builders.node(node)))
            self.put(PODS, _pod_of(name, f"{name}-1", source_of(name), age=60.0))

    def evict(self, move: str, pod: Pod) -> None:
        """The pod is gone at once; its replacement follows on the other node."""
        self.evictions.append((move, pod.metadata.uid))
        del self.objects["pods", "shop", pod.metadata.name]
        workload = pod.metadata.name.rpartition("-")[0]
        asyncio.get_running_loop().call_later(_LANDING_TIME, self._replace, workload)

    def _replace(self, workload: str) -> None:
        condition = {"type": "Ready", "status": "True", "lastTransitionTime": write_time(self.now())}
        status = {"conditions": [condition]}
        name = f"{workload}-{len(self.evictions) + 1}"
        self.put(PODS, _pod_of(workload, name, target_of(workload), age=NOW - self.now(), status=status))

    def histories(self) -> list[EvictionHistory]:
        return [
            cast("EvictionHistory", one)
            for (kind, _, _), one in self.objects.items()
            if kind == HISTORIES.name
        ]

    def has_open_moves(self) -> bool:
        return any(history.status.open for history in self.histories())

    def past(self) -> list[PastMove]:
        return [move for history in self.histories() for move in history.status.past or ()]

    def all_noted(self) -> set[str]:
        nodes = [cast("Node", one) for (kind, _, _), one in self.objects.items() if kind == NODES.name]
        notes = [read_notes((node.metadata.annotations or {}).get(ANNOTATION)) for node in nodes]
        return {
            note.mark.id
            for each in notes
            if not isinstance(each, Refused)
            for note in each.ours
            if note.mark is not None
        }


class SlowApi(FakeApi):
    """Takes its time for each request; lists may take long and fail, writes of one workload may fail."""

    def __init__(self, world: RaceWorld, dice: random.Random) -> None:
        super().__init__(world)
        self._dice = dice
        self.lists_failed = 0
        self.interrupted = 0

    async def get(self, resource: Resource[Any], name: str, *, namespace: str = "") -> Any:
        await self._lag()
        found = await super().get(resource, name, namespace=namespace)
        await self._lag()
        return found

    async def list_pages(
        self, resource: Resource[Any], *, namespace: str = "", **selection: str
    ) -> AsyncIterator[Page[Any]]:
        if resource is HISTORIES:
            await self._lag_of_list()
        async for page in super().list_pages(resource, namespace=namespace, **selection):
            if resource is HISTORIES:
                await self._lag_of_list()
            yield page

    async def create(self, resource: Resource[Any], body: Any, *, namespace: str = "") -> Any:
        await self._lag()
        return await self._answer(await super().create(resource, body, namespace=namespace))

    async def replace(
        self, resource: Resource[Any], name: str, body: Any, *, namespace: str = "", subresource: str = ""
    ) -> Any:
        await self._lag()
        if TROUBLED in name and self._dice.random() < 0.3:
            self.interrupted += 1
            raise errors.Forbidden("replace", "for a while")
        return await self._answer(
            await super().replace(resource, name, body, namespace=namespace, subresource=subresource)
        )

    async def merge(self, resource: Resource[Any], name: str, patch: Mapping[str, Any], **place: str) -> Any:
        await self._lag()
        return await self._answer(await super().merge(resource, name, patch, **place))

    async def evict(self, name: str, **given: Any) -> None:
        await self._lag()
        await super().evict(name, **given)
        await self._lag()

    async def _answer(self, written: Any) -> Any:
        await self._lag()
        return written

    async def _lag(self) -> None:
        await asyncio.sleep(self._dice.uniform(0.0005, 0.004))

    async def _lag_of_list(self) -> None:
        slow = self._dice.random() < 0.2
        await asyncio.sleep(self._dice.uniform(0.2, 1.0) if slow else self._dice.uniform(0.0, 0.03))
        if self._dice.random() < 0.2:
            self.lists_failed += 1
            raise errors.ServerFault("list", "out of order")


class Race(NamedTuple):
    """What is left after a round, and what happened in it."""

    world: RaceWorld
    reports: list[MoveReport]
    resumed: int
    lists_failed: int
    interrupted: int


async def race(seed: int) -> Race:
    """Begin a move of each workload within a tenth of a second, resuming all the while, and end them all."""
    dice = random.Random(seed)
    world = RaceWorld()
    api = SlowApi(world, dice)
    context = make_context(world, api)
    resumed = 0
    reports: list[MoveReport] = []
    async with asyncio.TaskGroup() as group:
        dispatcher = MoveDispatcher(context, group, on_end=lambda _move, _evicted: None)
        movers = [
            group.create_task(_begin(context, dispatcher, number, dice.uniform(0.0, 0.1), reports))
            for number in range(WORKLOADS)
        ]
        while not all(mover.done() for mover in movers) or len(dispatcher) or world.has_open_moves():
            await asyncio.sleep(dice.uniform(0.0, 0.02))
            resumed += 1
            with suppress(errors.ApiError):
                await dispatcher.resume()
        await context.ledger.flush()
    return Race(world, reports, resumed, api.lists_failed, api.interrupted)


async def _begin(
    context: ExecutionContext,
    dispatcher: MoveDispatcher,
    number: int,
    pause: float,
    reports: list[MoveReport],
) -> None:
    """Every second move is one of a plan, the others are requested by a person."""

    async def keep(report: MoveReport) -> None:
        reports.append(report)

    await asyncio.sleep(pause)
    workload = f"workload-{number}"
    if number % 2:
        assert dispatcher.begin(planned_move(workload))
        return
    order = await compose_order(context, "shop", f"{workload}-1", to=(target_of(workload),), reason="why not")
    assert isinstance(order, MoveOrder)
    assert dispatcher.begin_order(order, keep)


def find_lies(one: Race) -> list[str]:
    """List where the traces of a round contradict what has happened to the pods."""
    world = one.world
    evicted = Counter(move for move, _ in world.evictions)
    debits = world.debits()
    past = {move.id: move for move in world.past()}
    lies = [f"{move} evicted {count} times" for move, count in evicted.items() if count > 1]
    lies += [f"a debit of {move} is {debits[move].state}" for move in debits if move not in evicted]
    for move in evicted:
        debit, recorded = debits.get(move), past.get(move)
        if debit is None or debit.state != DebitState.SPENT:
            lies.append(f"{move} was evicted, and its debit is {debit.state if debit else 'returned'}")
        if recorded is None or recorded.outcome == Outcome.REFUSED or not recorded.evicted_at:
            lies.append(f"{move} was evicted, and its history says {recorded and recorded.outcome}")
    for move, recorded in past.items():
        if move not in evicted and (recorded.outcome != Outcome.REFUSED or recorded.evicted_at):
            lies.append(f"{move} was not evicted, and its history says {recorded.outcome}")
        if move not in evicted and TROUBLED not in recorded.pod:
            lies.append(f"{move} of {recorded.pod} was undone, and nothing was wrong with it")
    if world.all_noted() != set(evicted):
        lies.append(f"notes of {sorted(world.all_noted())}, evictions of {sorted(evicted)}")
    return lies


def source_of(workload: str) -> str:
    return f"source-of-{workload}"


def target_of(workload: str) -> str:
    return f"target-of-{workload}"


def _pod_of(workload: str, name: str, node: str, **fields: Any) -> Pod:
    owner = builders.owner("ReplicaSet", workload, uid=f"uid-{workload}")
    return web_pod(name, owned_by=owner, node=node, **fields)


def planned_move(workload: str) -> PlannedMove:
    return PlannedMove(
        pod=f"shop/{workload}-1",
        uid=f"uid-{workload}-1",
        workload=f"ReplicaSet/{workload}",
        from_=source_of(workload),
        destinations=(Destination(target_of(workload), 1.0),),
        policy="underUtilisedNodes",
        mode="apply",
        level=2,
        gain=50.0,
        cost=5.0,
        risk=1.0,
        worth=44.0,
        reason="its node is over-utilised",
    )
