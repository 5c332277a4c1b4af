"""A replacement is awaited for as long as its workload needs."""

import asyncio
import dataclasses

import pytest
from msgspec.structs import replace

from reberth.cluster.kinds import DEPLOYMENT, PODS
from reberth.cluster.snapshot import Snapshot
from reberth.memory.history import learn_cost
from reberth.records import EvictionHistory, OpenMove, Outcome, Owner, OwnerSpec, PastMove, Pod
from reberth.values.duration import PositiveDuration
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_time
from rescheduler.execution.context import ExecutionContext
from rescheduler.execution.executor import Executor
from rescheduler.execution.orders import compose_order
from rescheduler.model.plan import LandingScores
from rescheduler.moves.lifecycle import MoveState
from rescheduler.moves.order import MoveOrder
from rescheduler.settings import ReschedulerSettings
from tests.support.memory.objects import NOW, web_pod
from tests.support.rescheduler.crash_simulator import FakeApi, World, make_context, resume

pytestmark = [pytest.mark.looptime, pytest.mark.asyncio]

MINUTE = 60.0


class SlowWorld(World):
    """The replacement lands at once, unless it has no node, and is Ready after a while."""

    def __init__(
        self, *, ready_after: float, lands_after: float = 0.0, dies_after: float = 0.0, kubelet: float = 0.0
    ) -> None:
        super().__init__()
        self._kubelet_ahead = kubelet
        self._ready_after = ready_after
        self._lands_after = lands_after
        self._dies_after = dies_after
        self._ages = dict[str, float]()

    def evict(self, move: str, pod: Pod) -> None:
        self.evictions.append((move, pod.metadata.uid))
        del self.objects["pods", "shop", pod.metadata.name]
        loop = asyncio.get_running_loop()
        self._put("web-2", node=None)
        loop.call_later(self._lands_after, self._put, "web-2", "n2")
        last = "web-2"
        if self._dies_after:
            loop.call_later(self._dies_after, self.objects.pop, ("pods", "shop", "web-2"))
            loop.call_later(self._dies_after + 1.0, self._put, "web-3", None)
            loop.call_later(self._dies_after + 9.0, self._put, "web-3", "n2")
            last = "web-3"
        loop.call_later(self._ready_after, self._make_ready, last)

    def _put(self, name: str, node: str | None) -> None:
        self.put(PODS, web_pod(name, node=node, age=self._date_birth(name)))

    def _date_birth(self, name: str) -> float:
        return self._ages.setdefault(name, NOW - self.now())

    def _make_ready(self, name: str) -> None:
        condition = {"type": "Ready", "status": "True", "lastTransitionTime": self._date()}
        age = self._date_birth(name)
        self.put(PODS, web_pod(name, node="n2", age=age, status={"conditions": [condition]}))

    def _date(self) -> str:
        return write_time(self.now() + self._kubelet_ahead)


class CrashingWorld(SlowWorld):
    """The replacement's container ends after so many seconds, each time, and starts again 20 s later."""

    def __init__(self, *, runs_for: float, min_ready_seconds: int | None = None) -> None:
        super().__init__(ready_after=5.0)
        self._runs_for = runs_for
        self._starts = 0
        spec = replace(self.replica_set.spec, min_ready_seconds=min_ready_seconds)
        self.put(self._owners, replace(self.replica_set, spec=spec))

    def _make_ready(self, name: str) -> None:
        loop = asyncio.get_running_loop()
        self._write(name, "True")
        loop.call_later(self._runs_for, self._write, name, "False")
        self._starts += 1
        loop.call_later(self._runs_for + 20, self._make_ready, name)

    def _write(self, name: str, ready: str) -> None:
        condition = {"type": "Ready", "status": ready, "lastTransitionTime": self._date()}
        container = {"name": "web", "restartCount": self._starts}
        status = {"conditions": [condition], "containerStatuses": [container]}
        self.put(PODS, web_pod(name, node="n2", age=self._date_birth(name), status=status))


class RestartedWorld(CrashingWorld):
    """The replacement's container has ended once, before the pod was Ready for the first time."""

    def __init__(self, *, min_ready_seconds: int | None = None) -> None:
        super().__init__(runs_for=24 * 60 * MINUTE, min_ready_seconds=min_ready_seconds)
        self._starts = 1


