"""How replicas are divided and rounded, how much room there is: the cases S-01 to S-33."""

from typing import Any

import pytest

from federation.api import Cluster, ResourceSummary
from federation.scheduling.fleet import PODS, estimate, read_request, read_room, take
from federation.scheduling.rounding import divide, prefers_last_name
from reberth.values.quantity import UNIT
from tests.support.federation.clusters import (
    AGGREGATED,
    DUPLICATED,
    DYNAMIC,
    binding,
    cluster,
    decided,
    placed,
    rooms,
    triggered_binding,
    weighted,
)

EVEN = "a70ba73a-303a-4095-b904-d17c6d23a446"


def spread_over(*replicas: int) -> dict[str, int]:
    return {f"m{number}": count for number, count in enumerate(replicas, 1) if count}


@pytest.mark.parametrize(
    ("placement", "replicas", "expected"),
    [
        pytest.param(weighted(m1=3, m2=2, m3=1), 12, (6, 4, 2), id="S-01a"),
        pytest.param(weighted(m1=3, m2=2, m3=1), 13, (7, 4, 2), id="S-01b"),
        pytest.param(weighted(m1=3, m2=2, m3=1), 14, (7, 5, 2), id="S-01c"),
        pytest.param(weighted(), 12, (4, 4, 4), id="S-02"),
        pytest.param(weighted(other=2), 12, (4, 4, 4), id="S-02 no cluster is named"),
        pytest.param(weighted(m1=1), 2, (2,), id="S-07"),
        pytest.param(DUPLICATED, 2, (2, 2, 2), id="S-26"),
        pytest.param({}, 2, (2, 2, 2), id="S-26 no division is said"),
        pytest.param({"replicaScheduling": {}}, 3, (1, 1, 1), id="S-58"),
    ],
)
def test_replicas_are_divided_by_weights_or_not_at_all(
    placement: dict[str, Any], replicas: int, expected: tuple[int, ...]
) -> None:
    assert placed(binding(replicas, placement), *rooms(0, 0, 0)) == spread_over(*expected)


def test_s_03_an_odd_replica_goes_to_the_first_name() -> None:
    assert placed(binding(3, weighted(m1=1, m2=1)), *rooms(0, 0)) == {"m1": 2, "m2": 1}


def test_s_05_new_weights_count_in_full() -> None:
    alike, other = weighted(m1=1, m2=1, m3=1, m4=1), weighted(m1=2, m2=1, m3=1, m4=1)
    four = rooms(0, 0, 0, 0)
    before = placed(binding(6, alike), *four)
    assert before == spread_over(2, 2, 1, 1)
    assert placed(binding(6, other, at=before, applied=alike), *four) == spread_over(3, 1, 1, 1)


@pytest.mark.parametrize(
    ("seats", "expected"),
    list(enumerate(["A", "AB", "AAB", "AABC", "AABBC", "AABBCD", "AAABBCD", "AAABBBCD"], 1)),
)
def test_s_09_seats_are_given_one_after_another(seats: int, expected: str) -> None:
    shares = divide(seats, {"A": 100_000, "B": 80_000, "C": 30_000, "D": 20_000})
    assert shares == {party: expected.count(party) for party in "ABCD"}


def test_s_10_a_tie_goes_to_the_cluster_with_fewer_seats() -> None:
    assert divide(1, {"A": 3, "B": 1}) == {"A": 1, "B": 0}
    assert divide(2, {"A": 3, "B": 1}) == {"A": 1, "B": 1}


def test_s_11_a_cluster_with_replicas_and_no_room_keeps_them() -> None:
    assert placed(binding(5, DYNAMIC, at={"m2": 3}), *rooms(100, 0)) == {"m1": 2, "m2": 3}


@pytest.mark.parametrize(("uid", "expected"), [("", "m1"), (EVEN, "m1"), ("b", "m2")])
def test_s_12_equal_weights_are_ordered_by_the_uid(uid: str, expected: str) -> None:
    shares = placed(binding(3, weighted(m1=1, m2=1), uid=uid), *rooms(0, 0))
    assert shares[expected] == 2


def test_s_12_the_parity_is_that_of_fnv_1a() -> None:
    assert [prefers_last_name(text) for text in ("a", "b", "foobar", EVEN, "")] == [
        bool(digest % 2) for digest in (0xE40C292C, 0xE70C2DE5, 0xBF9CF968, 0, 0)
    ]


