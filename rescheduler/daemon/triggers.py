"""What begins a cycle: the time, or an event that matters.

Events come in bursts. So after the first one the others are waited for, and no event begins a cycle right
after the last one.
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
    """Wakes one sleeper."""

    def __init__(self, settings: Callable[[], CycleSettings]) -> None:
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._bell = asyncio.Event()
        self._cause = ""
        self._last = self._loop.time()
        self.fire(START)

    def fire(self, cause: str) -> None:
        """Say that there is need for a cycle; of many causes the first is named."""
        if not self._bell.is_set():
            self._cause = cause
            self._bell.set()

    async def sleep(self) -> str:
        """Sleep until a cycle is due, and tell what woke."""
        cause = "interval"
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._last + self._settings().interval):
                await self._bell.wait()
                cause = self._cause
                await self._settle()
        self._bell.clear()
        self._last = self._loop.time()
        return cause

    async def _settle(self) -> None:
        if self._cause != START:
            settings = self._settings()
            rested = self._last + settings.least_pause - self._loop.time()
            await asyncio.sleep(max(settings.settle, rested))


class PendingPodTrigger:
    """Rings for a pod that has been waiting for its node for too long."""

    def __init__(self, trigger: Trigger, cache: Cache, settings: Callable[[], CycleSettings]) -> None:
        self._trigger = trigger
        self._cache = cache
        self._settings = settings
        self._loop = asyncio.get_running_loop()

    def look_after(self, pod: PodRow) -> None:
        self._loop.call_later(self._settings().pending, self._look, pod.uid)

    def _look(self, uid: str) -> None:
        pod = self._cache.of(POD).by_uid(uid)
        if pod and pod.node is None and not pod.is_terminating and not pod.is_finished:
            self._trigger.fire("pending")
