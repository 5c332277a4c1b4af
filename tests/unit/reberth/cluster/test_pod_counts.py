"""Which pods limits in percent count. That counts stay current is tested with the cache."""

from typing import Any

import pytest

from reberth.cluster.cache import ADDED, DELETED, MODIFIED, Cache
from reberth.cluster.kinds import DEPLOYMENT, POD, REPLICA_SET
from reberth.cluster.pods.identity import find_controller
from reberth.records import Owner, TemplatedOwner, WorkloadIdentity
from tests.support.builders import Object, as_record, deployment, owner, pod, replica_set
from tests.support.cluster.strategies import pod_record

WEB = WorkloadIdentity("apps/v1", "Deployment", "web", "uid-of-deployment-web")
STATIC = {"kubernetes.io/config.mirror": "abc"}
HASH = {"pod-template-hash": "6d5f"}


def fill(*pods: Object, owners: tuple[Object, ...] = ()) -> Cache:
    cache = Cache(version=(1, 36))
    for version, each in enumerate(owners, 1):
        each["metadata"]["resourceVersion"] = str(version)
        cache.apply(REPLICA_SET, ADDED, as_record(TemplatedOwner, each))
    for version, each in enumerate(pods, 1):
        cache.apply(POD, ADDED, pod_record(each, version, uid=f"uid-{each['metadata']['name']}"))
    return cache


def web(name: str, *, hashed: str = "web-1", **fields: Any) -> Object:
    return pod(name, **{"node": "n1", "owned_by": owner("ReplicaSet", hashed), **fields})


def owned_set(name: str) -> Object:
    made = replica_set(name)
    made["metadata"] |= {"uid": owner("ReplicaSet", name)["uid"]}
    made["metadata"] |= {"ownerReferences": [owner("Deployment", "web", uid=WEB.uid)]}
    return made


@pytest.mark.parametrize(
    ("fields", "counted"),
    [
        ({}, 1),
        ({"owned_by": None}, 1),
        ({"owned_by": owner("Job", "import", api_version="batch/v1")}, 1),
        ({"phase": "Unknown"}, 1),
        ({"phase": "Pending"}, 1),  # bound, its containers are starting
        ({"node": None}, 0),
        ({"deleted": "2026-11-18T09:15:31Z"}, 0),
        ({"phase": "Succeeded"}, 0),
        ({"phase": "Failed"}, 0),
        ({"owned_by": owner("DaemonSet", "agent")}, 0),
        ({"owned_by": None, "annotations": STATIC}, 0),
        ({"owned_by": owner("Node", "n1", api_version="v1")}, 0),
    ],
)
def test_the_pods_that_can_be_disrupted_are_counted(fields: dict[str, Any], counted: int) -> None:
    cache = fill(web("web-a", **fields))
    assert (cache.pod_counts.in_cluster, cache.pod_counts.in_namespace("default")) == (counted, counted)


def test_each_namespace_is_counted() -> None:
    cache = fill(web("a"), web("b"), web("c", namespace="shop"))
    counts = cache.pod_counts
    assert (counts.in_cluster, counts.in_namespace("default"), counts.in_namespace("shop")) == (3, 2, 1)
    assert counts.in_namespace("empty") == 0


def test_a_deployment_has_the_pods_of_all_its_replica_sets() -> None:
    pods = [web("a"), web("b", hashed="web-2"), web("c", hashed="web-2"), web("d", hashed="other")]
    cache = fill(*pods, owners=(owned_set("web-1"), owned_set("web-2")))
    assert cache.count_workload("default", WEB) == 3
    assert cache.count_workload("shop", WEB) == 0


def test_before_its_replica_set_is_cached_a_deployment_is_known_by_its_name() -> None:
    cache = fill(web("a"), web("b", hashed="web-6d5f", labels=HASH), owners=(owned_set("web-1"),))
    by_name = WorkloadIdentity(WEB.api_version, WEB.kind, WEB.name)
    assert cache.count_workload("default", by_name) == 1
    assert cache.count_workload("shop", by_name) == 0


def test_a_deployment_without_a_uid_has_the_pods_of_the_one_with_its_name() -> None:
    pods = [web("a"), web("b"), web("c", hashed="web-6d5f", labels=HASH)]
    cache, found = fill(*pods, owners=(owned_set("web-1"),)), deployment(WEB.name)
    found["metadata"] |= {"uid": WEB.uid, "resourceVersion": "1"}
    cache.apply(DEPLOYMENT, ADDED, as_record(Owner, found))
    assert cache.count_workload("default", WorkloadIdentity("apps/v1", "Deployment", "web")) == 2
    assert cache.count_workload("default", WorkloadIdentity("apps/v1", "StatefulSet", "web")) == 0


def test_what_a_deployment_has_changes_with_its_replica_sets() -> None:
    cache, seen = fill(web("a"), web("b", hashed="web-2"), owners=(owned_set("web-1"),)), []
    given, taken = owned_set("web-2"), owned_set("web-1")
    taken["metadata"]["ownerReferences"] = []
    for version, (event, each) in enumerate([(ADDED, given), (MODIFIED, taken), (DELETED, given)], 2):
        seen.append(cache.count_workload("default", WEB))
        each["metadata"]["resourceVersion"] = str(version)
        cache.apply(REPLICA_SET, event, as_record(TemplatedOwner, each))
    assert [*seen, cache.count_workload("default", WEB)] == [1, 2, 1, 0]


def test_a_controller_without_an_owner_has_its_own_pods() -> None:
    cache = fill(web("a"), web("b"))
    controller = find_controller(pod_record(web("a"), 1).metadata)
    assert controller is not None
    assert cache.count_workload("default", controller) == 2


def test_a_pod_without_a_controller_is_a_workload_of_one() -> None:
    cache = fill(web("a", owned_by=None), web("b", owned_by=None))
    assert cache.count_workload("default", WorkloadIdentity("v1", "Pod", "a", "uid-a")) == 1


def test_a_pod_counts_again_once_its_replacement_is_bound() -> None:
    cache = fill(web("a"), web("b"))
    counts, seen = cache.pod_counts, []
    for event, each in (
        (MODIFIED, web("a", deleted="2026-11-18T09:15:31Z")),
        (ADDED, web("c", node=None)),
        (MODIFIED, web("c")),
        (DELETED, web("a", deleted="2026-11-18T09:15:31Z")),
    ):
        cache.apply(POD, event, pod_record(each, 3 + len(seen), uid=f"uid-{each['metadata']['name']}"))
        seen.append(counts.in_cluster)
    assert seen == [1, 1, 2, 2]
