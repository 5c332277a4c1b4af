"""How often the Events of bindings that wait for room tell how much room there is.

The figure changes with every report of every cluster, for each binding that waits: an Event for each change
would be most of what the hub writes.
"""

from federation.objects.names import Key
from federation.scheduling import Decision, Reason
from reberth.values.token_bucket import TokenBucket

_PAUSE = 30.0
"""Seconds between two Events of one binding."""
_RATE = 0.4
"""How many bindings a second are told of; each by an Event of its own and one of its template: 0.8 writes."""


class ShortageNews:
    """Bindings that could not be scheduled, and what was told of each."""

    def __init__(self) -> None:
        self._told: dict[Key, tuple[str, float]] = {}
        self._bucket = TokenBucket(1)

    def told(self, key: Key, decision: Decision, *, now: float) -> None:
        """Remember what was told; of a binding that was scheduled there is nothing more to tell."""
        if decision.reason is Reason.SUCCESS:
            self.forget(key)
        elif decision.steady:
            self._told[key] = decision.message, now

    def forget(self, key: Key) -> None:
        self._told.pop(key, None)

    def is_due(self, key: Key, decision: Decision, *, now: float) -> bool:
        """Tell whether the figures of a refusal are news, and may be told now."""
        if not decision.steady or decision.message == decision.steady:
            return False
        message, at = self._told.setdefault(key, (decision.message, now))
        if message == decision.message or now < at + _PAUSE:
            return False
        self._bucket.fill(now, rate=_RATE)
        if self._bucket.tokens < 1:
            return False
        self._bucket.tokens -= 1
        return True
