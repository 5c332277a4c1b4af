"""The scheduler and the Works keep old copies during a handover."""

from typing import Any

import pytest

from federation.api import Cluster, ResourceBinding
from federation.propagation.schedule_result import change_clusters
from federation.propagation.works import plan_works, read_manifests
from reberth.values.timestamp import write_time
from tests.support.federation.clusters import DYNAMIC, binding, decided, rooms, triggered_binding
from tests.support.federation.objects import NOW, WEB, claimed_binding, given, template, work


def existing(*clusters: str) -> dict[str, Any]:
    made = plan_works(
        WEB, claimed_binding(clusters=given(**dict.fromkeys(clusters, 3))), template(), {}
    ).create
    return {name: work(one) for name, one in made.items()}


def replicas(one: ResourceBinding, *clusters: str) -> tuple[dict[str, int], set[str]]:
    """How many replicas each Work is to have that stands or is made, and which Works go."""
    there = existing(*clusters)
    steps = plan_works(WEB, one, template(), there)
    found = {name: read_manifests(each)[0] for name, each in there.items() if name not in steps.delete}
    found |= {name: each["spec"]["workload"]["manifests"][0] for name, each in steps.create.items()}
    found |= {name: change["spec"]["workload"]["manifests"][0] for name, (_, change) in steps.change.items()}
    return {name: manifest["spec"]["replicas"] for name, manifest in found.items()}, set(steps.delete)


def test_a_copy_that_is_kept_stays_beside_the_new_ones() -> None:
    handover = {"clusters": given(m2=3)}
    one = claimed_binding(clusters=given(m1=3), handover=handover)
    assert replicas(one, "m2") == ({"m1": 3, "m2": 3}, set())
    assert replicas(claimed_binding(clusters=given(m1=2, m2=1), handover=handover), "m2") == (
        {"m1": 2, "m2": 3},
        set(),
    )
    assert replicas(claimed_binding(clusters=given(m1=3), handover={"timeoutSeconds": 600}), "m2") == (
        {"m1": 3},
        {"m2"},
    )


def test_clusters_without_a_copy_are_not_kept() -> None:
    one = claimed_binding(clusters=given(m1=3), handover={"clusters": given(m2=3)})
    assert replicas(one) == ({"m1": 3}, set())


def test_copies_to_be_purged_directly_are_not_kept() -> None:
    tasks = [{"fromCluster": "m2", "purgeMode": "Directly"}]
    one = claimed_binding(
        clusters=given(m1=3), handover={"clusters": given(m2=3)}, gracefulEvictionTasks=tasks
    )
    assert replicas(one, "m2") == ({}, {"m2"})


def test_the_scheduler_writes_the_handover_with_the_new_clusters() -> None:
    one = triggered_binding(4, DYNAMIC, at={"m2": 4}, handover={"timeoutSeconds": 600})
    change = change_clusters(one, decided(one, *rooms(20, 16)))
    assert change is not None
    assert change["spec"]["clusters"] == given(m1=2, m2=2)
    assert change["spec"]["handover"]["clusters"] == given(m2=4)


def test_a_request_without_a_timeout_keeps_nothing() -> None:
    one = triggered_binding(4, DYNAMIC, at={"m2": 4})
    change = change_clusters(one, decided(one, *rooms(20, 16)), handover=600)
    assert change is not None
    assert "handover" not in change["spec"]


def only(*names: str, **more: Any) -> dict[str, Any]:
    return {"clusterAffinity": {"clusterNames": list(names)}, **more}


def moved(one: ResourceBinding, *fleet: Cluster) -> dict[str, int]:
    """What a decision that nobody requested keeps."""
    change = change_clusters(one, decided(one, *(fleet or rooms(9, 9, 9))), handover=600)
    assert change is not None
    said = change["spec"].get("handover", {})
    assert said.get("timeoutSeconds") in {600, None}
    return {each["name"]: each["replicas"] for each in said.get("clusters") or ()}


@pytest.mark.parametrize(
    ("one", "kept"),
    [
        pytest.param(binding(4, only("m2"), at={"m1": 4}), {"m1": 4}, id="the policy names another cluster"),
        pytest.param(
            binding(4, only("m2", **DYNAMIC), applied=only("m1", **DYNAMIC), at={"m1": 4}),
            {"m1": 4},
            id="of a divided workload",
        ),
        pytest.param(
            binding(0, only("m2"), at={"m1": 0}, resource={"apiVersion": "apps/v1", "kind": "Deployment"}),
            {"m1": 0},
            id="of one without replicas",
        ),
        pytest.param(
            binding(2, only("m2", "m3"), at={"m1": 4, "m2": 4}),
            {"m1": 4},
            id="it moves and has fewer replicas",
        ),
        pytest.param(binding(4, only("m2"), at={"m1": 4, "m2": 4}), {}, id="the rest stays where it is"),
        pytest.param(binding(2, only("m1", "m2"), at={"m1": 4, "m2": 4}), {}, id="it has fewer replicas"),
        pytest.param(binding(4, only("m2"), at={"m1": 4}, evicting=["m1"]), {}, id="it is evicted"),
        pytest.param(binding(4, only("m2"), at={"m9": 4}), {}, id="its cluster is gone"),
        pytest.param(
            binding(4, only("m2"), at={"m1": 4}, failover={"handover": {"mode": "BreakFirst"}}),
            {},
            id="the policy breaks first",
        ),
    ],
)
def test_every_move_keeps_old_copies_until_the_new_ones_are_ready(
    one: ResourceBinding, kept: dict[str, int]
) -> None:
    assert moved(one) == kept


def test_a_policy_says_how_long_new_copies_may_take() -> None:
    one = binding(4, only("m2"), at={"m1": 4}, failover={"handover": {"timeoutSeconds": 60}})
    change = change_clusters(one, decided(one, *rooms(9, 9)), handover=600)
    assert change is not None
    assert change["spec"]["handover"]["timeoutSeconds"] == 60
    assert change["spec"]["handover"]["until"] == write_time(NOW + 60)


def test_without_the_controller_of_handovers_nothing_is_kept() -> None:
    one = binding(4, only("m2"), at={"m1": 4})
    change = change_clusters(one, decided(one, *rooms(9, 9)), handover=None)
    assert change is not None
    assert "handover" not in change["spec"]
