"""When a script that takes too much is tried again, and what others may take meanwhile.

A script that exceeds its limits pauses, longer each time. All such runs together take a tenth of the time.
Until that is so again, a script that never had a result waits, and the others have a tenth of their limits;
one that needs more than these waits too.
"""

from collections.abc import Hashable
from typing import NamedTuple

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0
_SHARE = 10


class _Pause(NamedTuple):
    seconds: float
    until: float


class ScriptPauses:
    def __init__(self) -> None:
        self._pauses: dict[Hashable, _Pause] = {}
        self._proven: set[Hashable] = set()
        self._crowded_until = 0.0

    def is_crowded(self, now: float) -> bool:
        """Tell whether runs that exceeded their limits took more than their share of the time."""
        return now < self._crowded_until

    def find_wait(self, script: Hashable, now: float) -> float:
        """Return the seconds until a script may run; 0 if it may now."""
        if pause := self._pauses.get(script):
            return max(0.0, pause.until - now, self._crowded_until - now)
        return 0.0 if script in self._proven else max(0.0, self._crowded_until - now)

    def note_result(self, script: Hashable) -> None:
        self._proven.add(script)
        self._pauses.pop(script, None)

    def note_small_excess(self, script: Hashable) -> None:
        """Note that a script needs more than it may take while it is crowded; that is no fault of its own."""
        self._proven.discard(script)

    def note_excess(self, script: Hashable, *, now: float, took: float) -> None:
        had = self._pauses.get(script)
        seconds = min(had.seconds * 2, LONGEST_PAUSE) if had else FIRST_PAUSE
        self._pauses[script] = _Pause(seconds, now + seconds)
        self._proven.discard(script)
        self._crowded_until = max(self._crowded_until, now) + took * (_SHARE - 1)

    def forget(self, script: Hashable) -> None:
        self._pauses.pop(script, None)
        self._proven.discard(script)
