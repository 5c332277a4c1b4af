"""Clusters that have yet to say what they serve: named when a workload is placed, and used when they do."""

from typing import Any

import msgspec
import pytest

from federation.api import APPLIED_PLACEMENT, Cluster, ResourceBinding
from federation.propagation.schedule_result import change_clusters
from federation.scheduling.cause import Cause, SkipReason
from federation.scheduling.unreported_clusters import UNREPORTED_CLUSTERS
from tests.support.federation.clusters import (
    DUPLICATED,
    DYNAMIC,
    binding,
    cluster,
    decided,
    groups,
    placed,
    weighted,
)

HALVES = weighted(m1=1, m2=1)
LOST = "cluster.karmada.io/not-ready:NoSchedule"
M1, M2 = cluster("m1", 20), cluster("m2", 20)
OTHERS = [{"groupVersion": "v1", "resources": [{"name": "secrets", "kind": "Secret"}]}]
UNABLE = cluster("m2", status={"apiEnablements": OTHERS})


def silent(name: str, **spec: Any) -> Cluster:
    return cluster(name, 0, status={"apiEnablements": None, "resourceSummary": None}, **spec)


def left_out(names: str, placement: dict[str, Any] = HALVES, **spec: Any) -> ResourceBinding:
    """A binding that was placed in m1 alone, while these had said nothing."""
    annotations = {APPLIED_PLACEMENT: msgspec.json.encode(placement).decode(), UNREPORTED_CLUSTERS: names}
    return binding(4, placement, at={"m1": 4}, metadata={"annotations": annotations}, **spec)


@pytest.mark.parametrize(
    ("other", "unreported"),
    [
        pytest.param(silent("m2"), ("m2",), id="nothing is known of it"),
        pytest.param(silent("m2", taints=[LOST]), ("m2",), id="nor whether it is well"),
        pytest.param(silent("m2", taints=["shop=closed:NoSchedule"]), (), id="it is closed"),
        pytest.param(silent("m3"), (), id="it is not meant"),
        pytest.param(UNABLE, (), id="it has spoken, and serves none"),
        pytest.param(silent("m2", leaving=True), (), id="it goes"),
        pytest.param(M2, (), id="it takes part"),
    ],
)
def test_a_first_scheduling_lists_the_unreported_clusters(
    other: Cluster, unreported: tuple[str, ...]
) -> None:
    wanted = {**HALVES, "clusterAffinity": {"clusterNames": ["m1", "m2"]}}
    assert decided(binding(4, wanted), M1, other).unreported == unreported


def test_a_group_that_failed_for_want_of_words_is_waited_for_too() -> None:
    decision = decided(binding(4, groups(near=["m2"], far=["m1"])), M1, silent("m2"))
    assert (decision.affinity_name, decision.unreported) == ("far", ("m2",))


def test_scaling_leaves_unreported_clusters_as_they_are() -> None:
    grown = left_out("m2", DYNAMIC)
    assert (
        decided(
            msgspec.structs.replace(grown, spec=msgspec.structs.replace(grown.spec, replicas=6)),
            M1,
            silent("m2"),
        ).unreported
        is None
    )


@pytest.mark.parametrize("placement", [HALVES, DYNAMIC], ids=["weights", "room"])
def test_a_cluster_that_has_spoken_gets_its_share(placement: dict[str, Any]) -> None:
    waiting = left_out("m2", placement)
    assert decided(waiting, M1, silent("m2")).message == SkipReason.UNCHANGED
    assert decided(waiting, M1, cluster("m2", 20, taints=[LOST])).message == SkipReason.UNCHANGED
    decision = decided(waiting, M1, M2)
    assert (decision.cause, decision.unreported) == (Cause.CLUSTER_REPORTED, ())
    assert placed(waiting, M1, M2) == {"m1": 2, "m2": 2}


def test_an_unlisted_cluster_that_reports_changes_nothing() -> None:
    waiting = left_out("m2, m4,")
    assert decided(waiting, M1, silent("m2"), cluster("m3")).message == SkipReason.UNCHANGED
    assert decided(left_out(""), M1, M2).message == SkipReason.UNCHANGED


def test_a_binding_without_a_fresh_placement_stays_where_it_is() -> None:
    full = [cluster("m1", taints=["shop=closed:NoSchedule"]), cluster("m2", 1)]
    decision = decided(left_out("m2", DYNAMIC), *full)
    assert (decision.message, placed(left_out("m2", DYNAMIC), *full)) == (SkipReason.UNCHANGED, {"m1": 4})


def test_a_suspended_binding_stays_where_it_is() -> None:
    assert decided(left_out("m2", suspension={"scheduling": True}), M1, M2).message == SkipReason.SUSPENDED


def test_old_copies_stay_until_the_new_ones_are_ready() -> None:
    waiting = left_out("m2")
    change = change_clusters(waiting, decided(waiting, M1, M2), handover=600)
    assert change is not None
    assert change["spec"]["handover"]["clusters"] == [{"name": "m1", "replicas": 4}]
    assert change["spec"]["handover"]["timeoutSeconds"] == 600
    assert change["metadata"]["annotations"][UNREPORTED_CLUSTERS] is None


def test_without_the_handovers_controller_old_copies_go_at_once() -> None:
    waiting = left_out("m2")
    change = change_clusters(waiting, decided(waiting, M1, M2))
    assert change is not None
    assert "handover" not in change["spec"]


def test_unreported_clusters_are_annotated_once_and_removed_when_not_needed() -> None:
    new = binding(4, HALVES)
    change = change_clusters(new, decided(new, M1, silent("m2")))
    assert change is not None
    assert change["metadata"]["annotations"][UNREPORTED_CLUSTERS] == "m2"
    without = left_out("m2")
    alone = decided(without, M1, UNABLE)
    change = change_clusters(without, alone)
    assert change is not None
    assert "spec" not in change
    assert change["metadata"]["annotations"][UNREPORTED_CLUSTERS] is None


def test_duplicated_copies_also_go_to_a_cluster_that_reports_late() -> None:
    assert placed(left_out("m2", DUPLICATED), M1, M2) == {"m1": 4, "m2": 4}
