"""For how long something holds without a break, by the clock of the one who looks: a restart begins anew."""

import math

from federation.objects.names import Key

_EXACT = 0.001  # sums of times are not exact


class Steadiness:
    """Since when what was looked at holds, by workload.

    A copy whose containers end again and again is available for a moment at each start.
    """

    def __init__(self) -> None:
        self._since: dict[Key, float] = {}

    def observe(self, key: Key, *, holds: bool, least: float, now: float) -> float:
        """Return for how many seconds more it has to hold: 0 if it has lasted, inf if it does not hold."""
        if not holds:
            self.forget(key)
            return math.inf
        since = min(self._since.get(key, now), now)  # a clock may be set back
        self._since[key] = since
        rest = since + least - now
        return rest if rest > _EXACT else 0.0

    def forget(self, key: Key) -> None:
        self._since.pop(key, None)
