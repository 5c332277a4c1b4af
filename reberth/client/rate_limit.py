"""The client's own rate limit: a bucket of tokens that fills with time."""

import asyncio
from collections.abc import Callable

from reberth.runtime import metrics


class Throttle:
    """So many requests a second on average, so many at once. Waiters are served in their order."""

    def __init__(self, *, rate: float, burst: int, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst)
        self._filled_at = clock()

    async def take(self) -> None:
        """Wait for a token. Who is cancelled while waiting has used it up all the same."""
        wait = self._reserve()
        if wait > 0:
            metrics.API_RATE_LIMIT_WAIT.inc(wait)
            await asyncio.sleep(wait)

    def _reserve(self) -> float:
        """Take a token, on credit if there is none; seconds until it is there."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._rate)
        self._filled_at = now
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)
