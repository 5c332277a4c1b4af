"""No more than two moves a minute are refused, and moves that are granted do not limit each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reberth.records import EvictionHistory, HistoryStatus, ObjectMeta, RememberedRefusal
from reberth.values.timestamp import write_micro_time
from rescheduler.model.standing import Standing, TriesLeft
from rescheduler.moves.try_budget import MOST_TRIES, MOST_TRUSTED, PERIOD, TryBudget, list_refused_at

NOW = 1_000_000.0
PROVEN, UNKNOWN, REFUSED = Standing


def refuse(budget: TryBudget, standing: Standing, now: float) -> bool:
    """A whole try that is refused; False: there was none left."""
    attempt = budget.begin(standing, now)
    if attempt:
        attempt.refuse(now)
    return attempt is not None


def test_two_tries_may_be_reserved_and_granted_ones_are_given_back() -> None:
    budget = TryBudget()
    first, second = budget.begin(UNKNOWN, NOW), budget.begin(UNKNOWN, NOW)
    assert first
    assert second
    assert budget.begin(UNKNOWN, NOW) is None
    assert budget.is_asking
    first.grant(NOW)
    second.drop()
    assert not budget.is_asking
    assert budget.begin(UNKNOWN, NOW)


def test_a_try_ends_once() -> None:
    budget = TryBudget()
    attempt = budget.begin(UNKNOWN, NOW)
    assert attempt
    attempt.refuse(NOW)
    attempt.refuse(NOW)
    attempt.grant(NOW)
    attempt.drop()
    assert refuse(budget, UNKNOWN, NOW)
    assert not refuse(budget, UNKNOWN, NOW)


def test_a_refused_try_is_used_up_for_a_minute() -> None:
    budget = TryBudget()
    assert [refuse(budget, UNKNOWN, NOW + at) for at in (0, 10, 20, 59.9, 60, 61, 70)] == [
        *(True, True, False, False, True, False, True),
    ]


def test_workloads_that_were_refused_wait_for_unknown_ones() -> None:
    budget = TryBudget()
    assert budget.find_left(NOW) == TriesLeft()
    assert refuse(budget, UNKNOWN, NOW)
    assert budget.find_left(NOW) == TriesLeft(unknown=True, repeated=False)
    assert not refuse(budget, REFUSED, NOW + PERIOD)
    assert refuse(budget, REFUSED, NOW + 2 * PERIOD)
    assert not refuse(budget, REFUSED, NOW + 2 * PERIOD)
    assert refuse(budget, UNKNOWN, NOW + 2 * PERIOD)
    assert budget.find_left(NOW + 2 * PERIOD) == TriesLeft(unknown=False, repeated=False)


def test_one_repeated_try_is_made_at_a_time() -> None:
    budget = TryBudget()
    assert budget.begin(REFUSED, NOW)
    assert budget.begin(REFUSED, NOW) is None
    assert budget.begin(UNKNOWN, NOW)


def test_proven_workloads_need_no_try_until_several_of_them_are_refused() -> None:
    budget = TryBudget()
    assert refuse(budget, UNKNOWN, NOW)
    assert refuse(budget, PROVEN, NOW)
    assert not refuse(budget, UNKNOWN, NOW)
    healthy = budget.begin(PROVEN, NOW)
    assert healthy
    healthy.grant(NOW)
    assert refuse(budget, PROVEN, NOW)
    assert not budget.find_left(NOW).trusts_proven
    assert not refuse(budget, PROVEN, NOW)
    assert [refuse(budget, PROVEN, NOW + PERIOD) for _ in range(3)] == [True, True, False]


def test_a_burst_of_proven_workloads_begins_small_and_grows_with_its_grants() -> None:
    """If something new refuses all of them, it has refused two when they stop."""
    budget, granted, rounds = TryBudget(), 0, 0
    while granted < 100:
        begun = []
        while attempt := budget.begin(PROVEN, NOW):
            begun.append(attempt)
        for attempt in begun[:-1]:
            attempt.grant(NOW)
        waiting = budget.begin(PROVEN, NOW)  # so that the burst does not end
        assert waiting
        begun[-1].grant(NOW)
        waiting.grant(NOW)
        granted, rounds = granted + len(begun) + 1, rounds + 1
    assert granted >= 100
    assert [refuse(budget, PROVEN, NOW) for _ in range(3)] == [True, True, False]


def test_no_more_proven_workloads_ask_at_once_than_something_new_may_refuse() -> None:
    budget = TryBudget()
    waiting = budget.begin(PROVEN, NOW)  # so that the burst does not end
    for _ in range(5 * MOST_TRUSTED):
        attempt = budget.begin(PROVEN, NOW)
        assert attempt
        attempt.grant(NOW)
    begun = [budget.begin(PROVEN, NOW) for _ in range(MOST_TRUSTED)]
    assert [attempt is not None for attempt in (waiting, *begun)] == [True] * MOST_TRUSTED + [False]


def test_a_pod_that_has_just_gone_foretells_nothing_of_other_moves() -> None:
    """Its refusal uses up a try all the same."""
    budget = TryBudget()
    for standing in (PROVEN, PROVEN):
        attempt = budget.begin(standing, NOW)
        assert attempt
        attempt.refuse(NOW, foretells=False)
    assert budget.find_left(NOW) == TriesLeft(unknown=False, repeated=False)
    assert budget.begin(PROVEN, NOW)


def test_refusals_from_the_future_are_of_a_clock_that_was_set_back() -> None:
    budget = TryBudget([NOW + 3600, NOW + 3601])
    assert refuse(budget, UNKNOWN, NOW + 3600 - PERIOD - 6)
    assert [refuse(budget, UNKNOWN, NOW) for _ in range(3)] == [True, True, False]
    assert refuse(budget, REFUSED, NOW + 2 * PERIOD)


def test_a_grant_after_a_minute_restores_the_trust() -> None:
    budget = TryBudget()
    for _ in range(2):
        refuse(budget, PROVEN, NOW)
    for at, trusts in ((1, False), (PERIOD, True)):
        attempt = budget.begin(PROVEN, NOW + PERIOD)
        assert attempt
        attempt.grant(NOW + at)
        assert budget.find_left(NOW + at).trusts_proven == trusts


@given(st.lists(st.tuples(st.floats(0, 30), st.sampled_from([UNKNOWN, REFUSED])), max_size=60))
def test_no_minute_has_more_refusals_than_tries(steps: list[tuple[float, Standing]]) -> None:
    budget, now, refused = TryBudget(), NOW, list[float]()
    for pause, standing in steps:
        now += pause
        if refuse(budget, standing, now):
            refused.append(now)
    assert all(sum(at <= one < at + PERIOD for one in refused) <= MOST_TRIES for at in refused)


def test_a_new_leader_counts_what_the_earlier_ones_were_refused() -> None:
    times = [write_micro_time(NOW - ago) for ago in (61, 30, 5, -3600)]
    entries = tuple(RememberedRefusal("EvictionRefused", time, time) for time in times)
    history = EvictionHistory(ObjectMeta(), status=HistoryStatus(refused=entries))
    found = list_refused_at([history, EvictionHistory(ObjectMeta())], NOW)
    assert found == [NOW - 30, NOW - 5]
    budget = TryBudget(found)
    assert not refuse(budget, UNKNOWN, NOW)
    assert refuse(budget, UNKNOWN, NOW + 30)


@pytest.mark.parametrize(
    ("left", "standings"),
    [
        (TriesLeft(), {PROVEN, UNKNOWN, REFUSED}),
        (TriesLeft(repeated=False), {PROVEN, UNKNOWN}),
        (TriesLeft(unknown=False, repeated=False), {PROVEN}),
        (TriesLeft(unknown=False, repeated=False, trusts_proven=False), set()),
        (TriesLeft(trusts_proven=False), {PROVEN, UNKNOWN, REFUSED}),
    ],
)
def test_a_plan_knows_for_whom_tries_are_left(left: TriesLeft, standings: set[Standing]) -> None:
    assert {one for one in Standing if left.has_for(one)} == standings
