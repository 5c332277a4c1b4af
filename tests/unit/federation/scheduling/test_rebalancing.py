"""When a binding is scheduled again, and how fresh that is: the cases R-14 to R-20."""

from typing import Any

import pytest
from msgspec.structs import replace

from federation.api import Cluster
from federation.scheduling import Reason
from federation.scheduling.demand import SCHEDULE_NOTE, is_due
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

FIRST, SECOND = "2026-11-18T12:00:01Z", "2026-11-18T12:00:02Z"


def asking(
    trigger: str | None, last: str | None, *, generation: int = 0, observed: int = 0, noted: str = ""
) -> bool:
    annotations = {SCHEDULE_NOTE: f'{{"time": "{last}", "wish": "{noted}"}}'} if noted else {}
    return is_due(
        binding(
            1,
            rescheduleTriggeredAt=trigger,
            metadata={"generation": generation, "annotations": annotations},
            status={"lastScheduledTime": last, "schedulerObservedGeneration": observed},
        )
    )


@pytest.mark.parametrize(
    ("trigger", "last", "due"),
    [(None, FIRST, False), (SECOND, None, False), (FIRST, SECOND, False), (SECOND, FIRST, True)],
)
def test_r_14_a_trigger_is_due_when_it_is_later_than_the_last_scheduling(
    trigger: str | None, last: str | None, *, due: bool
) -> None:
    assert asking(trigger, last) is due


def test_r_15_b_a_trigger_of_the_same_second_counts_until_the_scheduler_has_seen_it() -> None:
    assert asking(FIRST, FIRST)
    assert asking(FIRST, "2026-11-18T12:00:01.700000Z", generation=3, observed=2)
    assert not asking(FIRST, FIRST, generation=3, observed=3)


def test_a_trigger_is_handled_once_though_the_object_changes_in_its_second() -> None:
    """Otherwise scaling a workload after a rebalance would divide all of it afresh."""
    assert not asking(FIRST, FIRST, generation=3, observed=2, noted=FIRST)
    assert asking(FIRST, FIRST, generation=3, observed=2, noted=SECOND)
    assert asking(SECOND, FIRST, generation=3, observed=2, noted=FIRST)


def test_r_17_replicas_come_back_to_a_cluster_that_has_recovered() -> None:
    assert placed(triggered_binding(4, DYNAMIC, at={"m2": 4}), *rooms(20, 16)) == {"m1": 2, "m2": 2}


def test_r_18_fixed_weights_are_restored() -> None:
    assert placed(triggered_binding(6, weighted(m1=2, m2=1), at={"m2": 6}), *rooms(0, 0)) == {
        "m1": 4,
        "m2": 2,
    }


def test_r_19_b_the_selection_is_fresh_too() -> None:
    asked = triggered_binding(3, {**DUPLICATED, **spread(cluster=(2, 2))}, at={"m2": 3, "m3": 3})
    assert set(placed(asked, cluster("m1", 13), cluster("m2", 10), cluster("m3", 10))) == {"m1", "m2"}


def test_r_20_b_one_cluster_for_all_replicas_is_chosen_anew() -> None:
    placement = {**AGGREGATED, **spread(cluster=(1, 1))}
    clusters = [cluster("m1", 20), cluster("m2", 10)]
    assert placed(triggered_binding(5, placement, at={"m2": 5}), *clusters) == {"m1": 5}
    assert placed(binding(5, placement, at={"m2": 5}), *clusters) == {"m2": 5}


def test_an_evicted_cluster_is_replaced_if_a_substitute_exists() -> None:
    asked = binding(3, DYNAMIC, at={"m1": 3}, applied=DYNAMIC, evicting=["m1"])
    assert placed(asked, *rooms(9, 9)) == {"m2": 3}
    assert placed(asked, *rooms(9)) == {"m1": 3}


GOLD = {"clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "gold"}}}}


def gold(name: str) -> Cluster:
    return cluster(name, 9, labels={"tier": "gold"})


def test_replicas_leave_a_cluster_that_is_gone_or_matches_no_more_and_others_stay() -> None:
    placement = {**DYNAMIC, **GOLD}
    asked = binding(6, placement, at={"m1": 2, "m2": 2, "m9": 2}, applied=placement)
    assert placed(asked, *rooms(9), gold("m2")) == {"m2": 6}
    decision = decided(asked, *rooms(9))
    assert (decision.reason, len(decision.clusters)) == (Reason.NO_CLUSTER_FIT, 3)


@pytest.mark.parametrize(
    ("placement", "at", "clusters", "scheduled"),
    [
        pytest.param(DYNAMIC, {"m1": 3}, rooms(9, 9), False, id="nothing has changed"),
        pytest.param(DYNAMIC, {"m1": 2}, rooms(9, 9), True, id="a replica is missing"),
        pytest.param(DYNAMIC, {"m1": 3}, [cluster("m1", leaving=True), cluster("m2")], False, id="leaving"),
        pytest.param(DYNAMIC, {"gone": 3}, rooms(9, 9), True, id="a cluster is not there"),
        pytest.param({**DYNAMIC, **GOLD}, {"m1": 3}, [gold("m1"), gold("m2")], False, id="all match"),
        pytest.param({**DYNAMIC, **GOLD}, {"m1": 3}, [*rooms(9), gold("m2")], True, id="a label is gone"),
        pytest.param(DUPLICATED, {"m1": 3}, rooms(9, 9), True, id="not divided"),
    ],
)
def test_an_unchanged_binding_keeps_its_clusters(
    placement: dict[str, Any], at: dict[str, int], clusters: list[Any], *, scheduled: bool
) -> None:
    decision = decided(binding(3, placement, at=at, applied=placement), *clusters)
    assert (decision.scheduled_at is not None) is scheduled
    if not scheduled:
        assert {target.name: target.replicas for target in decision.clusters} == at
        assert decision.message.startswith("Placement, replicas and clusters have not changed")


def test_a_suspended_binding_stays() -> None:
    decision = decided(binding(3, DUPLICATED, at={"m1": 1}, suspension={"scheduling": True}), *rooms(9))
    assert decision.message == "Scheduling is suspended."
    assert [target.replicas for target in decision.clusters] == [1]


def test_a_binding_that_others_require_goes_with_them() -> None:
    asked = binding(0, requiredBy=[{"name": "web"}])
    attached = replace(asked, spec=replace(asked.spec, placement=None))
    assert decided(attached, *rooms(9)).message == "It follows the bindings that require it."
