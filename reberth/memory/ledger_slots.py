"""What the move ledger keeps of disruptions whose debits are no longer needed: counts for each slot of time.

A slot has the time of its newest disruption and a count; all of it counts until that newest one no longer
does. So a disruption is never held for less than the period of its rate, whatever the order in which the
disruptions arrive: one that is folded later and happened earlier makes its slot no older, and one that is
newer makes it newer.

What is held too long is small. Slots are the cells of a grid whose width is the largest power of two that is
at most a 60th of a period (and of the possible difference between two clocks): a disruption is held for less
than a 60th of the rate's period more. A slot is as wide as the shortest period asks that may still count it.
Once no leader can count it for that period any more, it is merged into the wider cells of the next longer
one, which contain the narrower ones exactly, since all widths are powers of two. A longer period therefore
costs at most 240 slots more than the next shorter one, whatever the number of disruptions.

Namespaces and workloads are named by hashes of seven letters, and how many disruptions there were of each
one: a day of 50,000 disruptions of as many workloads in as many namespaces takes 800 kB, their names and uids
would take six times that. Of 50,000 names, two have the same hash with a probability of 0.03 %: they would
share their rates. What no configured rate counts is not kept. It is forgotten then, and the ledger says up to
which time: a longer period that is configured later begins with what is left.

Several leaders may have different rates: a move by hand without the daemon's policy leads for a moment, too.
So the ledger names the periods for which something was added lately, and each leader keeps what any of them
counts. A period that is configured no more is given up once its last disruption no longer counts.
"""

import math
import sys
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from msgspec.structs import replace

from reberth.memory.rates import DisruptionLimits, Rate
from reberth.records import Debit, DebitState, ForgottenTimes, KeptPeriod, LedgerSlot
from reberth.values.timestamp import parse_time, write_micro_time

MOST_SLOTS = 2000  # the limit in the custom resource's schema
MOST_PERIODS = 32  # likewise
SHARE = 60
"""A disruption is held for less than one part in so many of the period more than the rate demands."""
KEY_LETTERS = 7

SCOPES = CLUSTER, NAMESPACE, WORKLOAD = "cluster", "namespace", "workload"
"""What a rate counts for: so the limits call it, too."""

_Cells = dict[tuple[float, int], list[LedgerSlot]]


class Folded(NamedTuple):
    """Slots, and up to when disruptions have been left out of them."""

    slots: tuple[LedgerSlot, ...]
    forgotten: ForgottenTimes


class _Horizon(NamedTuple):
    """What is kept at a time: for which periods, and for how long for each scope."""

    time: float
    spans: tuple[float, ...]
    """The periods, each with the possible difference between two clocks; the shortest first."""
    clock_skew: float
    namespace: float
    workload: float

    def has_passed(self, newest: float, span: float) -> bool:
        return newest + span <= self.time

    def find_width(self, newest: float) -> float | None:
        """Give the width of a slot's cell; None if nothing counts it."""
        if not self.spans or self.has_passed(newest, self.spans[-1]):
            return None
        # A leader whose clock is behind must not see them wider either: the shorter period may count for it.
        later = (span for span in self.spans if not self.has_passed(newest, span + self.clock_skew))
        return find_width(next(later))


def find_width(span: float) -> float:
    """Give the width of the slots for a period that is extended by the difference between clocks."""
    return 2.0 ** math.floor(math.log2(span / SHARE))


def date_entry(time: str) -> float:
    """Read the time of an entry; one that cannot be read never ends."""
    try:
        return parse_time(time)
    except ValueError:
        return math.inf


def counted_from(debit: Debit) -> float:
    """Give the time from which a debit counts for a period; a Tentative one counts as long as it exists."""
    return math.inf if debit.state is DebitState.TENTATIVE else date_entry(debit.time)


def hash_name(name: str) -> str:
    """Give the letters by which slots name a namespace or a workload's uid."""
    return urlsafe_b64encode(sha256(name.encode()).digest())[:KEY_LETTERS].decode()


def read_counts(text: str) -> Mapping[str, int]:
    """Read hashes, each with its count unless that is 1: "Xb3-w_a mK0sZ1p12"."""
    words = text.split()
    once = dict.fromkeys(words, 1)
    if len(text) == (KEY_LETTERS + 1) * len(once) - 1:
        return once  # none has a number, as in most slots
    found = Counter[str]()
    for word in words:
        count = word[KEY_LETTERS:]
        found[word[:KEY_LETTERS]] += int(count) if count.isdecimal() else 1
    return found


def write_counts(counts: Mapping[str, int]) -> str:
    return " ".join(f"{name}{count if count > 1 else ''}" for name, count in sorted(counts.items()))


def fold(
    slots: Iterable[LedgerSlot],
    spent: Iterable[Debit],
    forgotten: ForgottenTimes,
    limits: DisruptionLimits,
    *,
    time: float,
) -> Folded:
    """Put spent debits into slots, merge the slots that have become old, and drop what no rate counts."""
    horizon = _look_back(limits, time)
    parts = [*slots, *map(_as_slot, spent)]
    kept = [_strip(part, horizon) for part in parts]
    cells = _group(kept, horizon)
    merged = sorted(map(_merge, cells.values()), key=lambda slot: date_entry(slot.time))
    return Folded(tuple(merged), _note_forgotten(parts, forgotten, horizon))


