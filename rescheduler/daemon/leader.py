"""One term of leadership: first what an earlier leader has left, then cycles until the lease is lost."""

import asyncio
import time
from collections.abc import Iterator
from typing import NoReturn

from reberth.client.lease import Leadership
from reberth.cluster.rows import PodRow
from reberth.runtime.logs import Log
from reberth.values.refusal import Refused
from rescheduler.daemon.drift_monitor import Comparer
from rescheduler.daemon.handover import Receiver
from rescheduler.daemon.loop import Cycler, Scene
from rescheduler.daemon.note_expiry import tidy_notes
from rescheduler.daemon.resources import Outfit
from rescheduler.daemon.triggers import PendingWatch, Waker
from rescheduler.execution.context import Equipment
from rescheduler.execution.dispatcher import Carrier
from rescheduler.execution.store import Store
from rescheduler.execution.worker_thread import Mind
from rescheduler.model.plan import PlannedMove
from rescheduler.model.plan_memory import PlanMemory
from rescheduler.moves.lifecycle import MANUAL
from rescheduler.planning.cycle import World
from rescheduler.telemetry import metrics

log = Log(__name__)


class Term:
    """What a leader does; it also listens to the mirror."""

    def __init__(self, outfit: Outfit, leadership: Leadership, *, memory: PlanMemory | None) -> None:
        self._outfit = outfit
        self._mind = Mind()
        self.waker = Waker(lambda: outfit.settings().cycle)
        self.comparer = Comparer(
            outfit.cache,
            world=outfit.describe_world,
            settings=lambda: outfit.settings().drift,
            clock=time.time,
            think=self._mind,
        )
        self.cycler = Cycler(self._describe_scene(), memory)
        self._pending = PendingWatch(self.waker, outfit.cache, lambda: outfit.settings().cycle)
        self._equipment = self._equip(leadership)
        self._carrier: Carrier | None = None

    async def lead(self) -> NoReturn:
        """Lead until cancelled. Raises a group with LeaseLost in it where a write was kept back."""
        async with asyncio.TaskGroup() as group:
            carrier = await self._take_over(group)
            group.create_task(self.comparer.compare_for_ever())
            group.create_task(tidy_notes(self._equipment))
            receiver = self._receive_with(carrier)
            group.create_task(receiver.receive_for_ever())
            try:
                await self.cycler.cycle_for_ever(self.waker, carrier)
            finally:
                self._outfit.cache.listener = self._outfit.pause.listener = None
        raise AssertionError("cycles do not end")

    async def lead_once(self) -> bool:
        """Make one cycle and its moves; tells whether every one of them ended well."""
        async with asyncio.TaskGroup() as group:
            carrier = await self._take_over(group)
            await self.cycler.cycle("start", carrier)
            await carrier.finished()
            self._outfit.cache.listener = None
        return self.cycler.last is not None and carrier.is_well

    def node_changed(self) -> None:
        self.waker.ring("node")

    def pod_waits(self, pod: PodRow) -> None:
        self._pending.look_after(pod)

    def pod_binds(self, pod: PodRow, node: str) -> None:
        self.comparer.note(pod, node)

    def list_warnings(self) -> Iterator[str]:
        """Say what people should know beside what the plan says by itself."""
        yield from self._outfit.list_warnings()
        drift = self.comparer.find_drift()
        if drift:
            yield f"{drift.rule}: {drift.reason}"

    async def _take_over(self, group: asyncio.TaskGroup) -> Carrier:
        self._carrier = carrier = Carrier(self._equipment, group, on_end=self._hear_end)
        metrics.IN_FLIGHT.set_function(lambda: len(carrier))
        await carrier.resume()
        self._outfit.cache.listener = self
        return carrier

    def _receive_with(self, carrier: Carrier) -> Receiver:
        pause = self._outfit.pause
        receiver = Receiver(self._equipment, carrier, pause.lease, identity=self._outfit.identity)
        pause.listener = receiver.look
        return receiver

    def _hear_end(self, planned: PlannedMove | None, evicted: bool) -> None:  # noqa: FBT001 - it is a fact, not a flag
        if planned and evicted:
            self.cycler.settle(planned)
        elif planned:
            self.cycler.forget(planned)
        if self._carrier and not self._carrier.waiting:
            self.waker.ring("moves")

    def _describe_scene(self) -> Scene:
        outfit = self._outfit
        return Scene(
            contents=outfit.cache.contents,
            policy=outfit.policy,
            world=self._describe_world,
            clock=time.time,
            warnings=self.list_warnings,
            think=self._mind,
            halt=self._halt,
        )

    def _describe_world(self) -> World:
        landings = tuple(self._carrier.landings) if self._carrier else ()
        return self._outfit.describe_world(landings=landings, brakes=self._list_brakes())

    def _list_brakes(self) -> tuple[Refused, ...]:
        """Where landings are promised, what breaks the promise stops all moves."""
        outfit = self._outfit
        unread = outfit.find_unread()
        if outfit.settings().extender != "required":
            return (unread,) if unread else ()
        return tuple(filter(None, (unread, outfit.reach.refused, self.comparer.find_drift())))

    def _halt(self, policy: str = "") -> Refused | None:
        """What a person asks for goes before mode and brakes of the plan, but not before the pause."""
        outfit = self._outfit
        if outfit.pause.refused or policy == MANUAL:
            return outfit.pause.refused
        return outfit.policy().find_stop() or next(iter(self._list_brakes()), None)

    def _equip(self, leadership: Leadership) -> Equipment:
        outfit = self._outfit
        return Equipment(
            outfit.api,
            Store(outfit.api, leadership),
            outfit.mirror,
            outfit.asker,
            outfit.recorder,
            settings=outfit.settings,
            policy=outfit.policy,
            clock=time.time,
            tell=log.debug,
            forecast=outfit.foresight,
            think=self._mind,
            halt=self._halt,
        )
