"""The disruption budget: rates over windows of time, counted from one ledger of debits.

Before an eviction a debit is reserved as Tentative; afterwards it is marked as Spent. A rate of "10 per 10m"
means that no window of ten minutes, wherever it begins, contains more than ten disruptions by Reberth,
whichever leader made them:

* a debit counts from the moment it is reserved, and a Tentative one until it is spent or returned, since its
  eviction may happen at any time, or may have happened with its response lost;
* a Spent one counts from the moment the termination began, or, if that is not known, from the later one at
  which it was marked, for the period and for the possible difference between any two clocks. A disruption
  counts from when it happened: that it was marked later makes it no later. Its debit may then be older than
  others, but not older than its reservation, so no debit is ever dated before the disruption;
* time never goes back behind the newest debit: a leader with a slow clock cannot add a debit in the past;
* but no clock is believed to be ahead by more than `clockSkew`. A debit that is dated later was written by a
  clock that was wrong: it counts as one of that moment, and is dated so at the next write. Otherwise a single
  one would hold every rate until its date has passed.

A Spent debit stays in the ledger for ten minutes, or for less if there are many. Then it is folded: only
counts are left of it, in the slots of `ledger_slots`. Its move is known as spent for ten minutes after it was
marked, in any case: who has not heard the answer asks again, and the disruption counts once.

The ledger is bounded in bytes, as etcd stores it: what is Tentative and what the longest period counts must
fit, or else no more is reserved. A debit with an unreadable time counts forever.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from reberth.memory.ledger_index import (
    LedgerIndex,
    follow,
    index_ledger,
    measure_debit,
    measure_spent,
)
from reberth.memory.ledger_slots import (
    CLUSTER,
    NAMESPACE,
    WORKLOAD,
    date_entry,
    extend_limits,
    find_longest,
    fold,
    keep_periods,
)
from reberth.memory.rates import DisruptionLimits, Rate
from reberth.records import (
    LEDGER_API_VERSION,
    Debit,
    DebitState,
    LedgerStatus,
    LedgerSummary,
    MoveLedger,
    ObjectMeta,
    SpentMoves,
)
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_micro_time

LEDGER_NAME = "default"
MOST_DEBITS = 2000  # the limit in the custom resource's schema
MOST_BYTES = 1024 * 1024
"""What etcd may have to store of the ledger; it refuses requests of more than one and a half times that."""
KEPT_SPENT = 600.0
"""How long a Spent debit stays, and its move is known as spent."""
SPENT_BYTES = 64 * 1024
"""How much Spent debits may take that have not been folded yet."""

NO_DEBIT = Refused("NoDebit", "the move ledger has no debit for this move")
ALREADY_SPENT = Refused("AlreadySpent", "the disruption has already happened")

_OTHER_BYTES = 5120  # metadata, and what periods and the summary take
_PLANNED_BYTES = 1024  # of a debit whose pod is not known yet: few take more
_SPENT_TOGETHER = 60.0  # seconds whose moves are known for equally long


class Disruption(msgspec.Struct, frozen=True):
    """The workload whose pod a move would disrupt, and what the debit says besides."""

    move: str
    namespace: str
    workload_uid: str
    pod: str = ""
    pod_uid: str = ""
    policy: str = ""
    pool: str = ""
    """The pool of the source node: LABEL=VALUE, empty without one."""


class RateWindow(msgspec.Struct, frozen=True):
    """The use of a rate, and when it allows one more: None if time alone does not change that."""

    rule: str
    rate: Rate
    used: int
    opens_at: float | None

    @property
    def left(self) -> int:
        return max(0, self.rate.limit - self.used)


def start_ledger() -> MoveLedger:
    return MoveLedger(ObjectMeta(name=LEDGER_NAME), LEDGER_API_VERSION, "MoveLedger")


def list_windows(
    ledger: MoveLedger, limits: DisruptionLimits, disruption: Disruption, *, now: float
) -> list[RateWindow]:
    """Give the use of every rate that a disruption counts against."""
    index = index_ledger(correct_debits(ledger, limits, now=now).status)
    time = max(now, index.newest)
    scopes = (
        ("ClusterRate", limits.cluster, CLUSTER, ""),
        ("NamespaceRate", limits.namespace, NAMESPACE, disruption.namespace),
        ("WorkloadRate", limits.workload, WORKLOAD, disruption.workload_uid),
    )
    return [
        _measure(rule, rate, (index, scope, name), time, limits.clock_skew)
        for rule, rates, scope, name in scopes
        for rate in rates
    ]


def refuse_disruption(
    ledger: MoveLedger, limits: DisruptionLimits, disruption: Disruption, *, now: float
) -> Refused | None:
    """Give the rule that forbids one more disruption, and until when: of several, the longest."""
    windows = list_windows(ledger, limits, disruption, now=now)
    closed = [window for window in windows if not window.left]
    if not closed:
        return None
    last = max(closed, key=lambda window: math.inf if window.opens_at is None else window.opens_at)
    return Refused(last.rule, f"no more than {last.rate}", last.opens_at)


def list_gaps(ledger: MoveLedger, limits: DisruptionLimits, *, now: float) -> Iterator[str]:
    """Say which rates do not count all of their period, since it was shorter when a part was forgotten."""
    forgotten = ledger.status.forgotten
    for rates, until in (
        (limits.cluster, forgotten.cluster_until),
        (limits.namespace, forgotten.namespace_until),
        (limits.workload, forgotten.workload_until),
    ):
        for rate in rates:
            if until and now < date_entry(until) + rate.period < math.inf:
                yield f"the rate {rate} does not count disruptions up to {until}: it was not configured then"


def add_debit(
    ledger: MoveLedger, limits: DisruptionLimits, disruption: Disruption, *, now: float
) -> MoveLedger | Refused:
    """Reserve a Tentative debit if every rate allows it; the move may already have one, or be spent."""
    if index_ledger(ledger.status).find(disruption.move) or _is_known(ledger, disruption.move):
        return ledger
    ledger = correct_debits(ledger, limits, now=now)
    refused = refuse_disruption(ledger, limits, disruption, now=now)
    if refused:
        return refused
    debit = _write_debit(disruption, DebitState.TENTATIVE, _time_of(ledger, now))
    ledger = _keep_periods(prune_debits(ledger, limits, now=now), limits, now)
    if not _has_room(ledger, measure_debit(debit)):
        ledger = _prune(ledger, limits, now, 0)
    if not _has_room(ledger, measure_debit(debit)):
        return _refuse_full(ledger, limits, now)
    return _change(ledger, (*_debits(ledger), debit), added=debit)


def is_debit_of(debit: Debit, namespace: str, pod_uid: str) -> bool:
    """Tell whether a debit with the id of a move is for this pod: anybody may write the ids of others."""
    return debit.namespace == namespace and debit.pod_uid in ("", pod_uid)


def count_disruption(
    ledger: MoveLedger,
    disruption: Disruption,
    limits: DisruptionLimits,
    *,
    now: float,
    at: float | None = None,
) -> MoveLedger:
    """Mark the debit of a disruption as Spent, or add it if it is gone, as after the ledger was deleted.

    What has happened is counted whatever the rates say, and if there is no room, at once in a slot. A move
    with the id of another one counts nothing.
    """
    found = index_ledger(ledger.status).find(disruption.move)
    if found and not is_debit_of(found, disruption.namespace, disruption.pod_uid):
        return ledger
    marked = mark_spent(ledger, disruption.move, limits=limits, now=now, at=at)
    if not isinstance(marked, Refused):
        return marked
    ledger = _keep_periods(prune_debits(ledger, limits, now=now), limits, now)
    latest = _time_of(ledger, now)
    spent = _write_debit(disruption, DebitState.SPENT, min(latest, _find_begin(now, at)))
    known = _remember(ledger, [disruption.move], until=latest + KEPT_SPENT, time=latest)
    has_room = _has_room(ledger, measure_debit(spent))
    ledger = _change(ledger, (*_debits(ledger), spent), added=spent, spent_moves=known)
    return ledger if has_room else _fold(ledger, _extend(ledger, limits, latest), latest, 0)


def find_room(ledger: MoveLedger, limits: DisruptionLimits, *, now: float) -> Refused | int:
    """Count the debits that the ledger has room for; refused if it is full."""
    ledger = prune_debits(ledger, limits, now=now)
    totals = index_ledger(ledger.status).totals
    free = MOST_BYTES - _measure_bytes(ledger.status) + totals.spent_bytes
    left = min(MOST_DEBITS - totals.tentative, free // _PLANNED_BYTES)
    return left if left > 0 else _refuse_full(ledger, limits, now)


def mark_spent(
    ledger: MoveLedger, move: str, *, limits: DisruptionLimits, now: float, at: float | None = None
) -> MoveLedger | Refused:
    """Mark the debit as Spent: the termination began at that time, or not later than now. It may already be.

    A time in whole seconds has been cut, as those of Kubernetes are: it stands for the end of its second.
    """
    found = index_ledger(ledger.status).find(move)
    if found is None:
        return ledger if _is_known(ledger, move) else NO_DEBIT
    if found.state is DebitState.SPENT:
        return ledger
    corrected = _keep_periods(correct_debits(ledger, limits, now=now), limits, now)
    index = index_ledger(corrected.status)
    debit = index.find(move) or found
    latest = _time_of(corrected, now)
    time = latest if at is None else min(latest, max(date_entry(debit.time), _find_begin(now, at)))
    spent = replace(debit, state=DebitState.SPENT, time=write_micro_time(time))
    known = _remember(corrected, [move], until=latest + KEPT_SPENT, time=latest)
    place, debits = index.find_place(move), _debits(corrected)
    debits = (*debits[:place], spent, *debits[place + 1 :])
    return _change(corrected, debits, removed=debit, added=spent, spent_moves=known)


def _find_begin(now: float, at: float | None) -> float:
    if at is None:
        return now
    return min(now, math.floor(at) + 1 if at == math.floor(at) else at)


def return_debit(ledger: MoveLedger, move: str) -> MoveLedger | Refused:
    """Return a Tentative debit: the pod was seen alive and not terminating, or its eviction was refused."""
    index = index_ledger(ledger.status)
    debit = index.find(move)
    if debit is None:
        return ALREADY_SPENT if _is_known(ledger, move) else ledger
    if debit.state is DebitState.SPENT:
        return ALREADY_SPENT
    place, debits = index.find_place(move), _debits(ledger)
    return _change(ledger, (*debits[:place], *debits[place + 1 :]), removed=debit)


def correct_debits(ledger: MoveLedger, limits: DisruptionLimits, *, now: float) -> MoveLedger:
    """Date what is further in the future than clocks may differ to the latest credible time."""
    latest, status = now + limits.clock_skew, ledger.status
    known_until = max((date_entry(group.until) for group in status.spent_moves or ()), default=-math.inf)
    if index_ledger(status).newest <= latest and known_until <= latest + KEPT_SPENT:
        return ledger
    changed = {
        "debits": _correct(status.debits, "time", latest),
        "slots": _correct(status.slots, "time", latest),
        "spent_moves": _correct(status.spent_moves, "until", latest + KEPT_SPENT),
    }
    return replace(ledger, status=_sum_up(replace(status, **changed)))


def prune_debits(ledger: MoveLedger, limits: DisruptionLimits, *, now: float) -> MoveLedger:
    """Fold the Spent debits that have been kept long enough, and drop what counts against no rate."""
    return _prune(correct_debits(ledger, limits, now=now), limits, now, SPENT_BYTES)


def _prune(ledger: MoveLedger, limits: DisruptionLimits, now: float, spent_bytes: int) -> MoveLedger:
    time, index = _time_of(ledger, now), index_ledger(ledger.status)
    limits = _extend(ledger, limits, time)
    is_due = (
        index.totals.oldest_spent + KEPT_SPENT <= time
        or index.totals.spent_bytes > spent_bytes
        or _find_next_drop(ledger, limits) <= time
    )
    return _fold(ledger, limits, time, spent_bytes) if is_due else ledger


def _fold(ledger: MoveLedger, limits: DisruptionLimits, time: float, spent_bytes: int) -> MoveLedger:
    """If there are too many Spent debits, half of them are left: so it is not done again for each one."""
    status, kept = ledger.status, _choose_kept(ledger, time, spent_bytes)
    left = [debit for debit in _debits(ledger) if debit.state is DebitState.TENTATIVE or debit.move in kept]
    spent = [debit for debit in _debits(ledger) if debit.state is DebitState.SPENT and debit.move not in kept]
    folded = fold(status.slots or (), spent, status.forgotten, limits, time=time)
    lately = [one for one in spent if date_entry(one.time) + KEPT_SPENT > time]
    unknown = [one.move for one in lately if not _is_known(ledger, one.move)]
    status = replace(
        status,
        debits=tuple(left) or None,
        slots=folded.slots or None,
        spent_moves=_remember(ledger, unknown, until=time + KEPT_SPENT, time=time),
        forgotten=folded.forgotten,
    )
    return replace(ledger, status=_sum_up(status))


def _extend(ledger: MoveLedger, limits: DisruptionLimits, time: float) -> DisruptionLimits:
    return extend_limits(limits, ledger.status.periods, time=time)


def _keep_periods(ledger: MoveLedger, limits: DisruptionLimits, now: float) -> MoveLedger:
    """Keep what is added now for as long as the rates of this leader count it."""
    before = ledger.status
    periods = keep_periods(before.periods, limits, time=_time_of(ledger, now))
    if periods is before.periods:
        return ledger
    after = replace(before, periods=periods)
    follow(before, after)
    return replace(ledger, status=_sum_up(after))


def _choose_kept(ledger: MoveLedger, time: float, spent_bytes: int) -> set[str]:
    """Choose the Spent debits that stay: the newest ones, and those whose time cannot be read."""
    spent = [debit for debit in _debits(ledger) if debit.state is DebitState.SPENT]
    is_crowded = index_ledger(ledger.status).totals.spent_bytes > spent_bytes
    room = spent_bytes // 2 if is_crowded else spent_bytes
    kept = {debit.move for debit in spent if math.isinf(date_entry(debit.time))}
    for debit in sorted(spent, key=lambda one: date_entry(one.time), reverse=True):
        room -= measure_debit(debit)
        if room >= 0 and date_entry(debit.time) + KEPT_SPENT > time:
            kept.add(debit.move)
    return kept


def _write_debit(disruption: Disruption, state: DebitState, time: float) -> Debit:
    return Debit(
        disruption.move,
        write_micro_time(time),
        state,
        namespace=disruption.namespace,
        workload_uid=disruption.workload_uid,
        pod=disruption.pod,
        pod_uid=disruption.pod_uid,
        policy=disruption.policy,
        pool=disruption.pool,
    )


def _debits(ledger: MoveLedger) -> tuple[Debit, ...]:
    return ledger.status.debits or ()


def _is_known(ledger: MoveLedger, move: str) -> bool:
    """Tell whether the move is known as spent, though it may have no debit any more."""
    groups = ledger.status.spent_moves or ()
    return any(move in group.moves and move in group.moves.split() for group in groups)


def _remember(
    ledger: MoveLedger, moves: Iterable[str], *, until: float, time: float
) -> tuple[SpentMoves, ...] | None:
    """Know moves as spent: those of about a minute together, for as long as the last of them."""
    groups = [group for group in ledger.status.spent_moves or () if date_entry(group.until) > time]
    texts = list(moves)
    if texts and groups and _is_near(until, date_entry(groups[-1].until)):
        last = groups.pop()
        texts.insert(0, last.moves)
        until = max(until, date_entry(last.until))
    if texts:
        groups.append(SpentMoves(write_micro_time(until), " ".join(texts)))
    return tuple(groups) or None


def _is_near(until: float, last: float) -> bool:
    """Tell whether a move can be known for as long as another one, which is not much longer than it must."""
    return until <= last < math.inf or until // _SPENT_TOGETHER == last // _SPENT_TOGETHER


def _correct(entries: tuple[Any, ...] | None, field: str, latest: float) -> tuple[Any, ...] | None:
    """Date the entries of a list whose times are ahead."""
    return entries and tuple(
        replace(entry, **{field: write_micro_time(latest)})
        if latest < date_entry(getattr(entry, field)) < math.inf
        else entry
        for entry in entries
    )


def _change(
    ledger: MoveLedger,
    debits: tuple[Debit, ...],
    *,
    removed: Debit | None = None,
    added: Debit | None = None,
    spent_moves: tuple[SpentMoves, ...] | None = None,
) -> MoveLedger:
    """Change one debit; the index follows from the one before."""
    before = ledger.status
    after = replace(before, debits=debits or None, spent_moves=spent_moves or before.spent_moves)
    follow(before, after, removed=removed, added=added)
    return replace(ledger, status=_sum_up(after))


def _sum_up(status: LedgerStatus) -> LedgerStatus:
    """Write the summary anew."""
    index = index_ledger(status)
    spent = index.totals.spent + index.slots.count
    summary = LedgerSummary(index.totals.tentative, spent, _measure_bytes(status))
    summed_up = replace(status, summary=summary)
    follow(status, summed_up)
    return summed_up


def _measure_bytes(status: LedgerStatus) -> int:
    index = index_ledger(status)
    return _OTHER_BYTES + index.totals.bytes + index.slots.bytes + measure_spent(status.spent_moves or ())


def _has_room(ledger: MoveLedger, more: int) -> bool:
    return len(_debits(ledger)) < MOST_DEBITS and _measure_bytes(ledger.status) + more <= MOST_BYTES


def _refuse_full(ledger: MoveLedger, limits: DisruptionLimits, now: float) -> Refused:
    """There may be room again when something is dropped."""
    reason = (
        f"the move ledger has {len(_debits(ledger))} debits and {_measure_bytes(ledger.status)} bytes,"
        " and no room for more"
    )
    opens_at = _find_next_drop(ledger, _extend(ledger, limits, _time_of(ledger, now)))
    return Refused("LedgerFull", reason, opens_at if opens_at < math.inf else None)


def _find_next_drop(ledger: MoveLedger, limits: DisruptionLimits) -> float:
    """Give when the oldest slot, or its names, count against no rate any more."""
    oldest = index_ledger(ledger.status).slots.oldest
    return min(time + find_longest(limits, scope) for scope, time in oldest.items())


def _time_of(ledger: MoveLedger, now: float) -> float:
    """The clock of an earlier leader may be ahead of ours: time does not go back. The debits are correct."""
    return max(now, index_ledger(ledger.status).newest)


def _measure(
    rule: str, rate: Rate, counted: tuple[LedgerIndex, str, str], time: float, clock_skew: float
) -> RateWindow:
    index, scope, name = counted
    span = rate.period + clock_skew
    used = index.count(scope, name, time, span)
    if used < rate.limit:
        return RateWindow(rule, rate, used, time)
    left, opens_at = used, None
    for ended, count in index.list_finite(scope, name, time, span):
        left -= count
        if left < rate.limit:
            opens_at = ended + span
            break
    return RateWindow(rule, rate, used, opens_at)
