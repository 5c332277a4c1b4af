"""What starts a cycle: the interval, or an event in the cluster that matters to a plan.

Events come in bursts: a drain changes a node and then many pods. So a cycle starts only some time after the
first event (`cycle.settle`), and some time after the last cycle (`cycle.minInterval`).
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from reberth.cluster.cache import Cache
from reberth.cluster.kinds import POD
from reberth.cluster.rows import PodRow
from rescheduler.settings import CycleSettings

START = "start"


class Trigger:
    """Wakes the cycle loop."""

    def __init__(self, settings: Callable[[], CycleSettings]) -> None:
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._fired = asyncio.Event()
        self._cause = ""
        self._last = self._loop.time()
        self.fire(START)

    def fire(self, cause: str) -> None:
        """Request a cycle; of several causes the first is reported."""
        if not self._fired.is_set():
            self._cause = cause
            self._fired.set()

    async def sleep(self) -> str:
        """Sleep until a cycle is due, and give its cause."""
        cause = "interval"
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._last + self._settings().interval):
                await self._fired.wait()
                cause = self._cause
                await self._settle()
        self._fired.clear()
        self._last = self._loop.time()
        return cause

    async def _settle(self) -> None:
        if self._cause != START:
            settings = self._settings()
            earliest = self._last + settings.min_interval - self._loop.time()
            await asyncio.sleep(max(settings.settle, earliest))


class ClusterTriggers:
    """Listens to the cache: fires for nodes that change, and for pods that have been pending for too long."""

    def __init__(
        self,
        trigger: Trigger,
        cache: Cache,
        settings: Callable[[], CycleSettings],
        *,
        on_binding: Callable[[PodRow, str], None],
    ) -> None:
        self._trigger = trigger
        self._cache = cache
        self._settings = settings
        self._on_binding = on_binding
        self._loop = asyncio.get_running_loop()

    def node_changed(self) -> None:
        self._trigger.fire("node")

    def pod_waits(self, pod: PodRow) -> None:
        """Look at a pending pod again later: most are bound within moments, and need no new plan."""
        self._loop.call_later(self._settings().pending, self._check_pending, pod.uid)

    def pod_binds(self, pod: PodRow, node: str) -> None:
        self._on_binding(pod, node)

    def _check_pending(self, uid: str) -> None:
        pod = self._cache.of(POD).by_uid(uid)
        if pod and pod.node is None and not pod.is_terminating and not pod.is_finished:
            self._trigger.fire("pending")
