"""Objects that somebody changes back as soon as they are written: the pauses before the next write double.

Two writers that undo each other would otherwise write as fast as both can, for ever.
"""

from collections.abc import Hashable

_FREE = 5
"""Writes before the first pause: a person who tries things out is no contest."""
_LONGEST = 300.0
_CALM = 2 * _LONGEST
"""Seconds without such a write after which the contest is over."""


class Contests:
    """What was written again although we had nothing new to write, how often, and when last."""

    def __init__(self) -> None:
        self._rounds: dict[Hashable, tuple[int, float]] = {}

    def count(self, subject: Hashable, *, now: float) -> None:
        """Count one more write that only put back what somebody had changed."""
        rounds, _ = self._find(subject, now)
        self._rounds[subject] = rounds + 1, now

    def forget(self, subject: Hashable) -> None:
        self._rounds.pop(subject, None)

    def seconds_left(self, subject: Hashable, *, now: float) -> float:
        """Return how long to wait before the next write that only puts something back."""
        rounds, last = self._find(subject, now)
        return max(0.0, last + min(_LONGEST, 2.0 ** (rounds - _FREE)) - now) if rounds >= _FREE else 0.0

    def seconds_to_calm(self, subject: Hashable, *, now: float) -> float:
        """Return when the contest will be over if nothing more happens; 0 if there is none."""
        rounds, last = self._find(subject, now)
        return last + _CALM - now if rounds >= _FREE else 0.0

    def _find(self, subject: Hashable, now: float) -> tuple[int, float]:
        rounds, last = self._rounds.get(subject, (0, now))
        if now < last + _CALM:
            return rounds, last
        self.forget(subject)
        return 0, now
