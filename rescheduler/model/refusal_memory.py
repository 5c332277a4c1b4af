"""What this process remembers of refusals, beside what the eviction histories say.

A history is written when a move is closed, and the cache sees it a moment later; a move that was refused
before its first write is in no history at all. It may be lost with the process: whatever has cost more than a
read is in a history too.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

import msgspec

from reberth.memory.refusals import list_living, note_refusal
from reberth.records import RememberedRefusal
from reberth.values.refusal import Refused
from rescheduler.model.refusal_scopes import Scope, find_scope
from rescheduler.model.standing import TriesLeft

K = TypeVar("K")
V = TypeVar("V")

_MOST = 1000


class WorkloadName(NamedTuple):
    """A workload as a plan names it; `name` is its kind and name: Deployment/web."""

    namespace: str
    name: str


class KnownRefusal(NamedTuple):
    """A refusal, and the workload whose move it refused."""

    workload: WorkloadName
    refusal: RememberedRefusal


class RefusalMemory(msgspec.Struct, frozen=True):
    """What a plan is told: refusals, what has been granted since, and the tries left.

    A history names an eviction, and drops what that has disproved, only when the move is closed.
    """

    known: tuple[KnownRefusal, ...] = ()
    disproved: frozenset[KnownRefusal] = frozenset()
    answered: dict[str, float] = {}  # when webhooks that failed have answered
    granted: dict[WorkloadName, float] = {}  # when the last eviction was granted
    left: TriesLeft = TriesLeft()


class RecentRefusals:
    """The refusals of one term of leadership."""

    def __init__(self) -> None:
        self._known: dict[tuple[WorkloadName, str, str], RememberedRefusal] = {}
        self._answered: dict[str, float] = {}
        self._granted: dict[WorkloadName, float] = {}
        self._disproved: dict[KnownRefusal, None] = {}

    def put(self, known: KnownRefusal) -> None:
        """Enter a refusal as it was written to a history; the oldest one gives way if there are too many."""
        workload, refusal = known
        _put_last(self._known, (workload, refusal.rule, refusal.key), refusal)

    def note(self, workload: WorkloadName, refused: Refused, *, key: str, now: float) -> None:
        """Enter a refusal that no history records, unless its rule is one that a plan sees by itself."""
        if find_scope(refused.rule) is not Scope.NOTHING:
            noted = note_refusal(refused, key=key, before=self.list_of(workload), now=now)
            self.put(KnownRefusal(workload, noted))

    def disprove(self, workload: WorkloadName, refusals: Iterable[RememberedRefusal], now: float) -> None:
        """Forget what a granted eviction of the workload has disproved; its webhooks have answered."""
        _put_last(self._granted, workload, now)
        for one in refusals:
            _put_last(self._disproved, KnownRefusal(workload, one), None)
        for one in (*refusals, *self.list_of(workload)):
            self._known.pop((workload, one.rule, one.key), None)
            if find_scope(one.rule) is Scope.WEBHOOK:
                _put_last(self._answered, one.key, now)

    def read(self, now: float, left: TriesLeft = TriesLeft()) -> RefusalMemory:  # noqa: B008 - frozen
        """Give what the next plan is told."""
        living = {place: one for place, one in self._known.items() if list_living([one], now)}
        self._known = living
        known = tuple(KnownRefusal(place[0], one) for place, one in living.items())
        return RefusalMemory(
            known, frozenset(self._disproved), dict(self._answered), dict(self._granted), left
        )

    def find_grant(self, workload: WorkloadName) -> float:
        """Tell when an eviction of a workload was last granted."""
        return self._granted.get(workload, -math.inf)

    def list_of(self, workload: WorkloadName) -> list[RememberedRefusal]:
        """List the refusals of a workload."""
        return [one for (whose, *_), one in self._known.items() if whose == workload]


def _put_last(entries: dict[K, V], key: K, value: V) -> None:
    """Enter something as the newest; the oldest gives way if there are too many."""
    entries.pop(key, None)
    if len(entries) >= _MOST:
        del entries[next(iter(entries))]
    entries[key] = value
