"""Machines whose clocks are wrong move, judge, learn and draw as machines whose clocks are right.

A workload is moved several times; each replacement has a fate of its own. The same is done with rescheduler
and extender on machines whose clocks are wrong. Nothing that is remembered may differ but by the resolution
of the API server's answers.
"""

import asyncio
import dataclasses
import random
from email.utils import formatdate
from typing import Any, NamedTuple, cast

import pytest
from msgspec.structs import replace

from reberth.client.server_clock import ServerClock
from reberth.cluster.kinds import NODES, PODS, Resource
from reberth.cluster.rows import make_pod_row
from reberth.cluster.templates import Templates
from reberth.memory.backoff import find_block, instant
from reberth.memory.destination_draw import asking_replica, draw, replica_of
from reberth.memory.history import learn_cost
from reberth.records import EvictionHistory, Node, Pod, TemplatedSpec
from reberth.values.timestamp import write_time
from rescheduler.execution.context import ExecutionContext
from rescheduler.execution.executor import Executor
from rescheduler.execution.orders import compose_order
from rescheduler.moves.order import MoveOrder
from tests.support import builders
from tests.support.memory.objects import NOW, web_pod
from tests.support.rescheduler.crash_simulator import REPLICA_SETS, FakeApi, FakeMirror, World, make_context

pytestmark = pytest.mark.looptime
HOUR = 3600.0
SKEWS = (-HOUR, -5.0, -1.5, 1.5, 5.0, HOUR)
NODE_NAMES = tuple(f"n{number}" for number in range(1, 8))
_LATENCY = 0.002


class Fate(NamedTuple):
    """What becomes of a replacement."""

    created: float  # seconds after the eviction
    node: str | None
    ready: float | None  # seconds after its creation


class Cluster(World):
    """One workload, whose replacements are created, bound and Ready one after the other."""

    def __init__(self, seed: int) -> None:
        self._begun = asyncio.get_running_loop().time()
        super().__init__()
        for name in NODE_NAMES[3:]:
            self.put(NODES, builders.as_record(Node, builders.node(name)))
        self.dice = random.Random(seed)
        self.pod = "web-1"
        self.templates = Templates(version=(1, 36))
        self.extender: ServerClock | None = None
        self.drawn: list[tuple[str, ...] | None] = []
        self.change = asyncio.Event()

    def now(self) -> float:
        return NOW + asyncio.get_running_loop().time() - self._begun

    def evict(self, move: str, pod: Pod) -> None:
        self.evictions.append((move, pod.metadata.uid))
        del self.objects["pods", "shop", pod.metadata.name]
        node, ready = self.dice.choice((*NODE_NAMES, None, None)), self.dice.choice((0.5, 4.5, 30.5, None))
        fate = Fate(self.dice.choice((0.0, 0.3, 1.2)), node, ready if node else None)
        asyncio.get_running_loop().call_later(
            fate.created, self._create, f"web-{len(self.evictions) + 1}", fate
        )

    def _create(self, name: str, fate: Fate) -> None:
        self.pod = name
        created = NOW - self.now()
        self.put(PODS, web_pod(name, age=created))
        self.drawn.append(self._ask(name))
        later = asyncio.get_running_loop().call_later
        if fate.node:
            later(0.1, self._set, web_pod(name, node=fate.node, age=created))
        if fate.ready:
            at = write_time(self.now() + fate.ready)
            conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": at}]
            is_ready = web_pod(name, node=fate.node, age=created, status={"conditions": conditions})
            later(fate.ready, self._set, is_ready)

    def _set(self, pod: Pod) -> None:
        if pod.metadata.name == self.pod:
            self.put(PODS, pod)

    def put(self, resource: Resource[Any], body: Any) -> Any:
        kept = super().put(resource, body)
        if resource is PODS and hasattr(self, "change"):
            self.change.set()
        return kept

    def scale_up(self, number: int) -> None:
        """A sibling that lands at once, right before a move."""
        more = TemplatedSpec(replicas=(self.replica_set.spec.replicas or 0) + 1)
        self.replica_set = replace(self.replica_set, spec=more)
        self.put(REPLICA_SETS, self.replica_set)
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        self.put(PODS, web_pod(f"sibling-{number}", node="n3", age=NOW - self.now(), status=ready))

    def _ask(self, name: str) -> tuple[str, ...] | None:
        """What the extender draws this pod to."""
        assert self.extender
        rows = [
            make_pod_row(cast("Pod", one), self.templates)
            for (kind, _, _), one in self.objects.items()
            if kind == PODS.name
        ]
        history = self.history()
        asked = asking_replica(cast("Pod", self.objects["pods", "shop", name]).metadata)
        moves = (history.status.open or ()) if history else ()
        found = draw(asked, moves, list(map(replica_of, rows)), now=self.extender.now())
        return found.destinations if found else None


