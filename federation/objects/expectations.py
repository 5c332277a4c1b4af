"""What was made just now: until the mirror shows it, or some seconds have passed, it is not made again."""

from collections.abc import Callable, Hashable

_LASTING = 30.0


class Expectations:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until: dict[Hashable, float] = {}

    def expect(self, what: Hashable) -> None:
        """Begin to wait for it."""
        self._until[what] = self._clock() + _LASTING

    def observed(self, what: Hashable) -> None:
        """End the wait: it has been seen, or has gone."""
        self._until.pop(what, None)

    def seconds_left(self, what: Hashable) -> float:
        """Tell for how many seconds it is still waited for; 0 is not at all."""
        left = self._until.get(what, 0.0) - self._clock()
        if left <= 0:
            self.observed(what)
        return max(0.0, left)
