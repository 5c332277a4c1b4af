"""Who returns to an old copy gets back what it had there, and no replica is lost or doubled."""

from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from federation.api import GracefulEvictionTask, TargetCluster
from federation.failover.application_failover import CopyVerdict, FailoverReason
from federation.failover.application_tasks import has_replacement, with_evictions, write_return
from federation.failover.health_clock import ClockReader
from reberth.values.timestamp import write_time
from tests.support.federation.objects import NOW, claimed_binding, given

APPLICATION = {"application": {"decisionConditions": {}}}


def back(at: dict[str, int], had: int, before: tuple[str, ...], *, divided: bool = True) -> dict[str, int]:
    task = GracefulEvictionTask("old", replicas=had, clusters_before_failover=before)
    one = claimed_binding(clusters=given(**at), failover=APPLICATION)
    patch = write_return(one, [task], is_divided=divided, now=NOW)
    return {each["name"]: each["replicas"] for each in patch["spec"]["clusters"]}


@pytest.mark.parametrize(
    ("at", "before", "wanted"),
    [
        ({"new": 2}, ("old",), {"old": 2}),
        ({"new": 2, "other": 1}, ("old", "other"), {"old": 2, "other": 1}),
        ({"other": 3}, ("old", "other"), {"old": 2, "other": 1}),
        ({"new": 1, "other": 2}, ("old", "other"), {"old": 2, "other": 1}),
    ],
)
def test_divided_replicas_return_from_new_clusters_first(
    at: dict[str, int], before: tuple[str, ...], wanted: dict[str, int]
) -> None:
    assert back(at, 2, before) == wanted


def test_a_workload_that_is_whole_in_each_cluster_leaves_the_new_ones() -> None:
    assert back({"new": 3, "other": 3}, 3, ("old", "other"), divided=False) == {"old": 3, "other": 3}


@drawn(
    at=st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), st.integers(1, 9), min_size=1),
    before=st.sets(st.sampled_from(["a", "b"])),
    data=st.data(),
)
def test_no_replica_is_lost_or_doubled(at: dict[str, int], before: set[str], data: Any) -> None:
    had = data.draw(st.integers(0, sum(at.values())))
    found = back(at, had, ("old", *before))
    assert found["old"] == had
    assert sum(found.values()) == sum(at.values())
    assert all(count > 0 or name in {*before, "old"} for name, count in found.items())


@pytest.mark.parametrize(
    ("new", "divided", "enough"),
    [
        ({"m2": 3}, True, True),
        ({"m2": 2}, True, False),
        ({"m1": 1, "m2": 2}, True, False),
        ({"m2": 3, "m3": 3}, False, True),
        ({"m2": 3}, False, False),
        ({}, True, False),
    ],
)
def test_a_replacement_makes_up_for_all_that_leaves(
    new: dict[str, int], *, divided: bool, enough: bool
) -> None:
    one = claimed_binding(clusters=given(m1=3, m2=3), replicas=3)
    targets = [TargetCluster(name, count) for name, count in new.items()]
    assert has_replacement(one, targets, {"m1"}, is_divided=divided) is enough


@pytest.mark.parametrize(("new", "enough"), [(["m3"], False), (["m3", "m4"], True), (["m0", "m3"], False)])
def test_each_whole_copy_that_leaves_is_made_up_for_by_one_of_its_own(
    new: list[str], *, enough: bool
) -> None:
    one = claimed_binding(clusters=given(m0=3, m1=3, m2=3), replicas=3)
    targets = [TargetCluster(name, 3) for name in new]
    assert has_replacement(one, targets, {"m1", "m2"}, is_divided=False) is enough


def test_a_task_says_since_when_it_fails_and_who_made_it() -> None:
    one = claimed_binding(clusters=given(m1=3), failover={"application": {"purgeMode": "Never"}})
    due = CopyVerdict("m1", FailoverReason.DUE, since=NOW - 60)
    (task,) = with_evictions(one, [due], now=NOW).spec.graceful_eviction_tasks or ()
    assert task.message == f"It fails in m1 since {write_time(NOW - 60)}."
    assert (task.suppress_deletion, task.replicas) == (True, 3)


def test_a_clock_that_is_ahead_counts_from_when_it_was_first_seen() -> None:
    clocks = ClockReader(began=NOW, skew=5)
    ahead = write_time(NOW + 100)
    assert clocks.read("a", ahead, now=NOW + 10) == NOW + 10
    assert clocks.read("a", ahead, now=NOW + 50) == NOW + 10
    assert clocks.read("b", ahead, now=NOW + 50) == NOW + 50
    assert clocks.read("a", ahead, now=NOW + 200) == NOW + 10
    clocks.forget("a")
    assert clocks.read("a", ahead, now=NOW + 200) == NOW + 100
    assert clocks.read("a", write_time(NOW - 9), now=NOW) == NOW - 4, "another clock may have written it"
