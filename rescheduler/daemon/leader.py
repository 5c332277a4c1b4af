"""One term of leadership: first what an earlier leader has left, then cycles until the lease is lost."""

import asyncio
import time
from collections.abc import Iterator
from typing import NoReturn

from reberth.client.lease import Leadership
from reberth.cluster.rows import PodRow
from reberth.runtime.logs import Log
from reberth.values.refusal import Refused
from rescheduler.budgets.brakes import ClusterHealth
from rescheduler.daemon.drift_monitor import DriftMonitor
from rescheduler.daemon.handover import HandoverReceiver
from rescheduler.daemon.loop import CycleInputs, CycleLoop
from rescheduler.daemon.note_expiry import remove_expired_notes
from rescheduler.daemon.resources import DaemonResources
from rescheduler.daemon.triggers import PendingPodTrigger, Trigger
from rescheduler.execution.context import ExecutionContext, make_execution_context
from rescheduler.execution.dispatcher import MoveDispatcher
from rescheduler.execution.store import MoveStore
from rescheduler.execution.worker_thread import WorkerThread
from rescheduler.model.plan import PlannedMove
from rescheduler.model.plan_memory import PlanMemory
from rescheduler.moves.lifecycle import MANUAL
from rescheduler.telemetry import metrics

log = Log(__name__)


class Leader:
    """What a leader does; it also listens to the mirror."""

    def __init__(
        self, resources: DaemonResources, leadership: Leadership, *, memory: PlanMemory | None
    ) -> None:
        self._resources = resources
        self._worker = WorkerThread()
        self.trigger = Trigger(lambda: resources.settings().cycle)
        self.drift_monitor = DriftMonitor(
            resources.cache,
            model=resources.forecast.model,
            settings=lambda: resources.settings().drift,
            clock=time.time,
            offload=self._worker,
        )
        self.cycle_loop = CycleLoop(self._make_inputs(), memory)
        self._pending = PendingPodTrigger(self.trigger, resources.cache, lambda: resources.settings().cycle)
        self._context = self._equip(leadership)
        self._dispatcher: MoveDispatcher | None = None

    async def lead(self) -> NoReturn:
        """Lead until cancelled. Raises a group with LeaseLost in it where a write was kept back."""
        async with asyncio.TaskGroup() as group:
            dispatcher = await self._take_over(group)
            group.create_task(self.drift_monitor.run())
            group.create_task(remove_expired_notes(self._context))
            receiver = self._receive_with(dispatcher)
            group.create_task(receiver.receive_for_ever())
            try:
                await self.cycle_loop.cycle_for_ever(self.trigger, dispatcher)
            finally:
                self._resources.cache.listener = self._resources.pause.listener = None
        raise AssertionError("cycles do not end")

    async def lead_once(self) -> bool:
        """Make one cycle and its moves; tells whether every one of them ended well."""
        async with asyncio.TaskGroup() as group:
            dispatcher = await self._take_over(group)
            await self.cycle_loop.cycle("start", dispatcher)
            await dispatcher.finished()
            self._resources.cache.listener = None
        return self.cycle_loop.last is not None and dispatcher.is_well

    def node_changed(self) -> None:
        self.trigger.fire("node")

    def pod_waits(self, pod: PodRow) -> None:
        self._pending.look_after(pod)

    def pod_binds(self, pod: PodRow, node: str) -> None:
        self.drift_monitor.note(pod, node)

    def list_warnings(self) -> Iterator[str]:
        """Say what people should know beside what the plan says by itself."""
        yield from self._resources.list_warnings()
        drift = self.drift_monitor.find_drift()
        if drift:
            yield f"{drift.rule}: {drift.reason}"

    async def _take_over(self, group: asyncio.TaskGroup) -> MoveDispatcher:
        self._dispatcher = dispatcher = MoveDispatcher(self._context, group, on_end=self._hear_end)
        metrics.IN_FLIGHT.set_function(lambda: len(dispatcher))
        await dispatcher.resume()
        self._resources.cache.listener = self
        return dispatcher

    def _receive_with(self, dispatcher: MoveDispatcher) -> HandoverReceiver:
        pause = self._resources.pause
        receiver = HandoverReceiver(self._context, dispatcher, pause.lease, identity=self._resources.identity)
        pause.listener = receiver.look
        return receiver

    def _hear_end(self, planned: PlannedMove | None, evicted: bool) -> None:  # noqa: FBT001 - it is a fact, not a flag
        if planned and evicted:
            self.cycle_loop.settle(planned)
        elif planned:
            self.cycle_loop.forget(planned)
        if self._dispatcher and not self._dispatcher.waiting:
            self.trigger.fire("moves")

    def _make_inputs(self) -> CycleInputs:
        resources = self._resources
        return CycleInputs(
            contents=resources.cache.contents,
            policy=resources.policy,
            model=resources.forecast.model,
            health=self._describe_health,
            clock=time.time,
            warnings=self.list_warnings,
            offload=self._worker,
            stop_reason=self._stop_reason,
        )

    def _describe_health(self) -> ClusterHealth:
        landings = tuple(self._dispatcher.landings) if self._dispatcher else ()
        return ClusterHealth(self._resources.find_ages(), landings, self._list_brakes())

    def _list_brakes(self) -> tuple[Refused, ...]:
        """Where landings are promised, what breaks the promise stops all moves."""
        resources = self._resources
        unread = resources.find_unread()
        if resources.settings().extender != "required":
            return (unread,) if unread else ()
        return tuple(
            filter(None, (unread, resources.extender_health.refused, self.drift_monitor.find_drift()))
        )

    def _stop_reason(self, policy: str = "") -> Refused | None:
        """What a person asks for goes before mode and brakes of the plan, but not before the pause."""
        resources = self._resources
        if resources.pause.refused or policy == MANUAL:
            return resources.pause.refused
        return resources.policy().find_stop() or next(iter(self._list_brakes()), None)

    def _equip(self, leadership: Leadership) -> ExecutionContext:
        resources = self._resources
        return make_execution_context(
            resources,
            MoveStore(resources.api, leadership),
            tell=log.debug,
            offload=self._worker,
            stop_reason=self._stop_reason,
        )
