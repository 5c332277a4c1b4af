from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from federation.api import ResourceBinding
from federation.objects.names import cluster_of_works, name_work
from federation.objects.resources import HeldWork
from federation.propagation.works import change_work, plan_works, read_manifests, targets_of, write_work
from tests.support.federation.objects import WEB, as_template, claimed_binding, given, template, work


def made(one: ResourceBinding, name: str, replicas: int) -> HeldWork:
    return work(write_work(WEB, one, template(), name, replicas))


def steps(one: ResourceBinding, existing: Mapping[str, HeldWork]) -> tuple[set[str], set[str], set[str]]:
    found = plan_works(WEB, one, template(), existing)
    return set(found.create), set(found.change), set(found.delete)


def task(name: str, mode: str) -> dict[str, Any]:
    return {"gracefulEvictionTasks": [{"fromCluster": name, "purgeMode": mode}]}


def test_each_cluster_gets_its_share() -> None:
    one = claimed_binding(clusters=given(m1=2, m2=1))
    found = plan_works(WEB, one, template(), {})
    shares = {
        name: each["spec"]["workload"]["manifests"][0]["spec"]["replicas"]
        for name, each in found.create.items()
    }
    assert shares == {"m1": 2, "m2": 1}
    assert found.create["m1"]["metadata"]["namespace"] == "karmada-es-m1"
    assert found.create["m1"]["metadata"]["name"] == name_work(WEB)


def test_an_up_to_date_work_is_left_alone() -> None:
    one = claimed_binding(clusters=given(m1=2))
    assert steps(one, {"m1": made(one, "m1", 2)}) == (set(), set(), set())
    assert change_work(made(one, "m1", 2), write_work(WEB, one, template(), "m1", 2)) is None


def test_changed_replicas_update_the_work_and_a_removed_cluster_deletes_it() -> None:
    one = claimed_binding(clusters=given(m1=3))
    existing = {"m1": made(one, "m1", 2), "m2": made(one, "m2", 1)}
    assert steps(one, existing) == (set(), {"m1"}, {"m2"})
    _, change = plan_works(WEB, one, template(), existing).change["m1"]
    assert change["metadata"] == {"resourceVersion": "9"}
    assert set(change["spec"]) == {"workload"}


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [
        ("Gracefully", ({"m2"}, set(), set())),
        ("Never", ({"m2"}, set(), set())),
        ("Directly", (set(), set(), {"m1"})),
    ],
)
def test_an_eviction_holds_the_old_copy_or_has_the_new_one_wait(mode: str, wanted: Any) -> None:
    one = claimed_binding(clusters=given(m2=3), **task("m1", mode))
    assert steps(one, {"m1": made(one, "m1", 3)}) == wanted


def test_a_direct_eviction_that_is_over_lets_the_new_copy_come() -> None:
    assert steps(claimed_binding(clusters=given(m2=3), **task("m1", "Directly")), {}) == (
        {"m2"},
        set(),
        set(),
    )


@pytest.mark.parametrize(
    ("suspension", "wanted"),
    [
        (None, False),
        ({}, False),
        ({"dispatching": True}, True),
        ({"dispatchingOnClusters": {"clusterNames": ["m1"]}}, True),
        ({"dispatchingOnClusters": {"clusterNames": ["m2"]}}, False),
    ],
)
def test_dispatching_is_suspended_everywhere_or_in_one_cluster(suspension: Any, *, wanted: bool) -> None:
    one = claimed_binding(suspension=suspension)
    assert write_work(WEB, one, template(), "m1", 1)["spec"]["suspendDispatching"] is wanted


def test_removed_labels_and_annotations_come_back() -> None:
    one = claimed_binding()
    wanted = write_work(WEB, one, template(), "m1", 1)
    bare = msgspec.structs.replace(
        work(wanted), metadata=msgspec.structs.replace(work(wanted).metadata, labels=None)
    )
    change = change_work(bare, wanted)
    assert change is not None
    assert change["metadata"]["labels"] == wanted["metadata"]["labels"]


def test_the_conflict_resolution_is_an_annotation_of_the_manifest() -> None:
    one = made(claimed_binding(conflictResolution="Overwrite"), "m1", 1)
    (manifest,) = read_manifests(one)
    assert manifest["metadata"]["annotations"]["work.karmada.io/conflict-resolution"] == "overwrite"
    assert manifest["metadata"]["labels"]["karmada.io/managed"] == "true"


def test_a_divided_job_has_its_completions_divided_too() -> None:
    key = WEB._replace(api_version="batch/v1", kind="Job")
    job = as_template({"metadata": {"name": "web"}, "spec": {"parallelism": 3, "completions": 7}})
    clusters = given(m1=2, m2=1)
    for placement, wanted in (({"replicaScheduling": {}}, [(2, 5), (1, 2)]), ({}, [(2, 7), (1, 7)])):
        one = claimed_binding(clusters=clusters, placement=placement)
        made = plan_works(key, one, job, {}).create.values()
        specs = [each["spec"]["workload"]["manifests"][0]["spec"] for each in made]
        assert [(each["parallelism"], each["completions"]) for each in specs] == wanted


def test_dependencies_get_works_in_the_clusters_of_their_dependents() -> None:
    one = claimed_binding(
        requiredBy=[{"name": "web", "clusters": given(m1=2, m2=1)}], clusters=given(m2=1, m3=2)
    )
    assert targets_of(one) == {"m1": 0, "m2": 1, "m3": 2}
    assert steps(one, {}) == ({"m1", "m2", "m3"}, set(), set())


def test_only_namespaces_of_works_have_a_cluster() -> None:
    assert cluster_of_works("karmada-es-m1") == "m1"
    assert cluster_of_works("default") is None


def test_the_work_of_a_cluster_scoped_binding_names_the_binding_alone() -> None:
    one = claimed_binding()
    alone = msgspec.structs.replace(one, metadata=msgspec.structs.replace(one.metadata, namespace=""))
    found = write_work(WEB._replace(kind="ClusterRole", namespace=""), alone, template(), "m1", 0)
    assert found["metadata"]["annotations"] == {"clusterresourcebinding.karmada.io/name": "web-deployment"}
    assert found["spec"]["workload"]["manifests"][0]["spec"]["replicas"] == 3
