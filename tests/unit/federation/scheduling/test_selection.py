"""Filters, spread constraints and the condition that comes of it: the cases S-40 to S-56."""

from collections.abc import Sequence
from typing import Any

import pytest

from federation.scheduling.demand import BindingDemand, Bounds, read_binding_demand
from federation.scheduling.fleet import Fleet
from federation.scheduling.outcome import Reason, SchedulingRefusal, choose_refusal
from federation.scheduling.ranking import Candidate, rank_candidates
from federation.scheduling.selection import Region, combine, score_region, select_clusters, select_regions
from tests.support.federation.clusters import (
    AGGREGATED,
    DUPLICATED,
    DYNAMIC,
    binding,
    cluster,
    decided,
    placed,
    rooms,
    spread,
    triggered_binding,
    weighted,
)
from tests.support.federation.objects import NOW


def candidate(name: str, score: int, available: int, region: str = "") -> Candidate:
    (member,) = Fleet([cluster(name, region=region)]).members
    return Candidate(member, 0, score, available, 0)


def demanding(replicas: int, *placement: dict[str, Any]) -> BindingDemand:
    return read_binding_demand(
        binding(replicas, {key: part for each in placement for key, part in each.items()}), now=NOW
    )


def names(selected: Sequence[Candidate] | SchedulingRefusal) -> list[str]:
    assert not isinstance(selected, SchedulingRefusal), selected
    return [each.name for each in selected]


FOUR = rank_candidates(
    [candidate("m1", 20, 40), candidate("m2", 40, 60), candidate("m3", 30, 80), candidate("m4", 60, 50)]
)
AT_MOST_TWO = spread(cluster=(1, 2))


def test_s_40_clusters_with_the_best_score_are_selected_if_they_have_capacity() -> None:
    assert names(select_clusters(FOUR, demanding(100, DYNAMIC, AT_MOST_TWO))) == ["m4", "m2"]


def test_s_41_the_last_selected_cluster_is_replaced_by_the_one_with_most_capacity() -> None:
    assert names(select_clusters(FOUR, demanding(120, DYNAMIC, AT_MOST_TWO))) == ["m4", "m3"]
    assert names(select_clusters(FOUR, demanding(140, DYNAMIC, AT_MOST_TWO))) == ["m2", "m3"]


def test_s_41_only_a_cluster_with_more_capacity_replaces_a_selected_one() -> None:
    ranked = rank_candidates([candidate("m1", 100, 10), candidate("m2", 90, 100), candidate("m3", 0, 50)])
    assert names(select_clusters(ranked, demanding(140, DYNAMIC, AT_MOST_TWO))) == ["m3", "m2"]


def test_s_41_no_selection_may_have_enough_capacity() -> None:
    refusal = SchedulingRefusal(Reason.SCHEDULER_ERROR, "no enough resource when selecting 2 clusters")
    assert select_clusters(FOUR, demanding(141, AGGREGATED, AT_MOST_TWO)) == refusal
    assert names(select_clusters(FOUR, demanding(141, DUPLICATED, AT_MOST_TWO))) == ["m4", "m2"]


def test_s_43_fixed_weights_know_no_bounds() -> None:
    assert select_clusters(FOUR, demanding(9, weighted(m1=1), AT_MOST_TWO)) == FOUR


def test_s_44_too_few_clusters() -> None:
    decision = decided(binding(1, {**DUPLICATED, **spread(cluster=(7, 7))}), *rooms(1, 1, 1, 1))
    assert decision.reason == "SchedulerError"
    assert decision.message == "the number of feasible clusters is less than spreadConstraint.MinGroups"


@pytest.mark.parametrize("most", [None, 0])
def test_s_45_b_no_upper_bound_is_no_limit(most: int | None) -> None:
    assert len(placed(binding(1, {**DUPLICATED, **spread(cluster=(1, most))}), *rooms(1, 1, 1))) == 3


FIVE = rank_candidates(
    [
        candidate("m1", 100, 100, "R1"),
        candidate("m2", 80, 100, "R1"),
        candidate("m3", 80, 100, "R2"),
        candidate("m4", 80, 9, "R2"),
        candidate("m5", 60, 9, "R2"),
    ]
)


