"""The token bucket under every rate limit: it fills with time, up to the burst; each action takes a token."""


class TokenBucket:
    """Tokens by a clock that the caller reads. Below zero, the number is what others wait for."""

    def __init__(self, burst: int, *, now: float | None = None) -> None:
        self.tokens = float(burst)
        self._burst = float(burst)
        self._filled_at = now

    def fill(self, now: float, *, rate: float) -> None:
        """Add what has come at so many tokens a second since the last look; the first look adds nothing."""
        since = now if self._filled_at is None else self._filled_at
        self._filled_at = now
        self.tokens = min(self._burst, self.tokens + (now - since) * rate)
