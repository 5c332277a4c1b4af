"""The move ledger, indexed: how many disruptions of a cluster, namespace or workload count after a moment.

An index belongs to one version of the ledger. It is made once, when it is first asked for. That of a version
which differs from another by a single debit is that other's index with the change beside it, so that a batch
of many debits does not read the whole ledger for each of them; after a hundred changes it is made anew.
"""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from heapq import merge
from typing import Generic, NamedTuple, TypeVar

from reberth.memory.ledger_slots import (
    CLUSTER,
    NAMESPACE,
    WORKLOAD,
    counted_from,
    date_entry,
    hash_name,
    read_counts,
)
from reberth.records import Debit, DebitState, LedgerSlot, LedgerStatus, SpentMoves

T = TypeVar("T")

_NAMES: Mapping[str, Callable[[Debit], str]] = {
    CLUSTER: lambda _: "",
    NAMESPACE: lambda debit: debit.namespace,
    WORKLOAD: lambda debit: debit.workload_uid,
}
_TEXTS: Mapping[str, Callable[[LedgerSlot], str]] = {
    NAMESPACE: lambda slot: slot.namespaces,
    WORKLOAD: lambda slot: slot.workloads,
}
_MOST_CHANGES = 100
# What etcd stores of an entry besides its values: the names of its fields, and for a debit, which is an
# element of a list by key, the owners of its fields (metadata.managedFields) with its key once more.
_DEBIT_BYTES, _SLOT_BYTES, _SPENT_BYTES = 400, 110, 60


class DisruptionTimes:
    """When disruptions happened, in order, and how many there were from each moment on."""

    def __init__(self, counted: Iterable[tuple[float, int]] = ()) -> None:
        ordered = sorted(counted)
        self._times = [time for time, _ in ordered]
        self._counts = [count for _, count in ordered]
        self._left = [0]
        for count in reversed(self._counts):
            self._left.append(self._left[-1] + count)
        self._left.reverse()

    def count(self, time: float, span: float) -> int:
        """Count those that count at a time, for so long."""
        return self._left[self._find_first(time, span)]

    def list_finite(self, time: float, span: float) -> Iterator[tuple[float, int]]:
        """Give those that will cease to count, the first one first."""
        for place in range(self._find_first(time, span), len(self._times)):
            if math.isinf(self._times[place]):
                return
            yield self._times[place], self._counts[place]

    def _find_first(self, time: float, span: float) -> int:
        """Find the first whose end is after the time; the end is what is compared, as it is rounded."""
        times = self._times
        place = bisect_right(times, time - span)
        while place and times[place - 1] + span > time:
            place -= 1
        while place < len(times) and times[place] + span <= time:
            place += 1
        return place


_NEVER = DisruptionTimes()
_Counted = tuple[str, float, int]  # for whom, from when, how many


class _Entries:
    """Disruptions by what they count against; a scope is sorted when it is first asked for."""

    def __init__(self, read: Callable[[str], Iterable[_Counted]]) -> None:
        self._read = read
        self._listed: dict[str, Mapping[str, list[tuple[float, int]]]] = {}
        self._found: dict[tuple[str, str], DisruptionTimes] = {}

    def find(self, scope: str, name: str) -> DisruptionTimes:
        found = self._found.get((scope, name))
        if found is None:
            if scope not in self._listed:
                self._listed[scope] = self._list(scope)
            listed = self._listed[scope].get(name)
            found = self._found[scope, name] = DisruptionTimes(listed) if listed else _NEVER
        return found

    def _list(self, scope: str) -> Mapping[str, list[tuple[float, int]]]:
        found = defaultdict[str, list[tuple[float, int]]](list)
        for name, time, count in self._read(scope):
            found[name].append((time, count))
        return found


@dataclass(frozen=True, eq=False)
class _Slots:
    entries: _Entries
    count: int
    newest: float
    oldest: Mapping[str, float]
    """The time of the oldest one that names something, by scope."""
    bytes: int


class _Totals(NamedTuple):
    """What is added up over the debits."""

    newest: float
    oldest_spent: float
    tentative: int
    spent: int
    spent_bytes: int
    bytes: int


@dataclass(frozen=True, eq=False)
class LedgerIndex:
    """The disruptions of one version of the ledger."""

    entries: _Entries
    places: Mapping[str, int]
    """Where the debits of moves were, before the changes."""
    slots: _Slots
    totals: _Totals
    debits: tuple[Debit, ...]
    changes: tuple[tuple[Debit, int], ...] = ()
    """Debits that were added (1) and removed (-1) since."""

    @property
    def newest(self) -> float:
        """The time of the newest entry that has a readable one."""
        return max(self.totals.newest, self.slots.newest)

    def find(self, move: str) -> Debit | None:
        """Find the debit of a move."""
        for debit, change in reversed(self.changes):
            if debit.move == move:
                return debit if change > 0 else None
        place = self.places.get(move)
        return None if place is None else self.debits[self._move_back(place, move)]

    def find_place(self, move: str) -> int:
        """Find the place of a debit that is there."""
        is_changed = any(debit.move == move for debit, _ in self.changes)
        last = len(self.debits) - 1
        return self._move_back(last if is_changed else self.places.get(move, last), move)

    def _move_back(self, place: int, move: str) -> int:
        """A debit only moves towards the first: by the number of those that were removed before it."""
        place = min(place, len(self.debits) - 1)
        while self.debits[place].move != move:
            place -= 1
        return place

    def count(self, scope: str, name: str, time: float, span: float) -> int:
        """Count the disruptions of a scope that count at a time, for a period."""
        changed = sum(
            change
            for debit, change in self.changes
            if _NAMES[scope](debit) == name and counted_from(debit) + span > time
        )
        return sum(each.count(time, span) for each in self._list_times(scope, name)) + changed

    def list_finite(self, scope: str, name: str, time: float, span: float) -> Iterator[tuple[float, int]]:
        """Give when those among them happened that will cease to count, the first one first."""
        changed = sorted(
            (counted_from(debit), change)
            for debit, change in self.changes
            if _NAMES[scope](debit) == name and time < counted_from(debit) + span < math.inf
        )
        return merge(*(each.list_finite(time, span) for each in self._list_times(scope, name)), changed)

    def _list_times(self, scope: str, name: str) -> tuple[DisruptionTimes, DisruptionTimes]:
        in_slots = name if scope == CLUSTER else hash_name(name)
        return self.entries.find(scope, name), self.slots.entries.find(scope, in_slots)


