"""The client's own rate limit, as client-go has one: a token bucket."""

import asyncio
from collections.abc import Callable

from reberth.runtime import metrics
from reberth.values.token_bucket import TokenBucket


class RateLimiter:
    """Allows this many requests a second on average, and a burst. Waiters are served in order."""

    def __init__(self, *, rate: float, burst: int, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._clock = clock
        self._bucket = TokenBucket(burst, now=clock())

    async def take(self) -> None:
        """Wait for a token. A caller that is cancelled while it waits has still used it up."""
        wait = self._reserve()
        if wait > 0:
            metrics.API_RATE_LIMIT_WAIT.inc(wait)
            await asyncio.sleep(wait)

    def _reserve(self) -> float:
        """Take a token, on credit if there is none; give the seconds until it is available."""
        self._bucket.fill(self._clock(), rate=self._rate)
        self._bucket.tokens -= 1
        return max(0.0, -self._bucket.tokens / self._rate)