@pytest.mark.parametrize(("of_clusters", "expected"), [((2, 2), ["m1", "m2"]), ((3, 3), ["m3", "m4", "m5"])])
def test_s_46_a_region_with_enough_clusters_is_selected(
    of_clusters: tuple[int, int], expected: list[str]
) -> None:
    demand = demanding(10, DUPLICATED, spread(region=(1, 1), cluster=of_clusters))
    assert names(select_clusters(FIVE, demand)) == expected


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (
            spread(region=(3, 3), cluster=(1, 5)),
            "the number of feasible region is less than spreadConstraint.MinGroups",
        ),
        (
            spread(region=(1, 1), cluster=(4, 5)),
            "the number of clusters is less than the cluster spreadConstraint.MinGroups",
        ),
    ],
)
def test_s_48_too_few_regions_or_too_few_clusters_in_them(bounds: dict[str, Any], message: str) -> None:
    assert select_clusters(FIVE, demanding(1, DUPLICATED, bounds)) == SchedulingRefusal(
        Reason.SCHEDULER_ERROR, message
    )


def test_s_49_of_the_best_combination_no_more_is_taken_than_needed() -> None:
    sizes = [(1, 80), (4, 40), (1, 30), (3, 30), (3, 20), (5, 10)]
    regions = [Region(f"R{number}", size, score) for number, (size, score) in enumerate(sizes, 1)]
    assert [region.name for region in combine(regions, Bounds(2, 6), 5)] == ["R1", "R2"]


def test_s_51_a_region_is_worth_its_fitting_clusters_first() -> None:
    demand = demanding(20, DUPLICATED, spread(region=(1, 2), cluster=(1, 5)))
    first = [candidate(f"a{number}", score, 30) for number, score in enumerate([100, 100, 0, 0, 0])]
    second = [candidate(f"b{number}", 100, room) for number, room in enumerate([30, 30, 30, 10, 10])]
    assert (score_region(first, demand), score_region(second, demand)) == (5040, 3100)
    assert score_region([candidate("c", 100, 1)], demand) == 0


def test_a_region_of_divided_replicas_is_worth_its_room_up_to_its_share() -> None:
    demand = demanding(100, DYNAMIC, spread(region=(2, 2), cluster=(2, 9)))
    poor = [candidate(f"a{number}", 100, room) for number, room in enumerate([10, 10, 10, 10, 5])]
    rich = [candidate(f"b{number}", 0, room) for number, room in enumerate([40, 30, 10, 10])]
    assert (score_region(poor, demand), score_region(rich, demand)) == (45_100, 50_000)


def test_regions_are_never_more_than_clusters_may_be() -> None:
    three = [candidate(f"m{number}", 0, 9, f"R{number}") for number in range(3)]
    demand = demanding(1, DUPLICATED, spread(region=(1, 3), cluster=(1, 2)))
    assert len(names(select_regions(three, demand))) <= 2


@pytest.mark.parametrize(
    "constraints", [spread(zone=(1, 1)), {"spreadConstraints": [{"spreadByLabel": "tier", "maxGroups": 1}]}]
)
def test_other_spreads_are_refused(constraints: dict[str, Any]) -> None:
    decision = decided(
        binding(1, {**DUPLICATED, **constraints}),
        cluster("m1", zones=["a"]),
    )
    assert (decision.reason, decision.retry) == ("SchedulerError", True)
    assert decision.message == "just support cluster and region spread constraint"


TAINTED = cluster("m1", taints=["key1=value1:NoSchedule"])


def test_s_53_an_untolerated_taint_excludes_a_cluster() -> None:
    decision = decided(binding(1, DUPLICATED), TAINTED)
    text = "cluster(s) had untolerated taint {key1=value1:NoSchedule}"
    assert decision.verdicts["m1"].reasons == {"TaintToleration": text}
    assert decision.message == f"0/1 clusters are available: 1 {text}."


@pytest.mark.parametrize("toleration", [{"operator": "Exists"}, {"key": "key1", "value": "value1"}])
def test_s_53_a_tolerated_taint_does_not_exclude_a_cluster(toleration: dict[str, str]) -> None:
    placement = {**DUPLICATED, "clusterTolerations": [toleration]}
    assert placed(binding(1, placement), TAINTED) == {"m1": 1}


def test_a_soft_taint_rejects_no_workload() -> None:
    assert placed(binding(1, DUPLICATED), cluster("m1", taints=["k=v:PreferNoSchedule"])) == {"m1": 1}


def test_s_54_a_taint_does_not_reject_a_cluster_in_use() -> None:
    assert placed(binding(2, DUPLICATED, at={"m1": 1}), TAINTED) == {"m1": 2}


