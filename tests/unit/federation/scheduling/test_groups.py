"""Affinity groups: in which order they are tried, and what stays when none fits. The cases A-01 to A-22."""

from typing import Any

import pytest

from federation.scheduling.cause import has_new_placement
from tests.support.federation.clusters import (
    AGGREGATED,
    DUPLICATED,
    DYNAMIC,
    binding,
    cluster,
    decided,
    groups,
    placed,
    rooms,
    triggered_binding,
)
from tests.support.federation.objects import NOW

TWO = {**DUPLICATED, **groups(a1=["c1"], a2=["c2"])}
C1, C2 = cluster("c1"), cluster("c2")
BROKEN = "k=v:NoExecute"


def observing(name: str) -> dict[str, Any]:
    return {"schedulerObservingAffinityName": name}


def test_a_01_the_first_group_that_fits_is_taken() -> None:
    decision = decided(binding(1, TWO), C1, C2)
    assert [target.name for target in decision.clusters] == ["c1"]
    assert decision.affinity_name == "a1"
    assert decision.message == "Binding has been scheduled successfully. Result: {c1:1}"
    assert not decision.failures


def test_a_02_a_group_that_does_not_fit_is_reported_and_the_next_one_is_used() -> None:
    decision = decided(binding(1, TWO), cluster("c1", taints=[BROKEN]), C2)
    assert ([target.name for target in decision.clusters], decision.affinity_name) == (["c2"], "a2")
    assert [failure.affinity_name for failure in decision.failures] == ["a1"]
    assert decision.failures[0].message == (
        "failed to schedule ResourceBinding(default/web) with clusterAffiliates index(0): "
        "0/2 clusters are available: "
        "1 cluster(s) did not match the placement cluster affinity constraint, "
        "1 cluster(s) had untolerated taint {k=v:NoExecute}."
    )


def test_a_02_any_refusal_leads_to_the_next_group() -> None:
    placement = {**DYNAMIC, **groups(a1=["m1"], a2=["m2"])}
    assert placed(binding(5, placement), *rooms(4, 5)) == {"m2": 5}


def test_a_03_the_group_in_use_is_tried_first() -> None:
    decision = decided(binding(1, TWO, at={"c2": 1}, status=observing("a2")), C1, C2)
    assert (decision.affinity_name, decision.failures) == ("a2", ())


def test_a_04_a_fresh_scheduling_begins_at_the_first_group() -> None:
    decision = decided(triggered_binding(1, TWO, at={"c2": 1}, status=observing("a2")), C1, C2)
    assert ([target.name for target in decision.clusters], decision.affinity_name) == (["c1"], "a1")


def test_a_05_when_no_group_fits_the_clusters_and_the_group_stay_and_time_may_help() -> None:
    placement = {**DYNAMIC, **groups(a1=["m1"], a2=["m2"])}
    asked = binding(5, placement, at={"m2": 2}, status=observing("a2"))
    decision = decided(asked, *rooms(1, 1))
    assert {target.name: target.replicas for target in decision.clusters} == {"m2": 2}
    assert (decision.reason, decision.affinity_name, decision.retry) == ("Unschedulable", "a2", True)
    assert [failure.affinity_name for failure in decision.failures] == ["a2", "a1"]


def test_a_06_b_clusters_are_never_emptied_before_a_substitute_exists() -> None:
    asked = binding(3, TWO, at={"c2": 3}, status=observing("a2"), evicting=["c1", "c2"])
    decision = decided(asked, C1, C2)
    assert [target.name for target in decision.clusters] == ["c2"]
    assert (decision.reason, decision.retry) == ("NoClusterFit", False)
    assert decision.scheduled_at is None
    assert decision.message.startswith("0/2 clusters are available: ")


@pytest.mark.parametrize("observed", ["", "gone"])
def test_a_07_without_a_known_group_in_use_the_walk_begins_at_the_first(observed: str) -> None:
    assert decided(binding(1, TWO, status=observing(observed)), C1, C2).affinity_name == "a1"


