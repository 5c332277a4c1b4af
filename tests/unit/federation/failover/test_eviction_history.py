from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from federation.api import ResourceBinding
from federation.failover.eviction_history import (
    MOST_ENTRIES,
    GiveUpRules,
    add_evictions,
    count_fruitless,
    find_end_of_giving_up,
    forget_evictions,
    prune_history,
)
from federation.failover.health_clock import HealthClock
from reberth.values.timestamp import write_time
from tests.support.federation.objects import NOW, claimed_binding

RULES = GiveUpRules()
HOUR = 3600.0


def entry(name: str, age: float, fruitless: int = 0, reason: str = "ApplicationFailure") -> dict[str, Any]:
    made = {"clusterName": name, "creationTimestamp": write_time(NOW - age), "reason": reason}
    return made | ({"fruitless": fruitless} if fruitless else {})


def past(*entries: dict[str, Any], seconds: int = 600) -> ResourceBinding:
    application = {"decisionConditions": {}, "blockPredecessorSeconds": seconds}
    return claimed_binding(activeEvictionHistory=list(entries), failover={"application": application})


def clock(reported: float, *, settled: bool = False, failing: float | None = None) -> HealthClock:
    return HealthClock(
        write_time(NOW - reported), settled, None if failing is None else write_time(NOW - failing)
    )


def fruitless(one: ResourceBinding, copy: HealthClock, cluster: str = "m2") -> int:
    return count_fruitless(one, cluster, copy, RULES, now=NOW)


def test_a_move_brought_nothing_if_the_copy_that_it_made_was_never_healthy() -> None:
    assert fruitless(past(entry("m1", 100)), clock(90)) == 1
    assert fruitless(past(entry("m1", 100, 3)), clock(90)) == 4
    assert fruitless(past(entry("m1", 100, 3)), clock(90, settled=True)) == 0


def test_what_was_there_before_the_move_says_nothing_of_it() -> None:
    assert fruitless(past(), clock(90)) == 0
    assert fruitless(past(entry("m1", 100)), clock(200)) == 0
    assert fruitless(past(entry("m1", 100, reason="Other")), clock(90)) == 0
    assert fruitless(past(entry("m1", 49 * HOUR, 3)), clock(90)) == 0


def test_a_return_to_a_copy_that_still_fails_brought_nothing() -> None:
    both = past(entry("m2", 900), entry("m1", 100, 1))
    assert fruitless(both, clock(2000, settled=True, failing=1000)) == 2
    assert fruitless(both, clock(2000, settled=True, failing=50)) == 0


def test_it_is_given_up_for_a_day_after_two_such_moves() -> None:
    one = past(entry("m1", 100, 1))
    assert find_end_of_giving_up(one, 1, RULES, now=NOW) is None
    assert find_end_of_giving_up(one, 2, RULES, now=NOW) == NOW - 100 + 24 * HOUR
    assert find_end_of_giving_up(past(entry("m1", 25 * HOUR, 1)), 2, RULES, now=NOW) is None


def test_a_cluster_has_one_entry_of_its_newest_eviction() -> None:
    found = add_evictions(past(entry("m1", 900), entry("m2", 800)), {"m1": 2}, RULES, now=NOW)
    assert [(each.cluster_name, each.fruitless) for each in found] == [("m2", 0), ("m1", 2)]
    assert found[-1].creation_timestamp == write_time(NOW)


def test_entries_are_forgotten_when_they_count_for_nothing_any_more() -> None:
    old, young = entry("m1", 49 * HOUR), entry("m2", HOUR)
    assert [each.cluster_name for each in prune_history(past(old, young), None, RULES, now=NOW)] == ["m2"]
    for_ever = past(old, young, seconds=0)
    assert len(prune_history(for_ever, None, RULES, now=NOW)) == 2
    assert [each.cluster_name for each in prune_history(for_ever, {"m1"}, RULES, now=NOW)] == ["m1"]
    assert prune_history(claimed_binding(activeEvictionHistory=[young]), None, RULES, now=NOW) == ()


def test_a_cluster_to_which_it_returned_is_forgotten() -> None:
    assert [each.cluster_name for each in forget_evictions(past(entry("a", 1), entry("b", 2)), ["a"])] == [
        "b"
    ]


@drawn(
    ages=st.lists(st.integers(0, 400_000), max_size=80),
    evicted=st.sets(st.sampled_from(["m1", "m2", "x"]), min_size=1),
    seconds=st.sampled_from([0, 1, 600, 10**6]),
)
def test_a_history_is_bounded_and_has_each_cluster_once(
    ages: list[int], evicted: set[str], seconds: int
) -> None:
    one = past(*(entry(f"m{number}", age) for number, age in enumerate(ages)), seconds=seconds)
    found = add_evictions(one, dict.fromkeys(evicted, 0), RULES, now=NOW)
    names = [each.cluster_name for each in found]
    assert len(names) == len(set(names)) <= MOST_ENTRIES
    assert evicted <= set(names)


@pytest.mark.parametrize("odd", [{"clusterName": "m1"}, {"clusterName": "m1", "creationTimestamp": "soon"}])
def test_an_entry_that_another_program_wrote_badly_is_no_obstacle(odd: Any) -> None:
    one = past({**odd, "reason": "ApplicationFailure"})
    assert fruitless(one, clock(90)) == 0
    assert prune_history(one, None, RULES, now=NOW) == ()