@pytest.mark.parametrize(
    ("placement", "available", "expected"),
    [
        pytest.param(DYNAMIC, (18, 12, 6), (6, 4, 2), id="S-14a"),
        pytest.param(DYNAMIC, (20, 12, 6), (6, 4, 2), id="S-14b"),
        pytest.param(DYNAMIC, (6, 12, 6), (3, 6, 3), id="S-14c"),
        pytest.param(AGGREGATED, (12, 6, 6), (12,), id="S-16a"),
        pytest.param(AGGREGATED, (6, 6, 6), (6, 6), id="S-16b"),
    ],
)
def test_twelve_replicas_are_divided_by_room(
    placement: dict[str, Any], available: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    assert placed(binding(12, placement), *rooms(*available)) == spread_over(*expected)


@pytest.mark.parametrize(
    ("placement", "at", "available", "replicas", "expected"),
    [
        pytest.param(DYNAMIC, (2, 4, 6), (1, 1, 1), 6, (1, 2, 3), id="S-18"),
        pytest.param(AGGREGATED, (4, 8), (1, 1), 6, (0, 6), id="S-20a"),
        pytest.param(AGGREGATED, (4, 8), (100, 100), 8, (0, 8), id="S-20b"),
        pytest.param(AGGREGATED, (3, 2), (10, 1), 5, (3, 2), id="S-24 steady"),
    ],
)
def test_steady_division_moves_only_what_must_move(
    placement: dict[str, Any],
    at: tuple[int, ...],
    available: tuple[int, ...],
    replicas: int,
    expected: tuple[int, ...],
) -> None:
    asked = binding(replicas, placement, at=spread_over(*at))
    assert placed(asked, *rooms(*available)) == spread_over(*expected)


def test_s_22_replicas_of_a_lost_cluster_are_added_where_there_is_capacity() -> None:
    asked = binding(24, AGGREGATED, at={"m1": 4, "m2": 8})
    clusters = [cluster("m1", 4), cluster("m3", 8), cluster("m4", 12)]
    assert placed(asked, *clusters) == {"m1": 7, "m3": 7, "m4": 10}


def test_s_24_freshly_all_replicas_are_divided_anew() -> None:
    assert placed(triggered_binding(5, AGGREGATED, at={"m1": 3, "m2": 2}), *rooms(10, 1)) == {"m1": 5}


def test_aggregated_replicas_grow_where_they_are() -> None:
    assert placed(binding(4, AGGREGATED, at={"m1": 2}), *rooms(5, 50)) == {"m1": 4}


def test_s_27_a_workload_without_replicas_goes_to_all_selected_clusters() -> None:
    assert placed(binding(0, DUPLICATED), *rooms(0, 0)) == {"m1": 0, "m2": 0}
    assert placed(binding(0, DYNAMIC, at={"m1": 0}), *rooms(0, 0)) == {"m1": 0, "m2": 0}


REQUEST: dict[str, Any] = {"replicaRequirements": {"resourceRequest": {"cpu": "100m"}}}


@pytest.mark.parametrize("placement", [DYNAMIC, AGGREGATED, weighted(m1=1, m2=1)])
def test_s_28_b_a_workload_scaled_to_nothing_stays_placed(placement: dict[str, Any]) -> None:
    assert placed(binding(0, placement, at={"m2": 5}, **REQUEST), *rooms(9, 9)) == {"m2": 0}
    assert placed(binding(0, placement, at={"gone": 5}, **REQUEST), *rooms(9, 9)) == {"m1": 0, "m2": 0}


def test_a_workload_of_several_parts_is_not_divided() -> None:
    parts = [{"name": "job", "replicas": 1}, {"name": "task", "replicas": 3}]
    assert placed(binding(4, DYNAMIC, components=parts), *rooms(9, 9)) == {"m1": 0, "m2": 0}


def test_too_little_capacity_is_reported_with_its_size() -> None:
    decision = decided(binding(6, DYNAMIC, at={"m1": 1}), *rooms(2, 2))
    assert (decision.reason, decision.retry) == ("Unschedulable", True)
    assert decision.message == "Clusters available replicas 4 are not enough to schedule."
    assert {target.name: target.replicas for target in decision.clusters} == {"m1": 1}


SUMMARY = ResourceSummary(
    allocatable={"pods": "100", "cpu": "4", "memory": "8Gi"},
    allocated={"pods": "20", "cpu": "1", "memory": "2Gi"},
)
HALF = read_request({"cpu": "500m", "memory": "1Gi"})


def test_s_29_capacity_is_limited_by_the_scarcest_resource() -> None:
    room = read_room(SUMMARY)
    assert estimate(room, HALF) == 6
    on_their_way = {name: 2 * amount for name, amount in HALF} | {PODS: 2 * UNIT}
    assert estimate(take(room, on_their_way), HALF) == 4


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        pytest.param(ResourceSummary({"pods": 100}, {"pods": 10}, {"pods": 40}), 50, id="S-30a"),
        pytest.param(ResourceSummary({"pods": 100}, {"pods": 20}, {"pods": 90}), 0, id="S-30b"),
        pytest.param(ResourceSummary(), 0, id="S-30c"),
        pytest.param(None, 0, id="no summary"),
    ],
)
def test_s_30_without_requests_the_pods_count(summary: ResourceSummary | None, expected: int) -> None:
    assert estimate(read_room(summary), ()) == expected


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"cpu": "250m"}, 12),
        ({"cpu": "3001m"}, 0),
        ({"nvidia.com/gpu": 1}, 0),
        ({"cpu": 0, "memory": "4Gi"}, 1),
        ({"memory": "5Gi"}, 1),
        ({"memory": "7Gi"}, 0),
    ],
)
def test_a_request_is_compared_in_thousandths_of_cpu_and_whole_bytes(
    asked: dict[str, Any], expected: int
) -> None:
    assert estimate(read_room(SUMMARY), read_request(asked)) == expected


