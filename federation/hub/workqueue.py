"""The work queue of a controller: keys to reconcile, by rank, with back-off for those that fail.

As in client-go, a key that is added while it waits is queued once, and one that is added while it is being
reconciled is reconciled again afterwards. So no two workers have the same key, and what a worker reads is
never older than the change that queued the key.
"""

import asyncio
import heapq
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import cache, partial
from typing import Annotated, Protocol

from msgspec import Meta

from federation.hub import metrics
from federation.hub.call_priority import URGENCY, Urgency
from federation.objects.names import Key
from reberth.client.lease import LeaseLost
from reberth.config.settings import Section
from reberth.runtime.faults import FAULTS
from reberth.runtime.logs import Log
from reberth.values.duration import Duration
from reberth.values.errors import ApiError, Conflict, ReberthError
from reberth.values.jitter import jittered_backoff
from reberth.values.object_error import ObjectError
from reberth.values.refusal import describe_fault

log = Log(__name__)

_REQUEUED, _SUCCESS = "requeued", "success"
_IN_A_ROW = 8
"""Keys of a queue that are reconciled within one turn of the loop, before its workers give way each time."""


_Entry = tuple[int, int, Key]
"""The rank of a key, its number in the order of arrival, and the key."""


class QueueSettings(Section, frozen=True):
    """Number of workers, and the back-off after failures."""

    workers: Annotated[int, Meta(ge=1, le=256)] = 16
    first_pause: Duration = Duration(0.1)
    longest_pause: Duration = Duration(60)


class Reconcile(Protocol):
    """Reconcile one object; return the seconds after which to reconcile it again, or None."""

    def __call__(self, key: Key, /) -> Awaitable[float | None]: ...


class WorkQueue:
    """The keys of one controller. `run` reconciles them until it is cancelled."""

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        settings: QueueSettings,
        *,
        rank: Callable[[Key], int] = lambda _: 0,
        urgency: Urgency = Urgency.WATCHING,
        lane: Callable[[Key], str] = lambda _: "",
        per_lane: int | None = None,
    ) -> None:
        """Keys of one `lane` never have more than `per_lane` workers, so that one lane leaves others some."""
        self._name = name
        self._urgency = urgency
        self._reconcile = reconcile
        self._settings = settings
        self._rank = rank
        self._lane = lane
        self._per_lane = per_lane
        self._heap: list[_Entry] = []
        self._parked: dict[str, list[_Entry]] = {}
        self._under_way: Counter[str] = Counter()
        self._waiting: set[Key] = set()
        self._busy: set[Key] = set()
        self._again: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._serial = itertools.count()
        self._queued = asyncio.Semaphore(0)
        self._count = partial(cache(metrics.RECONCILED.labels), name)
        self._in_a_row = 0

    def __len__(self) -> int:
        """Count the keys that wait or are being reconciled, without those that are delayed."""
        return len(self._waiting) + len(self._busy)

    def add(self, key: Key) -> None:
        """Queue the key for the next free worker. A smaller rank goes first."""
        if timer := self._timers.pop(key, None):
            timer.cancel()
        if key in self._busy:
            self._again.add(key)
        elif key not in self._waiting:
            self._waiting.add(key)
            self._enter((self._rank(key), next(self._serial), key))

    def add_later(self, key: Key, seconds: float) -> None:
        """Queue the key after a delay; an earlier time that is set already stays."""
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if key in self._waiting or key in self._again or (timer and timer.when() <= loop.time() + seconds):
            return
        if timer:
            timer.cancel()
        self._timers[key] = loop.call_later(seconds, self.add, key)

    def _enter(self, entry: _Entry) -> None:
        """Give the key to the next free worker, or park it until its lane has one to spare."""
        lane = self._lane(entry[2])
        if self._per_lane is not None and self._under_way[lane] >= self._per_lane:
            heapq.heappush(self._parked.setdefault(lane, []), entry)
            return
        self._under_way[lane] += 1
        heapq.heappush(self._heap, entry)
        self._queued.release()

    def _leave(self, key: Key) -> None:
        lane = self._lane(key)
        self._under_way[lane] -= 1
        if not self._under_way[lane]:
            del self._under_way[lane]
        if parked := self._parked.get(lane):
            self._enter(heapq.heappop(parked))
            if not parked:
                del self._parked[lane]

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
            await self._queued.acquire()
            _, _, key = heapq.heappop(self._heap)
            self._waiting.remove(key)
            self._busy.add(key)
            try:
                wait = await self._reconcile_one(key)
            finally:
                self._busy.remove(key)
                self._leave(key)
            self._go_on(key, wait)
            await self._give_way()

    async def _give_way(self) -> None:
        """Let others have the loop: keys that need no call would follow each other without end."""
        if not self._in_a_row:
            asyncio.get_running_loop().call_soon(self._begin_row)
        self._in_a_row += 1
        if self._in_a_row > _IN_A_ROW:
            await asyncio.sleep(0)

    def _begin_row(self) -> None:
        self._in_a_row = 0

    def _go_on(self, key: Key, wait: float | None) -> None:
        if key in self._again:
            self._again.remove(key)
            self.add(key)
        elif wait is not None:
            self.add_later(key, wait)

    async def _reconcile_one(self, key: Key) -> float | None:
        """Reconcile a key; an error delays this key alone."""
        try:
            wait = await self._reconcile(key)
        except LeaseLost:
            raise
        except ObjectError as error:
            log.warning("object is invalid", controller=self._name, key=str(key), reason=str(error))
            self._count("invalid").inc()
            return None
        except ReberthError as error:
            return self._fail(key, error)
        except Exception as error:  # noqa: BLE001 - it is about this key alone, and is logged
            subject = f"{key.namespace}/{key.name}"
            FAULTS.note(self._name, subject, f"{key.kind}: {describe_fault(error)}", error=error)
            return self._fail(key, error)
        self._failures.pop(key, None)
        self._count(_SUCCESS if wait is None else _REQUEUED).inc()
        return wait

    def _fail(self, key: Key, error: Exception) -> float:
        """Return the pause before the next try: it doubles, with jitter."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        is_conflict = isinstance(error, Conflict)
        self._count("conflict" if is_conflict else "failed").inc()
        if isinstance(error, ReberthError) and not is_conflict:
            log.warning("reconcile failed, retrying", controller=self._name, key=str(key), reason=str(error))
        return jittered_backoff(
            failures,
            first=self._settings.first_pause,
            longest=self._settings.longest_pause,
            at_least=(error.retry_after or 0.0) if isinstance(error, ApiError) else 0.0,
        )
