"""Clusters that a workload was evicted from, because it failed there, do not get it back for a while."""

from typing import Any

import pytest

from federation.api import ResourceBinding, TargetCluster
from federation.api.eviction_blocks import find_blocks
from federation.scheduling import Reason
from reberth.values.timestamp import write_time
from tests.support.federation.clusters import AGGREGATED, DUPLICATED, binding, cluster, decided, placed
from tests.support.federation.objects import NOW

AT = NOW - 100


def evicted(
    *clusters: str, seconds: int = 600, at: float = AT, placement: Any = AGGREGATED, **more: Any
) -> ResourceBinding:
    history = [{"clusterName": name, "creationTimestamp": write_time(at)} for name in clusters]
    failover = {"application": {"decisionConditions": {}, "blockPredecessorSeconds": seconds}}
    return binding(2, placement, failover=failover, activeEvictionHistory=history, **more)


FLEET = [cluster("m1", 100), cluster("m2", 50)]


def test_a_blocked_cluster_gets_nothing_and_the_end_of_its_block_is_told() -> None:
    decision = decided(evicted("m1"), *FLEET)
    assert decision.clusters == (TargetCluster("m2", 2),)
    assert decision.verdicts["m1"].reasons == {"EvictionHistory": "cluster(s) is blocked after an eviction"}
    assert decision.look_at == AT + 600


def test_a_block_holds_for_a_fresh_scheduling() -> None:
    fresh = evicted("m1", clusters=[{"name": "m2", "replicas": 2}], rescheduleTriggeredAt=write_time(NOW))
    assert placed(fresh, *FLEET) == {"m2": 2}


@pytest.mark.parametrize("fresh", [{}, {"rescheduleTriggeredAt": write_time(NOW)}])
def test_a_block_that_is_made_longer_takes_no_copy_away_that_is_there_again(fresh: dict[str, str]) -> None:
    there = evicted("m1", seconds=0, clusters=[{"name": "m1", "replicas": 2}], placement=DUPLICATED, **fresh)
    assert placed(there, *FLEET) == {"m1": 2, "m2": 2}


def test_a_block_holds_for_a_cluster_that_it_is_about_to_leave() -> None:
    task = {"fromCluster": "m1", "purgeMode": "Gracefully"}
    left = evicted("m1", clusters=[{"name": "m1", "replicas": 2}], gracefulEvictionTasks=[task])
    assert "EvictionHistory" in decided(left, *FLEET).verdicts["m1"].reasons


def test_when_all_clusters_are_blocked_it_stays_and_looks_again_when_the_first_block_ends() -> None:
    decision = decided(evicted("m1", "m2", clusters=[{"name": "m3", "replicas": 1}]), *FLEET)
    assert decision.reason is Reason.NO_CLUSTER_FIT
    assert decision.message == "0/2 clusters are available: 2 cluster(s) is blocked after an eviction."
    assert decision.clusters == (TargetCluster("m3", 1),)
    assert decision.look_at == AT + 600


@pytest.mark.parametrize(
    ("at", "seconds", "is_blocked"),
    [
        (NOW - 600, 600, False),
        (NOW - 599, 600, True),
        (NOW - 10**8, 0, True),
        (NOW + 10**6, 60, True),
        (NOW - 10, 0, True),
    ],
)
def test_a_block_lasts_as_long_as_the_policy_says_now(at: float, seconds: int, *, is_blocked: bool) -> None:
    assert ("m1" in find_blocks(evicted("m1", at=at, seconds=seconds), now=NOW)) is is_blocked


def test_a_block_for_ever_never_ends() -> None:
    assert decided(evicted("m1", seconds=0), *FLEET).look_at is None


@pytest.mark.parametrize(("fruitless", "seconds"), [(0, 600), (1, 1200), (3, 4800), (60, 86400)])
def test_each_fruitless_move_doubles_the_block_up_to_a_day(fruitless: int, seconds: int) -> None:
    entry = {"clusterName": "m1", "creationTimestamp": write_time(AT), "fruitless": fruitless}
    failover = {"application": {"decisionConditions": {}}}
    one = binding(2, AGGREGATED, failover=failover, activeEvictionHistory=[entry])
    assert find_blocks(one, now=NOW) == {"m1": AT + seconds}


def test_an_entry_whose_time_is_missing_or_spelt_as_before_is_read() -> None:
    entries = [{"clusterName": "m1"}, {"clusterName": "m2", "createTimestamp": write_time(AT)}]
    failover = {"application": {"decisionConditions": {}}}
    one = binding(2, AGGREGATED, failover=failover, activeEvictionHistory=entries)
    assert find_blocks(one, now=NOW) == {"m2": AT + 600}


def test_without_application_failover_a_history_blocks_nothing() -> None:
    one = binding(
        2, AGGREGATED, activeEvictionHistory=[{"clusterName": "m1", "creationTimestamp": write_time(AT)}]
    )
    assert find_blocks(one, now=NOW) == {}