class _Version(Generic[T]):
    """A version of a ledger, or of its slots: two that are equal are not the same."""

    __slots__ = ("known", "value")

    def __init__(self, value: T, known: LedgerIndex | None = None) -> None:
        self.value = value
        self.known = known

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Version) and other.value is self.value


def index_ledger(status: LedgerStatus) -> LedgerIndex:
    """Give the index of this version of the ledger."""
    return _keep_index(_Version(status))


def follow(
    before: LedgerStatus, after: LedgerStatus, *, removed: Debit | None = None, added: Debit | None = None
) -> None:
    """Derive the index of a version that differs by a debit; with other differences it is made anew."""
    known = index_ledger(before)
    if len(known.changes) >= _MOST_CHANGES or _is_extreme(removed, added, known):
        return
    changes = (*known.changes, *([(removed, -1)] if removed else []), *([(added, 1)] if added else []))
    totals = _add(_add(known.totals, removed, -1), added, 1)
    index = replace(known, totals=totals, debits=after.debits or (), changes=changes)
    _keep_index(_Version(after, index))


def measure_debit(debit: Debit) -> int:
    """Estimate what etcd stores of a debit, rather too much than too little."""
    texts = (debit.namespace, debit.workload_uid, debit.pod, debit.pod_uid, debit.policy, debit.pool)
    return _DEBIT_BYTES + 2 * len(debit.move) + sum(map(len, texts))


def measure_spent(spent: Iterable[SpentMoves]) -> int:
    return sum(_SPENT_BYTES + len(group.moves) for group in spent)


@lru_cache(maxsize=3)
def _keep_index(version: _Version[LedgerStatus]) -> LedgerIndex:
    return version.known or _make_index(version.value)


@lru_cache(maxsize=3)
def _keep_slots(version: _Version[tuple[LedgerSlot, ...]]) -> _Slots:
    slots = version.value
    times = [date_entry(slot.time) for slot in slots]
    finite = [time for time in times if math.isfinite(time)]
    named = {
        CLUSTER: times,
        **{
            scope: [time for time, slot in zip(times, slots, strict=True) if read(slot)]
            for scope, read in _TEXTS.items()
        },
    }
    return _Slots(
        _Entries(partial(_read_slots, slots)),
        sum(slot.count for slot in slots),
        max(finite, default=-math.inf),
        {scope: min(times, default=math.inf) for scope, times in named.items()},
        sum(_SLOT_BYTES + len(slot.namespaces) + len(slot.workloads) for slot in slots),
    )


def _make_index(status: LedgerStatus) -> LedgerIndex:
    debits = status.debits or ()
    places = {debit.move: place for place, debit in enumerate(debits)}
    slots = _keep_slots(_Version(status.slots or ()))
    entries = _Entries(partial(_read_debits, list(zip(debits, map(counted_from, debits), strict=True))))
    return LedgerIndex(entries, places, slots, _add_up(debits), debits)


def _add_up(debits: Sequence[Debit]) -> _Totals:
    times = [date_entry(debit.time) for debit in debits]
    sizes = list(map(measure_debit, debits))
    spent = [place for place, debit in enumerate(debits) if _is_spent(debit)]
    return _Totals(
        max((time for time in times if math.isfinite(time)), default=-math.inf),
        min((times[place] for place in spent), default=math.inf),
        len(debits) - len(spent),
        len(spent),
        sum(sizes[place] for place in spent),
        sum(sizes),
    )


def _add(totals: _Totals, debit: Debit | None, change: int) -> _Totals:
    if debit is None:
        return totals
    time, size, is_spent = date_entry(debit.time), change * measure_debit(debit), _is_spent(debit)
    return _Totals(
        max(totals.newest, time) if change > 0 and math.isfinite(time) else totals.newest,
        min(totals.oldest_spent, time) if is_spent and change > 0 else totals.oldest_spent,
        totals.tentative + (0 if is_spent else change),
        totals.spent + (change if is_spent else 0),
        totals.spent_bytes + (size if is_spent else 0),
        totals.bytes + size,
    )


def _is_spent(debit: Debit) -> bool:
    return debit.state is DebitState.SPENT


def _is_extreme(removed: Debit | None, added: Debit | None, known: LedgerIndex) -> bool:
    """Tell whether the newest time, or the oldest one of a spent debit, may be another after this change."""
    if removed is None:
        return False
    time = date_entry(removed.time)
    return _is_spent(removed) or (
        time >= known.totals.newest and (added is None or date_entry(added.time) < time)
    )


def _read_debits(debits: Iterable[tuple[Debit, float]], scope: str) -> Iterator[_Counted]:
    name = _NAMES[scope]
    return ((name(debit), time, 1) for debit, time in debits)


def _read_slots(slots: Iterable[LedgerSlot], scope: str) -> Iterator[_Counted]:
    for slot in slots:
        counts = read_counts(_TEXTS[scope](slot)) if scope in _TEXTS else {"": slot.count}
        yield from ((name, date_entry(slot.time), count) for name, count in counts.items())