def keep_periods(
    kept: tuple[KeptPeriod, ...] | None, limits: DisruptionLimits, *, time: float
) -> tuple[KeptPeriod, ...] | None:
    """Keep the periods of a leader that adds a disruption, and those of others until they have passed.

    Of too many, the longest ones stay: what a shorter one counts is kept for longer by them.
    """
    found = _list_kept(kept, time)
    for key in _list_own(limits):
        if found.get(key, time) < time + key[1]:
            found[key] = _keep_until(time, key[1])
    longest = sorted(found, key=lambda key: key[1])[-MOST_PERIODS:]
    after = tuple(KeptPeriod(*key, write_micro_time(found[key])) for key in sorted(longest)) or None
    return kept if after == kept else after


def extend_limits(
    limits: DisruptionLimits, kept: tuple[KeptPeriod, ...] | None, *, time: float
) -> DisruptionLimits:
    """Add the periods of other leaders, without a limit: what they count must be kept."""
    added: dict[str, tuple[Rate, ...]] = {}
    for scope, seconds in sorted(_list_kept(kept, time).keys() - _list_own(limits)):
        rate = Rate((sys.maxsize, max(1.0, seconds - limits.clock_skew)))
        added[scope] = (*added.get(scope, getattr(limits, scope)), rate)
    return replace(limits, **added) if added else limits


def _list_own(limits: DisruptionLimits) -> set[tuple[str, int]]:
    return {
        (scope, math.ceil(rate.period + limits.clock_skew))
        for scope in SCOPES
        for rate in getattr(limits, scope)
    }


def _list_kept(kept: tuple[KeptPeriod, ...] | None, time: float) -> dict[tuple[str, int], float]:
    """Give until when periods are kept; no clock that was ahead makes that longer."""
    ends = {
        (each.scope, each.seconds): min(date_entry(each.until), _keep_until(time, each.seconds))
        for each in kept or ()
        if each.scope in SCOPES
    }
    return {key: until for key, until in ends.items() if until > time}


def _keep_until(time: float, seconds: int) -> float:
    """A tenth longer than it must, or a minute: it is not written anew with each disruption."""
    return time + seconds + max(60.0, seconds / 10)


def find_longest(limits: DisruptionLimits, scope: str = CLUSTER) -> float:
    """Give how long a disruption counts at the most: for the rates of a scope, or at all."""
    rates = _list_rates(limits) if scope == CLUSTER else getattr(limits, scope)
    return max((rate.period + limits.clock_skew for rate in rates), default=0.0)


def _list_rates(limits: DisruptionLimits) -> tuple[Rate, ...]:
    return (*limits.cluster, *limits.namespace, *limits.workload)


def _look_back(limits: DisruptionLimits, time: float) -> _Horizon:
    spans = sorted({rate.period + limits.clock_skew for rate in _list_rates(limits)})
    spans_of = (find_longest(limits, NAMESPACE), find_longest(limits, WORKLOAD))
    return _Horizon(time, tuple(spans), limits.clock_skew, *spans_of)


def _as_slot(debit: Debit) -> LedgerSlot:
    return LedgerSlot(debit.time, 1, hash_name(debit.namespace), hash_name(debit.workload_uid))


def _strip(slot: LedgerSlot, horizon: _Horizon) -> LedgerSlot:
    """Drop the names that no rate counts."""
    newest = date_entry(slot.time)
    namespaces = "" if _is_dropped(newest, horizon.namespace, horizon) else slot.namespaces
    workloads = "" if _is_dropped(newest, horizon.workload, horizon) else slot.workloads
    if (namespaces, workloads) == (slot.namespaces, slot.workloads):
        return slot
    return replace(slot, namespaces=namespaces, workloads=workloads)


def _is_dropped(newest: float, span: float, horizon: _Horizon) -> bool:
    return not span or horizon.has_passed(newest, span)


def _group(slots: Iterable[LedgerSlot], horizon: _Horizon, wider: float = 1.0) -> _Cells:
    """Sort slots into the cells of the grid; into wider ones if the schema has no room for so many."""
    cells: _Cells = {}
    for slot in slots:
        newest = date_entry(slot.time)
        width = horizon.find_width(newest)
        if width is not None:
            cell = 0 if math.isinf(newest) else math.floor(newest / (width * wider))
            cells.setdefault((width, cell), []).append(slot)
    return cells if len(cells) <= MOST_SLOTS else _group(slots, horizon, 2 * wider)


def _merge(slots: Sequence[LedgerSlot]) -> LedgerSlot:
    if len(slots) == 1:
        return slots[0]
    newest = max(slots, key=lambda slot: date_entry(slot.time))
    return LedgerSlot(
        newest.time,
        sum(slot.count for slot in slots),
        _add_counts(slot.namespaces for slot in slots),
        _add_counts(slot.workloads for slot in slots),
    )


def _add_counts(texts: Iterable[str]) -> str:
    found = Counter[str]()
    for text in texts:
        found.update(read_counts(text))
    return write_counts(found)


def _note_forgotten(
    parts: Iterable[LedgerSlot], forgotten: ForgottenTimes, horizon: _Horizon
) -> ForgottenTimes:
    spans = (horizon.spans[-1] if horizon.spans else 0.0, horizon.namespace, horizon.workload)
    times = [date_entry(part.time) for part in parts]
    until = [
        _later(known, max((time for time in times if _is_dropped(time, span, horizon)), default=-math.inf))
        for known, span in zip(
            (forgotten.cluster_until, forgotten.namespace_until, forgotten.workload_until), spans, strict=True
        )
    ]
    return ForgottenTimes(*until)


def _later(known: str, time: float) -> str:
    if not math.isfinite(time) or (known and date_entry(known) >= time):
        return known
    return write_micro_time(time)
