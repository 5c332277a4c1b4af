"""Days with 50,000 disruptions: the ledger is never full, and stays below its bound in bytes."""

import pytest

from reberth.memory.ledger import MOST_BYTES
from tests.support.memory.ledger_days import Days, play_days


def check_days(made: Days, hours: float) -> None:
    assert not made.full
    assert made.writes < 10 * 3600 * hours
    assert made.largest < made.estimated < MOST_BYTES
    assert made.slots < 300
    happened, counted = made.count_lately()
    assert happened <= counted < 1.03 * happened


def test_an_hour_of_a_day_with_fifty_thousand_disruptions_is_counted_in_full() -> None:
    made = play_days(1 / 24, stored_every=60)
    check_days(made, 1)
    assert made.disruptions > 1_900


@pytest.mark.soak
def test_three_days_with_fifty_thousand_disruptions_each() -> None:
    made = play_days(3)
    check_days(made, 72)
    assert made.disruptions > 140_000
    print(
        f"\n{made.disruptions} disruptions, {made.refused} refused; at most {made.largest} bytes sent,"
        f" {made.estimated} expected in etcd, {made.slots} slots; {made.writes / 259_200:.2f} writes a"
        f" second; CPU: {made.seconds / made.writes * 1000:.2f} ms a write, and"
        f" {made.storing_seconds / made.stored * 1000:.1f} ms to encode, decode and index the ledger"
    )
