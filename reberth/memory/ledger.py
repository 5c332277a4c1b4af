"""The disruption budget: rates over windows of time, counted from one ledger of debits.

Before an eviction a debit is reserved as Tentative; afterwards it is marked as Spent. A rate of "10 per 10m"
means that no window of ten minutes, wherever it begins, contains more than ten disruptions by Reberth,
whichever leader made them:

* a debit counts from the moment it is reserved, and a Tentative one until it is spent or returned, since its
  eviction may happen at any time, or may have happened with its response lost;
* a Spent one counts from the moment it was marked, when the termination had begun, for the period and for the
  possible difference between the clocks of two leaders;
* time never goes back behind the newest debit: a leader with a slow clock cannot add a debit in the past;
* but no clock is believed to be ahead by more than `clockSkew`. A debit that is dated later was written by a
  clock that was wrong: it counts as one of that moment, and is dated so at the next write. Otherwise a single
  one would hold every rate until its date has passed.

A debit with an unreadable time counts forever.
"""

import math
from collections.abc import Iterable

import msgspec

from reberth.memory.rates import DisruptionLimits, Rate
from reberth.records import LEDGER_API_VERSION, Debit, DebitState, LedgerStatus, MoveLedger, ObjectMeta
from reberth.values.refusal import Refused
from reberth.values.timestamp import parse_time, write_micro_time

LEDGER_NAME = "default"
MOST_DEBITS = 2000  # the limit in the custom resource's schema

NO_DEBIT = Refused("NoDebit", "the move ledger has no debit for this move")
ALREADY_SPENT = Refused("AlreadySpent", "the disruption has already happened")


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
    ledger = correct_debits(ledger, limits, now=now)
    debits, time = _debits(ledger), _time_of(ledger, now)
    in_namespace = [debit for debit in debits if debit.namespace == disruption.namespace]
    of_workload = [debit for debit in debits if debit.workload_uid == disruption.workload_uid]
    scopes = (
        ("ClusterRate", limits.cluster, debits),
        ("NamespaceRate", limits.namespace, in_namespace),
        ("WorkloadRate", limits.workload, of_workload),
    )
    return [
        _measure(rule, rate, counted, time, limits.clock_skew)
        for rule, rates, counted in scopes
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


def add_debit(
    ledger: MoveLedger, limits: DisruptionLimits, disruption: Disruption, *, now: float
) -> MoveLedger | Refused:
    """Reserve a Tentative debit if every rate allows it; the move may already have one."""
    if _find(ledger, disruption.move):
        return ledger
    ledger = correct_debits(ledger, limits, now=now)
    refused = refuse_disruption(ledger, limits, disruption, now=now)
    if refused:
        return refused
    pruned = prune_debits(ledger, limits, now=now)
    room = find_room(pruned, limits, now=now)
    if isinstance(room, Refused):
        return room
    debit = Debit(
        disruption.move,
        write_micro_time(_time_of(ledger, now)),
        DebitState.TENTATIVE,
        namespace=disruption.namespace,
        workload_uid=disruption.workload_uid,
        pod=disruption.pod,
        pod_uid=disruption.pod_uid,
        policy=disruption.policy,
        pool=disruption.pool,
    )
    return _with_debits(pruned, [*_debits(pruned), debit])


def find_room(ledger: MoveLedger, limits: DisruptionLimits, *, now: float) -> Refused | int:
    """Count the debits that the ledger has room for; refused if it is full."""
    debits = _debits(prune_debits(ledger, limits, now=now))
    left = MOST_DEBITS - len(debits)
    if left > 0:
        return left
    return Refused("LedgerFull", f"no more than {MOST_DEBITS} debits", _first_end(debits, limits))


def mark_spent(
    ledger: MoveLedger, move: str, *, limits: DisruptionLimits, now: float
) -> MoveLedger | Refused:
    """Mark the debit as Spent: the termination has begun, not later than now. It may already be marked."""
    debit = _find(ledger, move)
    if debit is None:
        return NO_DEBIT
    if debit.state == DebitState.SPENT:
        return ledger
    ledger = correct_debits(ledger, limits, now=now)
    time = write_micro_time(_time_of(ledger, now))
    spent = msgspec.structs.replace(debit, state=DebitState.SPENT, time=time)
    return _with_debits(ledger, [spent if one.move == move else one for one in _debits(ledger)])


def return_debit(ledger: MoveLedger, move: str) -> MoveLedger | Refused:
    """Return a Tentative debit, after the pod was seen alive and not terminating."""
    debit = _find(ledger, move)
    if debit and debit.state == DebitState.SPENT:
        return ALREADY_SPENT
    return _with_debits(ledger, [one for one in _debits(ledger) if one is not debit])


def correct_debits(ledger: MoveLedger, limits: DisruptionLimits, *, now: float) -> MoveLedger:
    """Date debits that are further in the future than clocks may differ to the latest credible time."""
    latest = now + limits.clock_skew
    wrong = {debit for debit in _debits(ledger) if (_entry_time(debit) or latest) > latest}
    if not wrong:
        return ledger
    time = write_micro_time(latest)
    return _with_debits(
        ledger,
        [msgspec.structs.replace(one, time=time) if one in wrong else one for one in _debits(ledger)],
    )


def prune_debits(ledger: MoveLedger, limits: DisruptionLimits, *, now: float) -> MoveLedger:
    """Drop the Spent debits that no longer count against any rate."""
    ledger = correct_debits(ledger, limits, now=now)
    time, longest = _time_of(ledger, now), _longest_period(limits)
    kept = [debit for debit in _debits(ledger) if _counted_until(debit, longest) > time]
    return _with_debits(ledger, kept)


def _debits(ledger: MoveLedger) -> tuple[Debit, ...]:
    return ledger.status.debits or ()


def _find(ledger: MoveLedger, move: str) -> Debit | None:
    return next((debit for debit in _debits(ledger) if debit.move == move), None)


def _with_debits(ledger: MoveLedger, debits: Iterable[Debit]) -> MoveLedger:
    return msgspec.structs.replace(ledger, status=LedgerStatus(tuple(debits) or None))


def _time_of(ledger: MoveLedger, now: float) -> float:
    """The clock of an earlier leader may be ahead of ours: time does not go back. The debits are correct."""
    entered = (_entry_time(debit) for debit in _debits(ledger))
    return max([now, *(time for time in entered if time is not None)])


def _entry_time(debit: Debit) -> float | None:
    try:
        return parse_time(debit.time)
    except ValueError:
        return None


def _counted_until(debit: Debit, period: float) -> float:
    time = _entry_time(debit)
    return math.inf if time is None or debit.state == DebitState.TENTATIVE else time + period


def _measure(rule: str, rate: Rate, debits: Iterable[Debit], time: float, clock_skew: float) -> RateWindow:
    ends = sorted(_counted_until(debit, rate.period + clock_skew) for debit in debits)
    counted = [end for end in ends if end > time]
    surplus = len(counted) - rate.limit
    opens_at = time if surplus < 0 else counted[surplus] if surplus < len(counted) else math.inf
    return RateWindow(rule, rate, len(counted), opens_at if math.isfinite(opens_at) else None)


def _longest_period(limits: DisruptionLimits) -> float:
    rates = (*limits.cluster, *limits.namespace, *limits.workload)
    return max((rate.period for rate in rates), default=0.0) + limits.clock_skew


def _first_end(debits: Iterable[Debit], limits: DisruptionLimits) -> float | None:
    first = min(_counted_until(debit, _longest_period(limits)) for debit in debits)
    return first if math.isfinite(first) else None
