"""Objects that were just created: until the cache shows them, or a timeout, they are not created again.

The controllers of Kubernetes call this expectations. A controller that reconciles again before the watch has
delivered its own creation would otherwise create the object a second time, and fail.
"""

from collections.abc import Callable, Hashable

_TIMEOUT = 30.0
"""An object that was deleted at once may never show up in the cache."""


class Expectations:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until: dict[Hashable, float] = {}

    def expect(self, what: Hashable) -> None:
        """Start to wait for the object."""
        self._until[what] = self._clock() + _TIMEOUT

    def observed(self, what: Hashable) -> None:
        """Stop waiting: the object was seen, or is gone."""
        self._until.pop(what, None)

    def seconds_left(self, what: Hashable) -> float:
        """Return the seconds for which the object is still expected; 0 if it is not."""
        left = self._until.get(what, 0.0) - self._clock()
        if left <= 0:
            self.observed(what)
        return max(0.0, left)
