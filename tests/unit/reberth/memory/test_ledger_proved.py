"""No window holds more disruptions than its rate, for any leaders and clocks."""

from itertools import product

import pytest

from reberth.memory import ledger, ledger_index, ledger_slots
from reberth.memory.ledger import (
    Disruption,
    add_debit,
    mark_spent,
    prune_debits,
    refuse_disruption,
    start_ledger,
)
from reberth.memory.rates import DisruptionLimits, Rate
from tests.support.memory.ledger_histories import accepted, planted, play
from tests.support.memory.objects import NOW
from tests.support.resumable_rounds import Proof

PERIOD = 20.0
CLOCKS = (0.0, 2.5, 5.0)


@pytest.mark.parametrize(("first", "second"), list(product(CLOCKS, CLOCKS)))
@pytest.mark.parametrize("until_evicted", [0.0, 10.0, 2 * PERIOD])
@pytest.mark.parametrize("until_marked", [0.0, 10.0, 2 * PERIOD])
def test_two_disruptions_are_a_period_apart_whichever_clocks_allow_them(
    first: float, second: float, until_evicted: float, until_marked: float
) -> None:
    """One a period, and a moment that every quarter of a second is tried for the next one."""
    one_a_period = DisruptionLimits(cluster=(Rate((1, PERIOD)),))
    evicted_at = NOW + until_evicted
    marked_at = evicted_at + until_marked
    entered = accepted(
        add_debit(start_ledger(), one_a_period, Disruption("m1", "shop", "uid-web"), now=NOW + first)
    )
    spent = accepted(mark_spent(entered, "m1", limits=one_a_period, now=marked_at + first))

    allowed = []
    for quarter in range(4 * 120):
        time = NOW + quarter / 4
        pruned = prune_debits(entered if time < marked_at else spent, one_a_period, now=time + second)
        if not refuse_disruption(
            pruned, one_a_period, Disruption("m2", "shop", "uid-web"), now=time + second
        ):
            allowed.append(time)

    assert min(allowed) >= evicted_at + PERIOD
    assert min(allowed) <= marked_at + PERIOD + 10


SAMPLE, HISTORIES, UNTIL_NOTICED = 100, 10_000, 400
FAULTS = {
    "a slot is held no longer than its oldest": (
        ledger_slots,
        "newest = max(slots, key=",
        "newest = min(slots, key=",
    ),
    "the time of a slot goes back to that of the last one that is folded": (
        ledger_slots,
        "newest = max(slots, key=lambda slot: date_entry(slot.time))",
        "newest = slots[-1]",
    ),
    "a count is lost where slots are merged": (
        ledger_slots,
        "sum(slot.count for slot in slots)",
        "max(slot.count for slot in slots)",
    ),
    "names are lost where slots are merged": (
        ledger_slots,
        "found.update(read_counts(text))",
        "found = found | Counter(read_counts(text))",
    ),
    "slots are too wide": (ledger_slots, "SHARE = 60", "SHARE = 12"),
    "slots are dropped when the shortest period is over": (
        ledger_slots,
        "self.has_passed(newest, self.spans[-1])",
        "self.has_passed(newest, self.spans[0])",
    ),
    "namespaces are dropped with workloads": (
        ledger_slots,
        "_is_dropped(newest, horizon.namespace, horizon)",
        "_is_dropped(newest, horizon.workload, horizon)",
    ),
    "the periods of other leaders are not kept": (
        ledger_slots,
        "return replace(limits, **added) if added else limits",
        "return limits",
    ),
    "the periods of others are kept no longer than from their first disruption": (
        ledger_slots,
        "if found.get(key, time) < time + key[1]:",
        "if key not in found:",
    ),
    "slots are dropped when debits are folded": (
        ledger,
        "fold(status.slots or (), spent,",
        "fold((), spent,",
    ),
    "a debit is folded and stays": (ledger, "or debit.move in kept]", "or debit.move]"),
    "a move is known for a shorter time": (
        ledger,
        "known = _remember(corrected, [move], until=latest + KEPT_SPENT",
        "known = _remember(corrected, [move], until=latest + 60",
    ),
    "moves are not known together": (ledger, "texts.insert(0, last.moves)", "pass"),
    "the clocks' difference is left out": (ledger, "span = rate.period + clock_skew", "span = rate.period"),
    "a disruption is dated when it was reserved": (
        ledger,
        "max(date_entry(debit.time), _find_begin(now, at))",
        "date_entry(debit.time)",
    ),
    "one more than the rate": (ledger, "if not window.left]", "if window.used > window.rate.limit]"),
    "what is added in a batch is not counted": (ledger_index, "name)) + changed", "name))"),
    "what is removed in a batch is counted": (ledger_index, "[(removed, -1)] if removed else []", "[]"),
}


def test_no_window_exceeds_its_rate_across_leader_changes_and_crashes() -> None:
    made, full = play(range(SAMPLE))
    assert made > 10 * SAMPLE
    assert full > SAMPLE  # the rates are what held them back


@pytest.mark.parametrize("fault", FAULTS)
def test_the_histories_notice_a_fault(fault: str) -> None:
    with planted(*FAULTS[fault]), pytest.raises(AssertionError):
        play(range(UNTIL_NOTICED))


@pytest.mark.soak
def test_no_window_holds_more_than_its_rate_in_ten_thousand_histories() -> None:
    proof = Proof("windows")
    numbers = proof.remaining(range(HISTORIES))
    made, full = play(numbers)
    proof.note(numbers)
    print(f"\n{len(proof.passed())} histories; in this run {made} disruptions and {full} full windows")
