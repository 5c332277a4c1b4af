"""What a leader knows of each move that has not ended, in one record for each move.

It tells, for example, whether an eviction may be on its way; what must survive the process is stored in the
cluster. A record goes when its move ends. If an error interrupted a move, nobody here may ever hear of its
end: the history may be gone, or was never written. So each resume drops the records of such moves.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class TrackedMove:
    """What is known of one move."""

    is_held: bool = False
    """This process is working on it."""
    keeps_note: bool = False
    """Its note must not be pushed out by others."""
    is_begun: bool = False
    """This process has begun it: no earlier leader has sent anything for it."""
    may_evict: bool = False
    """This process may have sent its eviction."""
    is_evicted: bool = False
    """Its pod is known to be evicted."""
    interrupted_at: float = -math.inf
    """When an error or a cancellation ended the work on it, if its eviction may have been sent by then."""


class MoveTracker:
    """The moves of one term.

    `clock` is that of the event loop; a request may be on its way for `patience`.
    """

    def __init__(self, clock: Callable[[], float], *, patience: Callable[[], float]) -> None:
        self._clock = clock
        self._patience = patience
        self._took_over = clock()
        self._moves: dict[str, TrackedMove] = {}

    def __len__(self) -> int:
        return len(self._moves)

    @property
    def held(self) -> frozenset[str]:
        return frozenset(move for move, known in self._moves.items() if known.is_held)

    @property
    def noted(self) -> frozenset[str]:
        return frozenset(move for move, known in self._moves.items() if known.keeps_note)

    @property
    def settled(self) -> frozenset[str]:
        """Moves of which no eviction can be on its way unknown to this process."""
        return frozenset(
            move
            for move, known in self._moves.items()
            if known.is_evicted or (known.is_begun and not self.is_in_doubt(move))
        )

    def is_held(self, move: str) -> bool:
        known = self._moves.get(move)
        return known is not None and known.is_held

    def track(self, move: str) -> TrackedMove:
        """Give the record of a move that has not ended."""
        return self._moves.setdefault(move, TrackedMove())

    def forget(self, move: str) -> None:
        """Forget a move that has ended."""
        self._moves.pop(move, None)

    @contextmanager
    def holding(self, move: str) -> Iterator[None]:
        """Mark a move as being worked on; otherwise recovery would take it for one that was left behind."""
        self.track(move).is_held = True
        try:
            yield
        except BaseException:
            known = self._moves.get(move)
            if known and known.may_evict:
                known.interrupted_at = self._clock()
            raise
        finally:
            if known := self._moves.get(move):
                known.is_held = False

    def list_left(self) -> list[str]:
        """List the moves that this process has stopped working on."""
        return [move for move, known in self._moves.items() if not known.is_held]

    def forget_unrecorded(self, left: Iterable[str], recorded: Collection[str]) -> None:
        """Forget moves that were left before the histories were listed, and that no history records as open.

        As long as the eviction of one may be on its way, a debit of it may not be returned.
        """
        for move in left:
            if move not in recorded and not self.is_held(move) and not self.is_in_doubt(move):
                self.forget(move)

    def is_in_doubt(self, move: str) -> bool:
        """Tell whether an eviction may be on its way that an earlier leader, or an interrupted try, sent."""
        return self._clock() < self.find_end_of_doubt(move)

    def find_end_of_doubt(self, move: str) -> float:
        """Tell until when such an eviction may be on its way."""
        known = self._moves.get(move) or TrackedMove()
        taken_over = -math.inf if known.is_begun else self._took_over
        return max(taken_over, known.interrupted_at) + self._patience()
