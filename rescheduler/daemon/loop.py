"""One cycle after the other: look at the cluster, plan, publish the plan, begin its moves."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import msgspec

from reberth.client.lease import LeaseLost
from reberth.cluster.cache import Contents
from reberth.cluster.snapshot import build
from reberth.runtime.logs import Log
from reberth.values.errors import ReberthError
from reberth.values.refusal import Refused
from rescheduler.daemon.triggers import Waker
from rescheduler.execution.dispatcher import Carrier
from rescheduler.execution.worker_thread import Think
from rescheduler.model.plan import APPLY, Plan, PlannedMove
from rescheduler.model.plan_memory import Moved, PlanMemory
from rescheduler.planning.cycle import Cycle, World, begin_cycle
from rescheduler.planning.planner import write_plan
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.telemetry import metrics
from rescheduler.telemetry.recording import count_plan, show_state

EARLIER_WAIT = Refused("EarlierWait", "moves of an earlier plan wait for their turn")

log = Log(__name__)


@dataclass(frozen=True, eq=False)
class Made:
    """A plan, what it was made from, and what the next one should know."""

    cycle: Cycle
    plan: Plan
    memory: PlanMemory
    world: World
    seconds: tuple[float, float]  # for the snapshot and for the plan


@dataclass(frozen=True)
class Scene:
    """What a cycle looks at; each is asked when the cycle begins."""

    contents: Callable[[], Contents]
    policy: Callable[[], ReschedulerPolicy]
    world: Callable[[], World]
    clock: Callable[[], float]
    warnings: Callable[[], Iterable[str]]
    think: Think
    halt: Callable[[], Refused | None]


class Cycler:
    """Keeps the last plan, and what it remembers; both may be lost."""

    def __init__(self, scene: Scene, memory: PlanMemory | None) -> None:
        self.last: Made | None = None
        self._scene = scene
        self._memory = memory
        self._begun: dict[str, Moved] = {}

    async def cycle_for_ever(self, waker: Waker, carrier: Carrier) -> None:
        while True:
            wake = await waker.sleep()
            await self.cycle(wake, carrier)

    async def cycle(self, wake: str, carrier: Carrier) -> None:
        """Plan, and begin the moves; whatever goes wrong, the next cycle begins anew."""
        result = "failed"
        try:
            if carrier.failed or carrier.has_orphans():
                carrier.failed = False
                await carrier.resume()
            with metrics.CYCLE_DURATION.time():
                made = await self._plan()
            self._begin(made, carrier)
            result = "planned"
        except LeaseLost:
            raise
        except ReberthError as error:
            log.warning("cycle failed", wake=wake, reason=str(error))
        except Exception:
            log.exception("cycle failed", wake=wake)
        finally:
            metrics.CYCLES.labels(wake, result).inc()

    def forget(self, planned: PlannedMove) -> None:
        """Forget a move that was begun and did not take place."""
        moved = self._begun.pop(planned.uid, None)
        if moved and self._memory:
            kept = tuple(each for each in self._memory.moved if each is not moved)
            self._memory = msgspec.structs.replace(self._memory, moved=kept)

    def settle(self, planned: PlannedMove) -> None:
        """Hear that a move has taken place."""
        self._begun.pop(planned.uid, None)

    async def _plan(self) -> Made:
        scene, memory = self._scene, self._memory
        contents, policy, world, now = scene.contents(), scene.policy(), scene.world(), scene.clock()
        made = await scene.think(lambda: _make(contents, policy, memory, world, now))
        with metrics.PHASE_DURATION.labels("publish").time():
            warnings = tuple(dict.fromkeys((*scene.warnings(), *made.plan.warnings)))
            made = replace(made, plan=msgspec.structs.replace(made.plan, warnings=warnings))
            self.last = made
            count_plan(made.plan)
            show_state(made.cycle, warnings)
        for phase, seconds in zip(("snapshot", "plan"), made.seconds, strict=True):
            metrics.PHASE_DURATION.labels(phase).observe(seconds)
        metrics.LAST_CYCLE.set(now)
        return made

    def _begin(self, made: Made, carrier: Carrier) -> None:
        """Begin the moves that are to be made; only of these something is remembered."""
        applied = [move for move in made.plan.moves if move.mode == APPLY]
        known = made.memory.moved[: len(made.memory.moved) - len(applied)]
        fresh = made.memory.moved[len(known) :]
        halted = self._scene.halt() or (EARLIER_WAIT if carrier.waiting else None)
        begun = [
            (move, moved)
            for move, moved in zip(applied, fresh, strict=True)
            if halted is None and carrier.begin(move)
        ]
        self._begun |= {move.uid: moved for move, moved in begun}
        for move, _ in begun:
            metrics.GAIN.labels("planned").observe(move.gain)
        self._memory = msgspec.structs.replace(made.memory, moved=(*known, *(moved for _, moved in begun)))
        metrics.APPLYING.set(bool(applied) and halted is None)
        log.info(
            "planned",
            moves=len(made.plan.moves),
            begun=len(begun),
            in_flight=len(carrier),
            refused=len(made.plan.refused),
            halted=halted.rule if halted else None,
        )


def _make(
    contents: Contents, policy: ReschedulerPolicy, memory: PlanMemory | None, world: World, now: float
) -> Made:
    started = time.perf_counter()
    snapshot = build(contents, now=now)
    looked = time.perf_counter()
    cycle = begin_cycle(snapshot, policy, memory, world)
    plan, remembered = write_plan(cycle)
    return Made(cycle, plan, remembered, world, (looked - started, time.perf_counter() - looked))