class Machine:
    """The API server's clients on one machine."""

    def __init__(self, world: World, skew: float) -> None:
        self._world = world
        self.clock = ServerClock(elapsed=asyncio.get_running_loop().time, wall=lambda: world.now() + skew)

    async def hear(self) -> None:
        sent = self.clock.elapsed()
        await asyncio.sleep(_LATENCY)
        date = formatdate(self._world.now() // 1, usegmt=True)
        await asyncio.sleep(_LATENCY)
        self.clock.hear(date, sent=sent)

    async def warm_up(self, answers: int) -> None:
        for _ in range(answers):
            await self.hear()
            await asyncio.sleep(0.37)


class TrueMirror(FakeMirror):
    """It changes when a pod does."""

    def __init__(self, world: Cluster) -> None:
        super().__init__(world)
        self._cluster = world

    async def wait(self) -> None:
        await self._cluster.change.wait()
        self._cluster.change.clear()
        self.sync()


class Memory(NamedTuple):
    """What is remembered of all moves but their ids: what must be equal, and times."""

    outcomes: list[Any]
    draws: list[tuple[str, ...] | None]
    costs: list[float]
    times: list[float]


async def live(seed: int, *, rescheduler: float = 0.0, extender: float = 0.0, answers: int = 1) -> Memory:
    world = Cluster(seed)
    machines = [Machine(world, skew) for skew in (rescheduler, extender)]
    for machine in machines:
        await machine.warm_up(answers)
    await asyncio.sleep(NOW + 60 - world.now())
    world.extender = machines[1].clock
    context = dataclasses.replace(
        make_context(world, FakeApi(world)), clock=machines[0].clock.now, mirror=TrueMirror(world)
    )
    memory = Memory([], world.drawn, [], [])
    for number in range(4):
        if world.dice.random() < 0.5:
            world.scale_up(number)
        await asyncio.sleep(world.dice.choice((0.01, 0.7, 8.0)))
        await move(context, world)
        remember(world, context, memory)
        await asyncio.sleep(world.dice.choice((0.3, 40.0, 4000.0)))
    return memory


async def move(context: ExecutionContext, world: Cluster) -> None:
    cast("FakeMirror", context.mirror).sync()
    pod = cast("Pod", world.objects["pods", "shop", world.pod])
    if not pod.spec.node_name:
        world._set(web_pod(world.pod, node="n2", age=60.0))
        cast("FakeMirror", context.mirror).sync()
    source = cast("Pod", world.objects["pods", "shop", world.pod]).spec.node_name
    to = tuple(node for node in NODE_NAMES if node != source)
    order = await compose_order(context, "shop", world.pod, to=to, reason="why not")
    assert isinstance(order, MoveOrder)
    await Executor(context).move(order)


def remember(world: World, context: ExecutionContext, memory: Memory) -> None:
    history = cast("EvictionHistory", world.history())
    past = (history.status.past or ())[-1]
    block = find_block(history.status, context.clock(), node=past.from_)
    memory.outcomes.append((past.pod, past.from_, past.outcome, past.landed_on))
    costs = (past.time_to_ready, learn_cost(history))
    memory.costs.extend(-99.0 if cost is None else cost for cost in costs)
    memory.outcomes.append(block.rule if block else None)
    ends = (history.status.given_up_until, past.evicted_at, past.closed_at, past.block_until)
    memory.times.extend(instant(end) if end else 0.0 for end in ends)
    memory.times.append((block.until or 0.0) if block else 0.0)


@pytest.mark.parametrize(("answers", "error"), [(1, 1.0), (40, 0.02)])
@pytest.mark.parametrize("seed", range(6))
async def test_outcomes_draws_back_off_and_costs_are_those_of_clocks_that_are_right(
    seed: int, answers: int, error: float
) -> None:
    """`error` is that of the estimate after so many answers; times are cut to seconds as well."""
    right = await live(seed)
    for skew in SKEWS:
        for rescheduler, extender in ((skew, 0.0), (0.0, skew), (skew, -skew)):
            wrong = await live(seed, rescheduler=rescheduler, extender=extender, answers=answers)
            assert wrong.outcomes == right.outcomes
            assert wrong.draws == right.draws
            assert wrong.costs == pytest.approx(right.costs, abs=1 + error)
            assert wrong.times == pytest.approx(right.times, abs=1 + error)


async def test_the_cases_are_many() -> None:
    """Every outcome that the clocks could change, and every kind of back-off, is among them."""
    found = set()
    for seed in range(6):
        lived = await live(seed)
        found |= {one[2].value if isinstance(one, tuple) else one for one in lived.outcomes}
        assert len(lived.draws) == 4
        assert all(lived.draws)
    assert found >= {"Unknown", "Returned", "Pending", "NotReady", "WorkloadBackOff", "GivenUp"}
