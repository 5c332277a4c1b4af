"""Limits on the cost of a batch of debits: it does not grow with the ledger, which is read once.

What is compared stands in one process and is measured in CPU time, so a busy machine does not matter much.
"""

from functools import partial
from statistics import median

import msgspec
import pytest
from msgspec.structs import replace

from reberth.memory.ledger import (
    Disruption,
    add_debit,
    list_windows,
    mark_spent,
    refuse_disruption,
    return_debit,
    start_ledger,
)
from reberth.memory.ledger_slots import hash_name
from reberth.memory.rates import DisruptionLimits, Rate
from reberth.records import Debit, DebitState, LedgerSlot, LedgerStatus, MoveLedger
from reberth.values.timestamp import write_micro_time
from tests.support.cpu_cost import cost, few_collections
from tests.support.memory.ledger_histories import accepted
from tests.support.memory.objects import DAY, NOW

pytestmark = pytest.mark.speed

RATES = DisruptionLimits((Rate((100_000, DAY)),), (Rate((50_000, DAY)),), (Rate((3, DAY)),))
BATCH, SLOTS = 200, 80


def encode_ledger(debits: int, folded: int) -> bytes:
    """A ledger with open moves, and disruptions of as many workloads in slots."""
    of_slot = folded // SLOTS
    slots = tuple(
        LedgerSlot(
            write_micro_time(NOW - DAY + slot * 1000),
            of_slot,
            f"{hash_name('shop')}{of_slot}",
            " ".join(sorted(hash_name(f"uid-{slot * of_slot + number}") for number in range(of_slot))),
        )
        for slot in range(SLOTS)
    )
    opened = tuple(
        Debit(
            f"open-{number}",
            write_micro_time(NOW),
            DebitState.TENTATIVE,
            "shop",
            f"uid-{number}",
            "web",
            "uid",
        )
        for number in range(debits)
    )
    return msgspec.json.encode(replace(start_ledger(), status=LedgerStatus(opened, slots)))


def change(stored: bytes) -> None:
    """What one write of a busy leader changes; the first question reads the ledger."""
    found = msgspec.json.decode(stored, type=MoveLedger)
    for number in range(BATCH):
        new = Disruption(f"m-{number}", "shop", f"uid-new-{number}")
        assert refuse_disruption(found, RATES, new, now=NOW) is None
        assert len(list_windows(found, RATES, new, now=NOW)) == 3
        found = accepted(add_debit(found, RATES, new, now=NOW))
        found = accepted(mark_spent(found, f"open-{number}", limits=RATES, now=NOW))
    assert return_debit(found, "m-0") != found


def test_a_batch_costs_less_than_the_ledger_grows() -> None:
    small, large = encode_ledger(BATCH, 2_000), encode_ledger(8 * BATCH, 20_000)
    with few_collections():
        costs = [cost(lambda: change(large)) / cost(lambda: change(small)) for _ in range(7)]
    assert median(costs) < 5


def test_the_windows_of_many_workloads_cost_hardly_more_than_those_of_few() -> None:
    stored = encode_ledger(BATCH, 40_000)

    def ask(workloads: int) -> None:
        found = msgspec.json.decode(stored, type=MoveLedger)
        for number in range(workloads):
            list_windows(found, RATES, Disruption("", "shop", f"uid-{number}"), now=NOW)

    with few_collections():
        costs = [cost(partial(ask, 1_000)) / cost(partial(ask, 10)) for _ in range(7)]
    assert median(costs) < 5