class AlternatingWorld(SlowWorld):
    """Of two new pods the second is Ready after 5 s; then the first one lands, and is gone a moment later."""

    def __init__(self) -> None:
        super().__init__(ready_after=5.0, lands_after=6.0)

    def evict(self, move: str, pod: Pod) -> None:
        super().evict(move, pod)
        loop = asyncio.get_running_loop()
        loop.call_later(1.0, self._put, "web-3", "n2")
        loop.call_later(7.0, self.objects.pop, ("pods", "shop", "web-2"))

    def _make_ready(self, _name: str) -> None:
        super()._make_ready("web-3")


class SetBackWorld(SlowWorld):
    """The API server's clock is set back by a minute while the replacement is awaited."""

    def now(self) -> float:
        is_set_back = self.evictions and asyncio.get_running_loop().time() > 10
        return super().now() - (MINUTE if is_set_back else 0.0)


class BetterThere:
    """A forecast by which every node is as good as the source, and n2 better."""

    schedulers = frozenset({"default-scheduler"})

    def look_at(self, _snapshot: Snapshot) -> "BetterThere":
        return self

    def find_destinations(self, _pod: Pod) -> tuple[str, ...]:
        return ("n2",)

    def refuse_destinations(self, _pod: Pod, _destinations: tuple[str, ...]) -> Refused | None:
        return None

    def score_landing(self, _move: OpenMove, _landed_on: str) -> LandingScores:
        return LandingScores(600, 700)


async def move_slowly(
    world: World, *, deadline: int | None = 600, timeout: float = 5 * MINUTE
) -> tuple[PastMove, EvictionHistory]:
    """Move the pod, whose Deployment has this progress deadline."""
    context = make_slow_context(world, deadline=deadline, timeout=timeout)
    await Executor(context).move(await order_move(context))
    return read_end(world)


def make_slow_context(world: World, *, deadline: int | None, timeout: float) -> ExecutionContext:
    settings = ReschedulerSettings(extender="none", replacement_timeout=PositiveDuration(timeout))
    context = dataclasses.replace(
        make_context(world, FakeApi(world)), forecast=BetterThere(), settings=lambda: settings
    )
    meta = replace(
        world.replica_set.metadata,
        name="web",
        uid="uid-deployment",
        owner_references=None,
        resource_version="1",
    )
    context.mirror.cache.replace(
        DEPLOYMENT, [Owner(meta, OwnerSpec(progress_deadline_seconds=deadline))], "1"
    )
    return context


async def order_move(context: ExecutionContext) -> MoveOrder:
    order = await compose_order(context, "shop", "web-1", to=("n2",), reason="why not")
    assert isinstance(order, MoveOrder)
    return order


def read_end(world: World) -> tuple[PastMove, EvictionHistory]:
    history = world.history()
    assert history is not None
    (past,) = history.status.past or ()
    return past, history


@pytest.mark.parametrize("kubelet", [-3600.0, -5.0, 0.0, 5.0, 3600.0])
async def test_the_clock_of_the_node_does_not_change_the_learnt_cost(kubelet: float) -> None:
    _, history = await move_slowly(SlowWorld(ready_after=30.0, kubelet=kubelet))
    assert learn_cost(history) == pytest.approx(30, abs=1)


async def test_a_clock_that_is_set_back_makes_no_negative_time_to_ready() -> None:
    """The API server refuses a history with one, again and again."""
    past, _ = await move_slowly(SetBackWorld(ready_after=30.0))
    assert past.time_to_ready == 0


async def test_a_workload_that_is_ready_after_eight_minutes_ends_better_and_costs_480_seconds() -> None:
    past, history = await move_slowly(SlowWorld(ready_after=8 * MINUTE))
    assert (past.outcome, past.time_to_ready) == (Outcome.BETTER, 480)
    assert past.block_until is None
    assert learn_cost(history) == 480


async def test_without_a_progress_deadline_the_setting_decides() -> None:
    slow = SlowWorld(ready_after=8 * MINUTE)
    past, _ = await move_slowly(slow, deadline=None)
    assert past.outcome == Outcome.NOT_READY
    assert slow.now() == pytest.approx(NOW + 5 * MINUTE, abs=1.0)
    past, history = await move_slowly(SlowWorld(ready_after=8 * MINUTE), deadline=None, timeout=10 * MINUTE)
    assert past.outcome == Outcome.BETTER
    assert learn_cost(history) == 480