def test_s_33_resource_sums_count_and_resource_models_do_not() -> None:
    models = {"allocatableModelings": [{"grade": 0, "count": 9}]}
    summary = {"allocatable": {"pods": 7}}
    plain = cluster("m1", status={"resourceSummary": summary})
    modeled: Cluster = cluster("m2", status={"resourceSummary": summary | models})
    verdicts = decided(binding(3, DYNAMIC), plain, modeled).verdicts
    assert {name: verdict.available for name, verdict in verdicts.items()} == {"m1": 7, "m2": 7}


LEAVING = cluster("m1", 100, leaving=True)
TAINTED_M1 = cluster("m1", 100, taints=["gone=soon:NoExecute"])
BRIEFLY = {"clusterTolerations": [{"key": "gone", "operator": "Exists", "tolerationSeconds": 60}]}


@pytest.mark.parametrize("placement", [AGGREGATED, DYNAMIC, weighted(m1=9, m2=1)])
@pytest.mark.parametrize("left", [LEAVING, TAINTED_M1], ids=["deleted", "tainted"])
def test_a_cluster_that_a_workload_leaves_gets_no_more_replicas(
    placement: dict[str, Any], left: Cluster
) -> None:
    has = binding(6, placement, at={"m1": 2}, applied=placement)
    assert placed(has, left, cluster("m2", 8)) == {"m1": 2, "m2": 4}
    brief = {**placement, **BRIEFLY}
    assert placed(binding(6, brief, at={"m1": 2}, applied=brief), left, cluster("m2", 8)) == {
        "m1": 2,
        "m2": 4,
    }


@pytest.mark.parametrize("placement", [AGGREGATED, DYNAMIC, weighted(m1=1)])
def test_a_workload_does_not_grow_where_it_only_leaves(placement: dict[str, Any]) -> None:
    alone = decided(binding(6, placement, at={"m1": 2}, applied=placement), LEAVING)
    assert (alone.reason, [(each.name, each.replicas) for each in alone.clusters]) == (
        "Unschedulable",
        [("m1", 2)],
    )
    assert placed(binding(1, placement, at={"m1": 2}, applied=placement), LEAVING) == {"m1": 1}


@pytest.mark.parametrize(("taint", "tolerates"), [("a:NoSchedule", False), ("gone=soon:NoExecute", True)])
def test_a_taint_that_drives_nobody_out_does_not_limit_a_workload(taint: str, *, tolerates: bool) -> None:
    lasting = {"clusterTolerations": [{"key": "gone", "operator": "Exists"}]} if tolerates else {}
    placement = {**AGGREGATED, **lasting}
    has = binding(6, placement, at={"m1": 2}, applied=placement)
    assert placed(has, cluster("m1", taints=[taint]), cluster("m2", 8)) == {"m1": 6}
