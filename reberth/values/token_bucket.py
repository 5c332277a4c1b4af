"""The token bucket of every rate limit: it fills with time, up to the burst; each action takes a token."""


class TokenBucket:
    """Tokens, by the clock of the caller. A negative number is the tokens that others wait for."""

    def __init__(self, burst: int, *, now: float | None = None) -> None:
        self.tokens = float(burst)
        self._burst = float(burst)
        self._filled_at = now

    def fill(self, now: float, *, rate: float) -> None:
        """Add the tokens since the last call at this rate per second; the first call adds none."""
        since = now if self._filled_at is None else self._filled_at
        self._filled_at = now
        self.tokens = min(self._burst, self.tokens + (now - since) * rate)
