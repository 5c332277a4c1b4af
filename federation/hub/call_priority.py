"""Priorities of calls to an API server, within one rate limit: urgent calls go first.

Writes that workloads need to run come before writes that only report their status. A call that is not urgent
waits while there are urgent ones, but not longer than 30 s: then it takes its turn, so that none starves.
"""

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from enum import IntEnum
from typing import NamedTuple

from reberth.runtime import metrics
from reberth.values.token_bucket import TokenBucket


class Urgency(IntEnum):
    """The priority of a task's calls; a smaller value goes first."""

    WATCHING = 0
    SCHEDULING = 1
    CLAIMING = 2
    PLACING = 3
    REPORTING = 4
    SUMMING_UP = 5


URGENCY: ContextVar[Urgency] = ContextVar("urgency", default=Urgency.WATCHING)
"""The urgency of the calls in a task; set once, at its start."""

_PATIENCE = 30.0
"""Seconds after which a call takes its turn, whatever else waits. Chosen, not measured."""
_AT_ONCE = 16
"""Calls in flight. If the server is slow, more of them would only keep urgent calls waiting there."""


class _Waiter(NamedTuple):
    urgency: Urgency
    number: int
    since: float
    turn: asyncio.Future[None]


class CallPriority:
    """Limits calls by an average rate, a burst, and a number in flight; waiting calls go by urgency."""

    def __init__(
        self,
        *,
        rate: float,
        burst: int,
        clock: Callable[[], float],
        at_once: int = _AT_ONCE,
        patience: float = _PATIENCE,
    ) -> None:
        self._rate = rate
        self._clock = clock
        self._at_once = at_once
        self._patience = patience
        self._bucket = TokenBucket(burst, now=clock())
        self._under_way = 0
        self._urgent: list[_Waiter] = []
        self._oldest: deque[_Waiter] = deque()
        self._numbers = itertools.count()
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> None:
        """Wait for a turn, and hold it in the context. A task that is cancelled while waiting takes none."""
        await self._take()

    async def __aexit__(self, *_: object) -> None:
        self._give_back(tokens=0)

    async def wait_for_turn(self) -> None:
        """Wait until a turn would be free: what is read after that is not stale when it is sent."""
        await self._take()
        self._give_back(tokens=1)

    async def _take(self) -> None:
        since = self._clock()
        if self._take_at_once(since):
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiter = _Waiter(URGENCY.get(), next(self._numbers), since, turn)
        heapq.heappush(self._urgent, waiter)
        self._oldest.append(waiter)
        self._serve()
        if turn.done():
            return
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._give_back(tokens=1)
            raise
        metrics.API_RATE_LIMIT_WAIT.inc(self._clock() - since)

    def _take_at_once(self, now: float) -> bool:
        """Take a turn that nobody waits for, if there is one: it is most often so."""
        if self._find_oldest():
            return False
        self._bucket.fill(now, rate=self._rate)
        is_free = self._has_turn()
        if is_free:
            self._use_turn()
        return is_free

    def _has_turn(self) -> bool:
        return self._bucket.tokens >= 1 and self._under_way < self._at_once

    def _use_turn(self) -> None:
        self._bucket.tokens -= 1
        self._under_way += 1

    def _give_back(self, *, tokens: int) -> None:
        self._bucket.tokens += tokens
        self._under_way -= 1
        if self._find_oldest():
            self._serve()

    def _serve(self) -> None:
        """Give turns while there are tokens; try again when the next token is due."""
        self._bucket.fill(self._clock(), rate=self._rate)
        while self._has_turn() and (waiter := self._next()):
            self._use_turn()
            waiter.turn.set_result(None)
        if self._timer is None and self._bucket.tokens < 1 and self._find_oldest():
            pause = (1 - self._bucket.tokens) / self._rate
            self._timer = asyncio.get_running_loop().call_later(pause, self._look_again)

    def _look_again(self) -> None:
        self._timer = None
        self._serve()

    def _next(self) -> _Waiter | None:
        oldest = self._find_oldest()
        if oldest and self._clock() - oldest.since >= self._patience:
            return oldest
        while self._urgent:
            waiter = heapq.heappop(self._urgent)
            if not waiter.turn.done():
                return waiter
        return None

    def _find_oldest(self) -> _Waiter | None:
        while self._oldest and self._oldest[0].turn.done():
            self._oldest.popleft()
        return self._oldest[0] if self._oldest else None
