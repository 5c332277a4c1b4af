"""What the leader runs: first recovery of the earlier leader's moves, then cycles until the lease is lost."""

import asyncio
from collections.abc import Iterator
from typing import NoReturn

from reberth.client.lease import Leadership
from reberth.cluster.snapshot import Snapshot
from reberth.runtime.logs import Log
from reberth.runtime.worker_thread import WorkerThread
from rescheduler.budgets.brakes import ClusterHealth
from rescheduler.daemon.drift_monitor import DriftMonitor
from rescheduler.daemon.loop import CycleInputs, CycleLoop
from rescheduler.daemon.move_requests import MoveRequestReceiver
from rescheduler.daemon.note_sweeper import NoteSweeper
from rescheduler.daemon.resources import DaemonResources
from rescheduler.daemon.stop_conditions import StopConditions
from rescheduler.daemon.triggers import ClusterTriggers, Trigger
from rescheduler.execution.context import make_execution_context
from rescheduler.execution.dispatcher import MoveDispatcher, MoveEnd
from rescheduler.execution.store import MoveStore
from rescheduler.model.plan import PlannedMove
from rescheduler.model.plan_memory import PlanMemory
from rescheduler.model.refusal_memory import RefusalMemory
from rescheduler.moves.revalidation import Reasons
from rescheduler.moves.try_budget import PERIOD
from rescheduler.telemetry import metrics

log = Log(__name__)


class Leader:
    """Wires the parts of one leadership together, and runs them."""

    def __init__(
        self, resources: DaemonResources, leadership: Leadership, *, memory: PlanMemory | None
    ) -> None:
        self._resources = resources
        self._worker = WorkerThread()
        self.trigger = Trigger(lambda: resources.settings().cycle)
        self._drift_monitor = DriftMonitor(
            resources.cache,
            model=lambda: resources.forecast.model,
            settings=lambda: resources.settings().drift,
            clock=resources.clock,
            offload=self._worker,
        )
        self._stops = StopConditions(resources, self._drift_monitor.find_drift)
        self._context = make_execution_context(
            resources,
            MoveStore(resources.api, leadership, resources.cache),
            tell=log.debug,
            offload=self._worker,
            stop_reason=self._stops.stop_reason,
            find_reasons=self._find_reasons,
        )
        self.cycle_loop = CycleLoop(self._make_inputs(), memory)
        self._dispatcher: MoveDispatcher | None = None

    async def lead(self) -> NoReturn:
        """Lead until cancelled. Raises a group with LeaseLost in it if the lease is lost."""
        async with asyncio.TaskGroup() as group:
            dispatcher = await self._take_over(group)
            group.create_task(self._drift_monitor.run())
            moves = dispatcher.executor.moves
            sweeper = NoteSweeper(self._context, lambda: moves.held | moves.noted)
            group.create_task(sweeper.run())
            receiver = self._receive_with(dispatcher)
            group.create_task(receiver.run())
            try:
                await self.cycle_loop.run(self.trigger, dispatcher)
            finally:
                self._resources.cache.listener = self._resources.pause.listener = None
        raise AssertionError("cycles do not end")

    async def lead_once(self) -> bool:
        """Run one cycle, wait for its moves, and tell whether every one of them ended well."""
        async with asyncio.TaskGroup() as group:
            dispatcher = await self._take_over(group)
            await self.cycle_loop.cycle("start", dispatcher)
            await dispatcher.finished()
            self._resources.cache.listener = None
        return self.cycle_loop.last is not None and dispatcher.is_well

    def list_warnings(self) -> Iterator[str]:
        """Give what an operator should know beside the warnings of the plan itself."""
        yield from self._resources.list_warnings()
        drift = self._drift_monitor.find_drift()
        if drift:
            yield "; ".join([f"{drift.rule}: {drift.reason}", *self._resources.forecast.list_remarks()])

    async def _take_over(self, group: asyncio.TaskGroup) -> MoveDispatcher:
        resources = self._resources
        self._dispatcher = dispatcher = MoveDispatcher(self._context, group, on_end=self._end_move)
        metrics.IN_FLIGHT.set_function(lambda: len(dispatcher))
        await dispatcher.resume()
        resources.cache.listener = ClusterTriggers(
            self.trigger,
            resources.cache,
            lambda: resources.settings().cycle,
            on_binding=self._drift_monitor.note,
        )
        return dispatcher

    def _receive_with(self, dispatcher: MoveDispatcher) -> MoveRequestReceiver:
        pause = self._resources.pause
        receiver = MoveRequestReceiver(
            self._context, dispatcher, pause.lease, identity=self._resources.identity
        )
        pause.listener = receiver.take_lease
        return receiver

    def _end_move(self, planned: PlannedMove | None, end: MoveEnd) -> None:
        if planned and end is MoveEnd.EVICTED:
            self.cycle_loop.settle(planned)
        elif planned:
            self.cycle_loop.forget(planned)
        if self._dispatcher is None or self._dispatcher.waiting or end is MoveEnd.WAITING:
            return
        self.trigger.fire("moves")
        if end is MoveEnd.REFUSED:  # then there is a try again
            asyncio.get_running_loop().call_later(PERIOD, self.trigger.fire, "moves")

    def _find_reasons(self, snapshot: Snapshot) -> Reasons:
        resources = self._resources
        return Reasons(
            snapshot, self.cycle_loop.memory, policy=resources.policy(), model=resources.forecast.model
        )

    def _make_inputs(self) -> CycleInputs:
        resources = self._resources
        return CycleInputs(
            contents=resources.cache.contents,
            policy=resources.policy,
            model=lambda: resources.forecast.model,
            health=self._describe_health,
            refusals=self._read_refusals,
            clock=resources.clock,
            warnings=self.list_warnings,
            offload=self._worker,
            stop_reason=self._stops.stop_reason,
        )

    def _read_refusals(self) -> RefusalMemory:
        return RefusalMemory() if self._dispatcher is None else self._dispatcher.read_refusals()

    def _describe_health(self) -> ClusterHealth:
        drawn = self._resources.settings().extender != "none"
        return ClusterHealth(self._resources.find_cache_ages(), self._stops.list_brakes(), drawn=drawn)
