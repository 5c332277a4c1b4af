"""The budget of refusals: how many moves may be tried in vain, in all.

A refused move costs ten requests and disrupts nothing, so no disruption rate limits it. Of the moves
that may be refused, no more are refused in any minute than the budget has. So a move reserves a try before
its first write, and gives it back when its eviction is granted or somebody else has deleted its pod: within a
moment, so moves that are granted do not limit each other.

* A workload that has been evicted from before, and has not been refused since, needs no try: a healthy fleet
  is not limited. Only a burst of its moves begins with two, and with one more for each that is granted, up to
  sixteen at once: each is asked for about a second, so fewer would limit a fleet to less than ten a second.
  If several of them are refused within a minute, something new refuses them: then all moves need a try until
  an eviction is granted again.
* A workload that was refused before is tried again with half of the budget at most, and only if no unknown
  one was refused for two minutes: those that are refused for ever must not keep others from their first move.

Refusals are counted by the times in the eviction histories too: a new leader goes on where the last one was.
"""

from collections.abc import Iterable
from typing import NamedTuple

from reberth.memory.backoff import instant
from reberth.records import EvictionHistory
from rescheduler.model.standing import Standing, TriesLeft

MOST_TRIES = 2
PERIOD = 60.0
MOST_TRUSTED = 16
"""How many moves of proven workloads are asking at once: so many may be refused by something new."""

_MOST_SURPRISES = 2
_SKEW = 5.0  # a refusal from further in the future is of a clock that was set back since


class RefusedTry(NamedTuple):
    """A try that ended with a refusal; that of a proven workload is a surprise."""

    at: float
    is_surprise: bool = False


class MoveTry:
    """A try of one move, until it is known whether it is refused."""

    def __init__(self, budget: "TryBudget", standing: Standing) -> None:
        self.standing = standing
        self._budget = budget
        self._is_over = False

    def grant(self, now: float) -> None:
        """Give the try back: the eviction was granted."""
        if not self._is_over:
            self._end()
            self._budget.take_grant(now)

    def drop(self) -> None:
        """Give the try back: what stopped the move is nothing that a try should have found out."""
        if not self._is_over:
            self._end()

    def refuse(self, now: float, *, foretells: bool = True) -> None:
        """Use up the try. Some refusals foretell nothing of other moves: the pod had just gone."""
        if not self._is_over:
            self._end()
            self._budget.take_refusal(self.standing, now, foretells=foretells)

    def _end(self) -> None:
        self._is_over = True
        self._budget.release(self)


class TryBudget:
    """The tries of one term of leadership; `refused` are the times of refusals by earlier leaders."""

    def __init__(self, refused: Iterable[float] = ()) -> None:
        self._refused = list(map(RefusedTry, refused))
        self._asking: set[MoveTry] = set()
        self._trusted: set[MoveTry] = set()  # of proven workloads: they reserve nothing
        self._window = MOST_TRIES  # how many of those may be asking at once
        self._trusts = True
        self._surprised_at = 0.0
        self._unknown_at = 0.0

    @property
    def is_asking(self) -> bool:
        """Whether there are tries of which nobody knows the end yet."""
        return bool(self._asking or self._trusted)

    def begin(self, standing: Standing, now: float) -> MoveTry | None:
        """Begin a try; None if there is none left for a workload of this standing."""
        is_trusted = standing is Standing.PROVEN and self._trusts
        if not (len(self._trusted) < self._window if is_trusted else self._has_left(standing, now)):
            return None
        attempt = MoveTry(self, standing)
        (self._trusted if is_trusted else self._asking).add(attempt)
        return attempt

    def find_left(self, now: float) -> TriesLeft:
        """Tell a plan for whom tries are left; those that are being asked may well be given back."""
        self._expire(now)
        left = len(self._refused) < MOST_TRIES
        return TriesLeft(left, repeated=left and self._may_repeat(now), trusts_proven=self._trusts)

    def release(self, attempt: MoveTry) -> None:
        self._asking.discard(attempt)
        self._trusted.discard(attempt)
        if not self._trusted:
            self._window = MOST_TRIES

    def take_grant(self, now: float) -> None:
        if self._trusted:
            self._window = min(self._window + 1, MOST_TRUSTED)
        if now >= self._surprised_at + PERIOD:
            self._trusts = True

    def take_refusal(self, standing: Standing, now: float, *, foretells: bool = True) -> None:
        self._expire(now)
        is_surprise = foretells and standing is Standing.PROVEN
        self._refused.append(RefusedTry(now, is_surprise))
        if is_surprise:
            self._surprised_at = now
        if foretells and standing is Standing.UNKNOWN:
            self._unknown_at = now
        if sum(one.is_surprise for one in self._refused) >= _MOST_SURPRISES:
            self._trusts = False

    def _has_left(self, standing: Standing, now: float) -> bool:
        self._expire(now)
        if len(self._refused) + len(self._asking) >= MOST_TRIES:
            return False
        return standing is not Standing.REFUSED or self._may_repeat(now)

    def _may_repeat(self, now: float) -> bool:
        is_repeating = any(one.standing is Standing.REFUSED for one in self._asking)
        return not self._refused and not is_repeating and now >= self._unknown_at + 2 * PERIOD

    def _expire(self, now: float) -> None:
        self._refused = [one for one in self._refused if _is_recent(one.at, now)]
        self._surprised_at, self._unknown_at = min(self._surprised_at, now), min(self._unknown_at, now)


def list_refused_at(histories: Iterable[EvictionHistory], now: float) -> list[float]:
    """List the times of the refusals that still count, in all histories."""
    times = (instant(one.refused_at) for each in histories for one in each.status.refused or ())
    return [at for at in times if _is_recent(at, now)]


def _is_recent(at: float, now: float) -> bool:
    return now - PERIOD < at <= now + _SKEW