@pytest.mark.parametrize(
    ("applied", "placement", "observed", "changed"),
    [
        pytest.param(groups(g1=["a"]), groups(g1=["b"]), "g1", True, id="the group in use was edited"),
        pytest.param(groups(g1=["a"]), groups(g2=["a"]), "g1", True, id="the group in use was deleted"),
        pytest.param(groups(g1=["a"]), {}, "g1", True, id="all groups were deleted"),
        pytest.param(groups(g1=["a"]), groups(g1=["b"]), "", True, id="no group is in use"),
        pytest.param(groups(g1=["a"]), groups(g1=["a"]), "g1", False, id="nothing"),
        pytest.param(groups(g1=["a"]), groups(g1=["a"], g2=["b"]), "g1", False, id="another group was added"),
        pytest.param({**DYNAMIC}, {**AGGREGATED}, "", True, id="the division"),
        pytest.param({}, {"workloadAffinity": {"affinity": {}}}, "", True, id="workload affinity, no group"),
        pytest.param(None, {}, "", True, id="nothing was applied yet"),
    ],
)
def test_a_08_a_changed_placement_is_recognised(
    applied: dict[str, Any] | None, placement: dict[str, Any], observed: str, *, changed: bool
) -> None:
    asked = binding(1, placement, applied=applied, status=observing(observed))
    assert has_new_placement(asked) is changed


@pytest.mark.parametrize("text", ["{", '{"a": ' + "[" * 20_000 + "]" * 20_000 + "}"], ids=["half", "deep"])
def test_a_08_an_applied_placement_that_cannot_be_read_is_another_one(text: str) -> None:
    metadata = {"annotations": {"policy.karmada.io/applied-placement": text}}
    assert has_new_placement(binding(1, {}, metadata=metadata))


BY_LABEL = {
    **DUPLICATED,
    "clusterAffinities": [
        {"affinityName": "group1", "labelSelector": {"matchLabels": {"group": "1"}}},
        {"affinityName": "group2", "labelSelector": {"matchLabels": {"group": "2"}}},
    ],
}
M1, M2 = cluster("m1", labels={"group": "1"}), cluster("m2", labels={"group": "2"})


def test_a_10_a_cluster_that_leaves_the_group_by_its_label_is_left_for_the_next_group() -> None:
    asked = binding(1, BY_LABEL, at={"m1": 1}, applied=BY_LABEL, status=observing("group1"))
    decision = decided(asked, cluster("m1", labels={"group": "none"}), M2)
    assert ([target.name for target in decision.clusters], decision.affinity_name) == (["m2"], "group2")


def test_a_11_a_binding_stays_in_its_group_when_the_label_comes_back() -> None:
    asked = binding(1, BY_LABEL, at={"m2": 1}, applied=BY_LABEL, status=observing("group2"))
    assert placed(asked, M1, M2) == {"m2": 1}


def test_a_12_a_fresh_scheduling_returns_a_binding_to_its_first_group() -> None:
    asked = triggered_binding(1, BY_LABEL, at={"m2": 1}, applied=BY_LABEL, status=observing("group2"))
    decision = decided(asked, M1, M2)
    assert ([target.name for target in decision.clusters], decision.affinity_name) == (["m1"], "group1")


HOME = {**DYNAMIC, **groups(primary=["m1"], backup=["m2"])}


def test_a_14_a_binding_evicted_from_the_primary_goes_to_the_backup() -> None:
    asked = binding(3, HOME, applied=HOME, status=observing("primary"), evicting=["m1"])
    decision = decided(asked, cluster("m1", taints=[BROKEN]), cluster("m2"))
    assert {target.name: target.replicas for target in decision.clusters} == {"m2": 3}
    assert decision.affinity_name == "backup"


