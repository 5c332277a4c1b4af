"""The worth of moves, in simple numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reberth.values.duration import Percentage
from rescheduler.planning.worth import (
    LEVELS,
    MoveFacts,
    PriceSettings,
    appraise,
    find_buffer,
    find_threshold,
    grade,
)

PRICES = PriceSettings()
PLAIN = MoveFacts(
    age=1e9,
    priority=0,
    deletion_cost=0,
    share=0.0,
    time_to_ready=None,
    replicas=10**9,
    allowed=None,
    chance=1.0,
    keeps_node=0.0,
)

numbers = st.floats(0, 1e6)
all_facts = st.builds(
    MoveFacts,
    age=st.floats(-10, 1e9),
    priority=st.integers(-(2**31), 2**31 - 1),
    deletion_cost=st.integers(-(2**31), 2**31 - 1),
    share=st.floats(0, 1),
    time_to_ready=st.one_of(st.none(), st.floats(0, 1e5)),
    replicas=st.integers(0, 1000),
    allowed=st.one_of(st.none(), st.integers(0, 1000)),
    chance=st.floats(0, 1),
    keeps_node=st.floats(0, 1),
)


@pytest.mark.parametrize(
    ("facts", "worth"),
    [
        (PLAIN, 100 - 5 - 2),
        (PLAIN._replace(age=0), 50 - 7),
        (PLAIN._replace(age=3600), 75 - 7),
        (PLAIN._replace(share=0.5), 93 - 5),
        (PLAIN._replace(time_to_ready=300), 95 - 10),
        (PLAIN._replace(replicas=1), 93 - 20),
        (PLAIN._replace(replicas=0), 93 - 20),
        (PLAIN._replace(replicas=4), 93 - 5),
        (PLAIN._replace(allowed=0), 93 - 10),
        (PLAIN._replace(allowed=2), 93 - 5),
        (PLAIN._replace(chance=0.5), 93 - 10),
        (PLAIN._replace(deletion_cost=2**27), 93 - 5),
        (PLAIN._replace(deletion_cost=-(2**27)), 93 + 5),
        (PLAIN._replace(priority=2**25), 93 - 5),
        (PLAIN._replace(deletion_cost=2**31 - 1, priority=2**30), 93 - 45),
    ],
)
def test_every_fact_has_its_price(facts: MoveFacts, worth: float) -> None:
    assert appraise(100, facts, PRICES, demanded=False).total == pytest.approx(worth, abs=0.01)


def test_a_demanded_moves_gain_is_not_discounted() -> None:
    assert appraise(100, PLAIN._replace(age=0), PRICES, demanded=True).total == pytest.approx(93)


@given(numbers, all_facts, st.booleans())
def test_costs_and_risks_are_never_negative(gain: float, facts: MoveFacts, demanded: bool) -> None:  # noqa: FBT001 - drawn
    worth = appraise(gain, facts, PRICES, demanded=demanded)
    assert worth.cost >= 0
    assert worth.risk >= 0
    assert 0.5 <= worth.lasting <= 1
    assert worth.total <= gain


@pytest.mark.parametrize(("total", "level"), [(30, 2), (29, 3), (20, 3), (10, 4), (2, 5), (1, None)])
def test_a_level_is_the_most_cautious_that_makes_the_move(total: float, level: int | None) -> None:
    worth = appraise(total + 7, PLAIN, PRICES, demanded=False)._replace(lasting=1.0, risk=0.0)
    assert grade(worth, demanded=False) == level


def test_a_demanded_move_has_level_one_unless_it_costs_more_than_it_gains() -> None:
    assert grade(appraise(100, PLAIN, PRICES, demanded=True), demanded=True) == 1
    assert grade(appraise(1, PLAIN, PRICES, demanded=True), demanded=True) is None


def test_each_level_requires_less_worth_and_a_smaller_buffer() -> None:
    worths = [LEVELS[number].worth for number in (2, 3, 4, 5)]
    assert worths == sorted(worths, key=lambda worth: -(worth or 0))
    assert [LEVELS[number].buffer for number in range(1, 6)] == [0.5, 0.5, 0.25, 0.1, 0.0]


def test_worth_and_buffer_take_precedence_over_the_level() -> None:
    assert (find_threshold(1, None), find_threshold(1, 5.0), find_threshold(3, None)) == (None, 5.0, 20)
    assert (find_buffer(3, None), find_buffer(3, Percentage(0.0))) == (0.25, 0.0)
