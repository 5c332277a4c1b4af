"""The scheduler and the Works keep old copies during a handover."""

from typing import Any

from federation.api import ResourceBinding
from federation.propagation.schedule_result import change_clusters
from federation.propagation.works import plan_works, read_manifests
from tests.support.federation.clusters import DYNAMIC, decided, rooms, triggered_binding
from tests.support.federation.objects import WEB, claimed_binding, given, template, work


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


def test_without_a_trigger_nothing_is_kept() -> None:
    one = triggered_binding(4, DYNAMIC, at={"m2": 4})
    change = change_clusters(one, decided(one, *rooms(20, 16)))
    assert change is not None
    assert "handover" not in change["spec"]
