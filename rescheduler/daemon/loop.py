"""The cycle loop: take a snapshot, plan, publish the plan, begin its moves."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import msgspec

from reberth.client.lease import LeaseLost
from reberth.cluster.cache import Contents
from reberth.cluster.snapshot import build
from reberth.runtime.logs import Log
from reberth.runtime.worker_thread import Offload
from reberth.values.errors import ReberthError
from reberth.values.refusal import Refused
from rescheduler.budgets.brakes import ClusterHealth
from rescheduler.daemon.triggers import Trigger
from rescheduler.execution.dispatcher import MoveDispatcher
from rescheduler.model.plan import APPLY, Plan, PlannedMove
from rescheduler.model.plan_memory import PlanMemory, RememberedMove
from rescheduler.model.refusal_memory import RefusalMemory
from rescheduler.observe.scheduler_model import SchedulerModel
from rescheduler.planning.cycle import Cycle, begin_cycle
from rescheduler.planning.planner import write_plan
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.telemetry import metrics
from rescheduler.telemetry.recording import count_plan, show_state

EARLIER_WAIT = Refused("EarlierWait", "moves of an earlier plan are still waiting to begin")

log = Log(__name__)


@dataclass(frozen=True, eq=False)
class CycleResult:
    """A plan, what it was made from, and the memory for the next plan."""

    cycle: Cycle
    plan: Plan
    memory: PlanMemory
    seconds: tuple[float, float]  # for the snapshot and for the plan


@dataclass(frozen=True)
class CycleInputs:
    """What a cycle is made from. Functions are called when the cycle begins."""

    contents: Callable[[], Contents]
    policy: Callable[[], ReschedulerPolicy]
    model: Callable[[], SchedulerModel]
    health: Callable[[], ClusterHealth]
    refusals: Callable[[], RefusalMemory]
    clock: Callable[[], float]
    warnings: Callable[[], Iterable[str]]
    offload: Offload
    stop_reason: Callable[[], Refused | None]


class CycleLoop:
    """Keeps the last plan and its memory. Both may be lost: nothing that must survive is stored here."""

    def __init__(self, inputs: CycleInputs, memory: PlanMemory | None) -> None:
        self.last: CycleResult | None = None
        self.memory = memory
        self._inputs = inputs
        self._begun: dict[str, RememberedMove] = {}
        self._forgotten: list[RememberedMove] = []  # since the plan in progress has taken the memory

    async def run(self, trigger: Trigger, dispatcher: MoveDispatcher) -> None:
        while True:
            cause = await trigger.sleep()
            await self.cycle(cause, dispatcher)

    async def cycle(self, cause: str, dispatcher: MoveDispatcher) -> None:
        """Plan, and begin the moves. An error ends this cycle only."""
        result = "failed"
        try:
            if dispatcher.failed or dispatcher.has_orphans():
                await dispatcher.resume()
            with metrics.CYCLE_DURATION.time():
                made = await self._plan()
            self._begin(made, dispatcher)
            result = "planned"
        except LeaseLost:
            raise
        except ReberthError as error:
            log.warning("cycle failed", wake=cause, reason=str(error))
        except Exception:
            log.exception("cycle failed", wake=cause)
        finally:
            metrics.CYCLES.labels(cause, result).inc()

    def forget(self, planned: PlannedMove) -> None:
        """Forget a move that was begun but refused: the next plan may propose it again."""
        moved = self._begun.pop(planned.uid, None)
        if moved and self.memory:
            self._forgotten.append(moved)
            kept = tuple(each for each in self.memory.moved if each is not moved)
            self.memory = msgspec.structs.replace(self.memory, moved=kept)

    def settle(self, planned: PlannedMove) -> None:
        """Keep the memory of a move whose pod was evicted."""
        self._begun.pop(planned.uid, None)

    def _is_forgotten(self, moved: RememberedMove) -> bool:
        """Tell whether the move was refused while the plan, which still knows it, was being made."""
        return any(each is moved for each in self._forgotten)

    async def _plan(self) -> CycleResult:
        inputs = self._inputs
        model = inputs.model()
        memory = self.memory and msgspec.structs.replace(self.memory, refusals=inputs.refusals())
        self._forgotten.clear()
        contents, policy, health, now = inputs.contents(), inputs.policy(), inputs.health(), inputs.clock()
        made = await inputs.offload(lambda: _make(contents, policy, memory, model, health, now=now))
        with metrics.PHASE_DURATION.labels("publish").time():
            warnings = tuple(dict.fromkeys((*inputs.warnings(), *made.plan.warnings)))
            made = replace(made, plan=msgspec.structs.replace(made.plan, warnings=warnings))
            self.last = made
            count_plan(made.plan)
            show_state(made.cycle, warnings)
        for phase, seconds in zip(("snapshot", "plan"), made.seconds, strict=True):
            metrics.PHASE_DURATION.labels(phase).observe(seconds)
        metrics.LAST_CYCLE.set(now)
        return made

    def _begin(self, made: CycleResult, dispatcher: MoveDispatcher) -> None:
        """Begin the moves of policies in mode `apply`; only moves that were begun are remembered."""
        applied = [move for move in made.plan.moves if move.mode == APPLY]
        earlier = len(made.memory.moved) - len(applied)
        fresh = made.memory.moved[earlier:]
        known = [each for each in made.memory.moved[:earlier] if not self._is_forgotten(each)]
        stopped_by = self._inputs.stop_reason() or (EARLIER_WAIT if dispatcher.waiting else None)
        begun = [
            (move, moved)
            for move, moved in zip(applied, fresh, strict=True)
            if stopped_by is None and dispatcher.begin(move)
        ]
        self._begun |= {move.uid: moved for move, moved in begun}
        for move, _ in begun:
            metrics.GAIN.labels("planned").observe(move.gain)
        self.memory = msgspec.structs.replace(made.memory, moved=(*known, *(moved for _, moved in begun)))
        metrics.APPLYING.set(bool(applied) and stopped_by is None)
        log.info(
            "planned",
            moves=len(made.plan.moves),
            begun=len(begun),
            in_flight=len(dispatcher),
            refused=len(made.plan.refused),
            stopped_by=stopped_by.rule if stopped_by else None,
        )


def _make(
    contents: Contents,
    policy: ReschedulerPolicy,
    memory: PlanMemory | None,
    model: SchedulerModel,
    health: ClusterHealth,
    *,
    now: float,
) -> CycleResult:
    started = time.perf_counter()
    snapshot = build(contents, now=now)
    looked = time.perf_counter()
    cycle = begin_cycle(snapshot, policy, memory, model, health)
    plan, remembered = write_plan(cycle)
    return CycleResult(cycle, plan, remembered, (looked - started, time.perf_counter() - looked))