@pytest.mark.parametrize("at", [{}, {"m2": 3}])
def test_a_15_b_a_binding_evicted_from_the_backup_returns_to_the_primary(at: dict[str, int]) -> None:
    asked = binding(3, HOME, at=at, status=observing("backup"), evicting=["m2"])
    decision = decided(asked, cluster("m1"), cluster("m2", taints=[BROKEN]))
    assert {target.name: target.replicas for target in decision.clusters} == {"m1": 3}
    assert decision.affinity_name == "primary"


def overflowing(division: dict[str, Any] = DYNAMIC) -> dict[str, Any]:
    tiers = [{"affinityName": "tier1", "clusterNames": ["m2"]}]
    group = {"affinityName": "primary", "clusterNames": ["m1"], "overflowAffinities": tiers}
    return {**division, "clusterAffinities": [group]}


@pytest.mark.parametrize("division", [DYNAMIC, AGGREGATED])
@pytest.mark.parametrize(
    ("available", "replicas", "expected"),
    [
        pytest.param((10, 10), 5, {"m1": 5}, id="A-17"),
        pytest.param((2, 10), 5, {"m1": 2, "m2": 3}, id="A-18"),
    ],
)
def test_a_17_an_overflow_tier_takes_replicas_beyond_the_first_tier(
    available: tuple[int, ...], replicas: int, expected: dict[str, int], division: dict[str, Any]
) -> None:
    assert placed(binding(replicas, overflowing(division)), *rooms(*available)) == expected


def test_a_19_all_tiers_together_may_have_too_little_room() -> None:
    decision = decided(binding(10, overflowing()), *rooms(2, 2))
    assert (decision.reason, decision.clusters) == ("Unschedulable", ())
    assert decision.message == "Clusters available replicas are not enough to schedule"


def test_a_21_tiers_fill_and_empty_in_their_order() -> None:
    at: dict[str, int] = {}
    for replicas, expected, reason in [
        (2, {"m1": 2}, "Success"),
        (4, {"m1": 2, "m2": 2}, "Success"),
        (5, {"m1": 2, "m2": 2}, "Unschedulable"),
        (2, {"m1": 2}, "Success"),
    ]:
        asked = binding(replicas, overflowing(), at=at, status=observing("primary" if at else ""))
        decision = decided(asked, *rooms(2 - at.get("m1", 0), 2 - at.get("m2", 0)))
        at = {target.name: target.replicas for target in decision.clusters}
        assert (at, decision.reason) == (expected, reason)


def test_tiers_are_for_workloads_alone() -> None:
    assert placed(binding(0, overflowing()), *rooms(10, 10)) == {"m1": 0}


def test_only_a_success_sets_the_time_of_the_last_scheduling() -> None:
    """S-56."""
    assert decided(binding(1, TWO), C1, C2).scheduled_at == NOW
    assert decided(binding(1, TWO)).scheduled_at is None


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("provider", "In", ["aws"], {"m1"}),
        ("provider", "NotIn", ["aws"], {"m2", "m3"}),
        ("provider", "Exists", [], {"m1", "m2"}),
        ("region", "DoesNotExist", [], {"m2", "m3"}),
        ("zone", "In", ["a", "b"], {"m1", "m2"}),
        ("zone", "In", ["a"], {"m2"}),
        ("zone", "NotIn", ["b"], {"m2", "m3"}),
    ],
)
def test_clusters_are_chosen_by_their_fields(
    key: str, operator: str, values: list[str], expected: set[str]
) -> None:
    rule = {"key": key, "operator": operator, "values": values}
    placement = {**DUPLICATED, "clusterAffinity": {"fieldSelector": {"matchExpressions": [rule]}}}
    clusters = [
        cluster("m1", provider="aws", region="us", zones=["a", "b"]),
        cluster("m2", provider="gcp", zone="a"),
        cluster("m3"),
    ]
    assert set(placed(binding(1, placement), *clusters)) == expected


def test_an_excluded_cluster_is_never_selected() -> None:
    affinity = {"clusterNames": ["m1", "m2"], "exclude": ["m1"]}
    assert placed(binding(1, {**DUPLICATED, "clusterAffinity": affinity}), *rooms(1, 1)) == {"m2": 1}