def test_s_54_b_unless_a_fresh_scheduling_is_wished() -> None:
    assert placed(triggered_binding(2, DUPLICATED, at={"m1": 2}), TAINTED, cluster("m2")) == {"m2": 2}


def test_a_missing_api_does_not_reject_a_cluster_in_use() -> None:
    bare = cluster("m1", status={"apiEnablements": None})
    assert placed(binding(2, DUPLICATED, at={"m1": 1}), bare) == {"m1": 2}
    assert decided(binding(2, DUPLICATED), bare).verdicts["m1"].reasons == {
        "APIEnablement": "cluster(s) did not have the API resource"
    }


@pytest.mark.parametrize(
    ("field", "word"), [("provider", "provider"), ("region", "region"), ("zone", "zones")]
)
def test_a_cluster_must_have_the_property_that_is_spread_by(field: str, word: str) -> None:
    placement = {**DUPLICATED, **spread(**{field: (1, 1), "cluster": (1, 9)})}
    verdict = decided(binding(1, placement), cluster("m1")).verdicts["m1"]
    assert verdict.reasons == {"SpreadConstraint": f"cluster(s) did not have {word} property"}


def test_a_cluster_that_is_being_evicted_or_deleted_is_out() -> None:
    decision = decided(
        binding(1, DUPLICATED, evicting=["m1", "gone"]), *rooms(1), cluster("m2", leaving=True)
    )
    assert decision.message == (
        "0/2 clusters are available: 1 cluster(s) is being deleted, "
        "1 cluster(s) is in the process of eviction."
    )


def test_every_plugin_gives_its_reason_and_each_cluster_is_counted_once() -> None:
    placement = {**DUPLICATED, "clusterAffinity": {"clusterNames": ["m9"]}}
    decision = decided(binding(1, placement), TAINTED, cluster("m2"))
    assert list(decision.verdicts["m1"].reasons) == ["TaintToleration", "ClusterAffinity"]
    assert decision.message == (
        "0/2 clusters are available: 1 cluster(s) did not match the placement cluster affinity constraint, "
        "1 cluster(s) had untolerated taint {key1=value1:NoSchedule}."
    )


def test_the_message_names_a_federation_without_clusters() -> None:
    assert decided(binding(1)).message == "0/0 clusters are available: no cluster exists."


def test_a_cluster_with_replicas_is_favoured() -> None:
    asked = binding(3, {**DUPLICATED, **spread(cluster=(1, 1))}, at={"m2": 1})
    decision = decided(asked, *rooms(9, 9))
    assert [target.name for target in decision.clusters] == ["m2"]
    assert {name: verdict.scores["ClusterLocality"] for name, verdict in decision.verdicts.items()} == {
        "m1": 0,
        "m2": 100,
    }


@pytest.mark.parametrize("spreading", [spread(cluster=(1, 1)), spread(region=(1, 1), cluster=(1, 1))])
def test_an_object_without_replicas_stays_when_an_earlier_name_becomes_eligible(spreading: Any) -> None:
    role = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "custom"}
    asked = binding(0, spreading, at={"m2": 0}, resource=role)
    fleet = [cluster(name, region=f"r-{name}") for name in ("m1", "m2")]
    assert placed(asked, *fleet) == {"m2": 0}
    assert placed(triggered_binding(0, spreading, at={"m2": 0}, resource=role), *fleet) == {"m1": 0}


NO_FIT = SchedulingRefusal(Reason.NO_CLUSTER_FIT, "0/1 clusters are available: ...")
SHORT = SchedulingRefusal(Reason.UNSCHEDULABLE, "Clusters available replicas 1 are not enough to schedule.")
ERROR = SchedulingRefusal(Reason.SCHEDULER_ERROR, "...")


@pytest.mark.parametrize(
    ("refusals", "counts", "retry"),
    [
        ([NO_FIT], NO_FIT, False),
        ([NO_FIT, ERROR], NO_FIT, True),
        ([SHORT], SHORT, True),
        ([SHORT, NO_FIT], SHORT, True),
        ([ERROR], ERROR, True),
    ],
)
def test_s_55_the_first_refusal_counts_and_only_a_misfit_waits_for_a_change(
    refusals: list[SchedulingRefusal], counts: SchedulingRefusal, *, retry: bool
) -> None:
    assert choose_refusal(refusals) == (counts, retry)
