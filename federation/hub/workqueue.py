"""Keys that wait to be settled: each by one worker at a time, the most urgent first, the failed ones later.

A key that is added while it waits is there once. One that is added while it is being settled is settled again
afterwards. So what a worker reads is never older than the last change that it was called for.
"""

import asyncio
import heapq
import itertools
from collections.abc import Awaitable, Callable
from typing import Annotated, Protocol

from msgspec import Meta

from federation.hub import metrics
from federation.hub.call_priority import URGENCY, Urgency
from federation.objects.names import Key
from reberth.client.lease import LeaseLost
from reberth.config.settings import Section
from reberth.runtime.logs import Log
from reberth.values.duration import Duration
from reberth.values.errors import ApiError, Conflict, ReberthError
from reberth.values.jitter import jittered_backoff
from reberth.values.object_error import ObjectError

log = Log(__name__)

_REQUEUED, _SUCCESS = "requeued", "success"


class QueueSettings(Section, frozen=True):
    """How much is done at once, and how patiently what fails is tried again."""

    workers: Annotated[int, Meta(ge=1, le=256)] = 16
    first_pause: Duration = Duration(0.1)
    longest_pause: Duration = Duration(60)


class Reconcile(Protocol):
    """Bring one object to where it is to be; the seconds after which to look again, or None."""

    def __call__(self, key: Key, /) -> Awaitable[float | None]: ...


class WorkQueue:
    """The keys of one controller. `run` works on them until it is cancelled."""

    def __init__(
        self,
        name: str,
        settle: Reconcile,
        settings: QueueSettings,
        *,
        rank: Callable[[Key], int] = lambda _: 0,
        urgency: Urgency = Urgency.WATCHING,
    ) -> None:
        self._name = name
        self._urgency = urgency
        self._reconcile = settle
        self._settings = settings
        self._rank = rank
        self._heap: list[tuple[int, int, Key]] = []
        self._waiting: set[Key] = set()
        self._busy: set[Key] = set()
        self._again: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._serial = itertools.count()
        self._bell = asyncio.Semaphore(0)

    def __len__(self) -> int:
        """Count the keys that wait or are being settled; those that wait for a time are not among them."""
        return len(self._waiting) + len(self._busy)

    def add(self, key: Key) -> None:
        """Have the key settled as soon as a worker is free. The smaller its rank, the sooner."""
        if timer := self._timers.pop(key, None):
            timer.cancel()
        if key in self._busy:
            self._again.add(key)
        elif key not in self._waiting:
            self._waiting.add(key)
            heapq.heappush(self._heap, (self._rank(key), next(self._serial), key))
            self._bell.release()

    def add_later(self, key: Key, seconds: float) -> None:
        """Have the key settled after a time at the latest; what was to be sooner stays so."""
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if key in self._waiting or key in self._again or (timer and timer.when() <= loop.time() + seconds):
            return
        if timer:
            timer.cancel()
        self._timers[key] = loop.call_later(seconds, self.add, key)

    async def run(self) -> None:
        metrics.QUEUE_DEPTH.labels(self._name).set_function(lambda: len(self))
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._settings.workers):
                    group.create_task(self._work())
        finally:
            for timer in self._timers.values():
                timer.cancel()

    async def _work(self) -> None:
        URGENCY.set(self._urgency)
        while True:
            await self._bell.acquire()
            _, _, key = heapq.heappop(self._heap)
            self._waiting.remove(key)
            self._busy.add(key)
            try:
                wait = await self._reconcile_one(key)
            finally:
                self._busy.remove(key)
            self._go_on(key, wait)

    def _go_on(self, key: Key, wait: float | None) -> None:
        if key in self._again:
            self._again.remove(key)
            self.add(key)
        elif wait is not None:
            self.add_later(key, wait)

    async def _reconcile_one(self, key: Key) -> float | None:
        """Settle it; a fault of one key is no reason for the others to wait."""
        try:
            wait = await self._reconcile(key)
        except LeaseLost:
            raise
        except ObjectError as error:
            log.warning("object is invalid", controller=self._name, key=str(key), reason=str(error))
            metrics.RECONCILED.labels(self._name, "invalid").inc()
            return None
        except ReberthError as error:
            return self._fail(key, error)
        except Exception as error:
            log.exception("reconcile failed", controller=self._name, key=str(key))
            return self._fail(key, error)
        self._failures.pop(key, None)
        metrics.RECONCILED.labels(self._name, _SUCCESS if wait is None else _REQUEUED).inc()
        return wait

    def _fail(self, key: Key, error: Exception) -> float:
        """Give the pause before the next try; it doubles, and no two keys try in step."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        is_conflict = isinstance(error, Conflict)
        metrics.RECONCILED.labels(self._name, "conflict" if is_conflict else "failed").inc()
        if isinstance(error, ReberthError) and not is_conflict:
            log.warning("reconcile failed, retrying", controller=self._name, key=str(key), reason=str(error))
        return jittered_backoff(
            failures,
            first=self._settings.first_pause,
            longest=self._settings.longest_pause,
            at_least=(error.retry_after or 0.0) if isinstance(error, ApiError) else 0.0,
        )