async def test_a_replacement_that_is_never_ready_is_not_awaited_for_ever() -> None:
    world = SlowWorld(ready_after=24 * 60 * MINUTE)
    past, _ = await move_slowly(world)
    assert past.outcome == Outcome.NOT_READY
    assert world.now() == pytest.approx(NOW + 10 * MINUTE, abs=1.0)


async def test_a_replacement_without_a_node_is_pending_after_the_time_for_landing() -> None:
    world = SlowWorld(ready_after=9 * MINUTE, lands_after=8 * MINUTE)
    past, _ = await move_slowly(world)
    assert past.outcome == Outcome.PENDING
    assert world.now() == pytest.approx(NOW + 5 * MINUTE, abs=1.0)


async def test_a_pod_that_replaces_the_landed_replacement_is_awaited_too() -> None:
    past, _ = await move_slowly(SlowWorld(ready_after=8 * MINUTE, dies_after=7 * MINUTE))
    assert (past.outcome, past.time_to_ready) == (Outcome.BETTER, 480)


@pytest.mark.parametrize(
    ("runs_for", "asked_for", "outcome"),
    [
        (1.5, None, Outcome.NOT_READY),
        (30, None, Outcome.BETTER),
        (30, 60, Outcome.NOT_READY),
        (90, 60, Outcome.BETTER),
    ],
)
async def test_a_crash_loop_that_is_ready_for_moments_is_no_good_replacement(
    runs_for: float, asked_for: int | None, outcome: Outcome
) -> None:
    past, _ = await move_slowly(CrashingWorld(runs_for=runs_for, min_ready_seconds=asked_for))
    assert past.outcome == outcome
    if outcome is Outcome.BETTER:
        assert past.time_to_ready == pytest.approx(5, abs=1)


async def test_a_leader_that_comes_after_the_deadline_looks_for_as_long_as_any() -> None:
    world = RestartedWorld()
    context = make_slow_context(world, deadline=600, timeout=5 * MINUTE)
    moving = asyncio.create_task(Executor(context).move(await order_move(context)))
    await asyncio.sleep(2)
    moving.cancel()
    await asyncio.sleep(20 * MINUTE)
    began = world.now()
    executor = Executor(next_one := make_slow_context(world, deadline=600, timeout=5 * MINUTE))
    (left,) = await resume(next_one, executor)
    assert isinstance(left.settled, MoveState)
    await executor.finish(left.handle, left.settled)
    past, _ = read_end(world)
    assert past.outcome == Outcome.BETTER
    assert world.now() == pytest.approx(began + 3, abs=1)


async def test_a_replacement_that_is_ready_for_moments_is_not_awaited_after_its_time() -> None:
    world = CrashingWorld(runs_for=1.5)
    await move_slowly(world)
    assert world.now() == pytest.approx(NOW + 10 * MINUTE, abs=2.5)


@pytest.mark.parametrize("asked_for", [290, 900])
async def test_a_controller_may_want_longer_readiness_than_there_is_time_to_become_ready(
    asked_for: int,
) -> None:
    world = RestartedWorld(min_ready_seconds=asked_for)
    past, _ = await move_slowly(world, deadline=None)
    assert (past.outcome, past.time_to_ready) == (Outcome.BETTER, 5)
    assert world.now() == pytest.approx(NOW + 5 + asked_for, abs=1)


async def test_a_controller_may_want_an_hour_of_readiness_at_most() -> None:
    context = make_slow_context(RestartedWorld(min_ready_seconds=2147483647), deadline=None, timeout=MINUTE)
    assert context.find_min_ready("uid-rs") == 60 * MINUTE
    assert context.find_min_ready("another") == 0


async def test_another_pod_that_seems_to_be_the_replacement_for_a_moment_costs_no_time() -> None:
    """As happens where several replacements of a workload land at the same time."""
    world = AlternatingWorld()
    past, _ = await move_slowly(world)
    assert (past.outcome, past.time_to_ready) == (Outcome.BETTER, 5)
    assert world.now() == pytest.approx(NOW + 8, abs=0.5)
