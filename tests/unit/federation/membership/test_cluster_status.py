from typing import Any

import msgspec
import pytest

from federation.api import Cluster
from federation.membership.cluster_status import (
    ClusterReport,
    ProbeResult,
    change_api_condition,
    change_cluster_status,
    change_ready_condition,
    describe_apis,
    is_member_silent,
    name_state,
    sum_resources,
)
from reberth.cluster.rows import make_node_row, make_pod_row
from reberth.cluster.templates import Templates
from reberth.protocol.response import failure
from reberth.records import Node, Pod
from tests.support.federation.objects import NOW, bare_cluster

GOOD = ProbeResult("ClusterReady", "", since=0)
AWAY = ProbeResult("ClusterNotReachable", "cannot connect", since=0)
SICK = ProbeResult("ClusterNotReady", "etcd failed", since=0)
SHUT = ProbeResult("StatusCollectionFailed", "data.token: is missing", since=0)


def node(name: str, *, ready: str = "True", **spec: Any) -> Any:
    status = {
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110", "example.com/gpu": "2"},
        "conditions": [{"type": "Ready", "status": ready}],
    }
    meta = {"name": name, "uid": name, "resourceVersion": "1"}
    return make_node_row(msgspec.convert({"metadata": meta, "spec": spec, "status": status}, Node))


def pod(name: str, node: str | None = None, *, phase: str = "Running") -> Any:
    container = {"name": "main", "resources": {"requests": {"cpu": "250m", "memory": "1Gi"}}}
    wire = {
        "metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1"},
        "spec": {"containers": [container], "nodeName": node},
        "status": {"phase": phase},
    }
    return make_pod_row(msgspec.convert(wire, Pod), Templates(version=(1, 36)))


def test_capacity_is_that_of_ready_nodes_and_usage_that_of_their_pods() -> None:
    nodes = [node("n1"), node("n2", ready="False"), node("n3", unschedulable=True)]
    pods = [pod("a", "n1"), pod("b", "n2"), pod("c"), pod("d", "n1", phase="Succeeded")]
    found = sum_resources(nodes, pods)
    assert found["nodeSummary"] == {"totalNum": 3, "readyNum": 1}
    assert found["resourceSummary"] == {
        "allocatable": {"cpu": "4", "example.com/gpu": "2", "memory": "8Gi", "pods": "110"},
        "allocated": {"cpu": "250m", "memory": "1Gi", "pods": "1"},
        "allocating": {"cpu": "250m", "memory": "1Gi", "pods": "1"},
    }


def test_without_nodes_there_is_no_room() -> None:
    assert sum_resources([], []) == {"resourceSummary": {}, "nodeSummary": {"totalNum": 0, "readyNum": 0}}


@pytest.mark.parametrize(
    ("sighting", "status", "reason"),
    [
        (GOOD, "True", "ClusterReady"),
        (AWAY, "False", "ClusterNotReachable"),
        (SICK, "False", "ClusterNotReady"),
        (SHUT, "False", "StatusCollectionFailed"),
    ],
)
def test_the_first_sighting_counts_at_once(sighting: ProbeResult, status: str, reason: str) -> None:
    conditions = change_ready_condition(bare_cluster(), sighting, is_lasting=False, now=NOW)
    assert conditions is not None
    assert (conditions[0]["status"], conditions[0]["reason"]) == (status, reason)
    assert sighting.message in conditions[0]["message"]


def judged(sighting: ProbeResult) -> Cluster:
    return bare_cluster(
        status={"conditions": change_ready_condition(bare_cluster(), sighting, is_lasting=True, now=NOW)}
    )


def test_a_change_of_mind_needs_a_sighting_that_lasts() -> None:
    was_good = judged(GOOD)
    assert change_ready_condition(was_good, GOOD, is_lasting=True, now=NOW + 9) is None
    assert change_ready_condition(was_good, AWAY, is_lasting=False, now=NOW + 9) is None
    conditions = change_ready_condition(was_good, AWAY, is_lasting=True, now=NOW + 9)
    assert conditions is not None
    assert conditions[0]["lastTransitionTime"] == "2027-01-15T08:00:09Z"


def test_a_changed_message_is_written_at_once() -> None:
    conditions = change_ready_condition(judged(AWAY), SICK, is_lasting=False, now=NOW)
    assert conditions is not None
    assert conditions[0]["message"] == "etcd failed"


def test_the_message_of_a_member_is_cut_to_what_a_condition_may_hold() -> None:
    long = ProbeResult(
        "ClusterNotReady", failure("get /readyz", 500, b'{"message": "%b"}' % (b"x" * 2**20)).message, since=0
    )
    conditions = change_ready_condition(judged(AWAY), long, is_lasting=True, now=NOW)
    assert conditions is not None
    assert conditions[0]["message"] == "x" * 1023 + "…"
    assert change_ready_condition(judged(long), long, is_lasting=True, now=NOW) is None


def test_only_changed_status_fields_are_written() -> None:
    survey = ClusterReport(
        "v1.36.3", [{"groupVersion": "v1", "resources": []}], sum_resources([node("n1")], [pod("a", "n1")])
    )
    change = change_cluster_status(bare_cluster(), survey, None)
    assert change is not None
    assert set(change["status"]) == {"kubernetesVersion", "apiEnablements", "nodeSummary", "resourceSummary"}
    after = bare_cluster(status=change["status"])
    assert change_cluster_status(after, survey, None) is None
    assert change_cluster_status(after, ClusterReport(), None) is None
    assert change_cluster_status(bare_cluster(), ClusterReport(version=""), None) is None, "or for ever again"


def test_resources_a_member_no_longer_has_are_removed_from_its_status() -> None:
    before = ClusterReport(room=sum_resources([node("n1")], [pod("a", "n1")]))
    change = change_cluster_status(bare_cluster(), before, None)
    assert change is not None
    after = change_cluster_status(
        bare_cluster(status=change["status"]), ClusterReport(room=sum_resources([node("n1")], [])), None
    )
    assert after is not None
    assert after["status"] == {"resourceSummary": {"allocated": None}}


def test_only_a_member_that_speaks_of_itself_answers() -> None:
    assert [each.answers for each in (GOOD, SICK, AWAY, SHUT)] == [True, True, False, False]
    assert [each.is_ready for each in (GOOD, SICK, AWAY, SHUT)] == [True, False, False, False]


@pytest.mark.parametrize(
    ("ready", "is_silent", "state"),
    [
        (None, False, "unknown"),
        ({"status": "True", "reason": "ClusterReady"}, False, "ready"),
        ({"status": "False", "reason": "ClusterNotReady"}, False, "unhealthy"),
        ({"status": "False", "reason": "ClusterNotReachable"}, True, "unreachable"),
        ({"status": "False", "reason": "StatusCollectionFailed"}, True, "unusable"),
        ({"status": "False", "reason": "SameMemberAsAnotherCluster"}, True, "sameMember"),
        ({"status": "Unknown", "reason": "ClusterStatusUnknown"}, True, "unknown"),
    ],
)
def test_a_member_is_silent_when_nothing_is_heard_of_its_copies(
    ready: dict[str, str] | None, *, is_silent: bool, state: str
) -> None:
    conditions = [] if ready is None else [{"type": "Ready", **ready}]
    found = bare_cluster(status={"conditions": conditions})
    assert (is_member_silent(found), name_state(found)) == (is_silent, state)
    deleted = msgspec.structs.replace(found.metadata, deletion_timestamp="2026-11-18T12:00:00Z")
    assert name_state(msgspec.structs.replace(found, metadata=deleted)) == "leaving"


def test_a_group_that_does_not_answer_keeps_its_kinds_and_is_named() -> None:
    had = bare_cluster(
        status={
            "apiEnablements": [
                {"groupVersion": "metrics.k8s.io/v1", "resources": [{"name": "pods", "kind": "PodMetrics"}]},
                {"groupVersion": "gone.example/v1", "resources": [{"name": "a", "kind": "A"}]},
            ]
        }
    )
    said = {"apps/v1": [("deployments", "Deployment")], "v1": [("pods", "Pod")]}
    silent = ("metrics.k8s.io/v1", "new.example/v1")
    apis = describe_apis(said, silent=silent, had=had.status.api_enablements or ())
    assert {each["groupVersion"]: each["resources"][0]["kind"] for each in apis} == {
        "v1": "Pod",
        "apps/v1": "Deployment",
        "metrics.k8s.io/v1": "PodMetrics",
    }
    (condition,) = change_api_condition(had, silent, None, now=NOW) or ()
    assert (condition["type"], condition["status"]) == ("CompleteAPIEnablements", "False")
    assert "metrics.k8s.io/v1, new.example/v1" in condition["message"]


def test_the_condition_of_the_groups_stands_beside_ready_and_is_written_once() -> None:
    ready = change_ready_condition(bare_cluster(), GOOD, is_lasting=True, now=NOW)
    both = change_api_condition(bare_cluster(), (), ready, now=NOW)
    assert [(each["type"], each["status"]) for each in both or ()] == [
        ("Ready", "True"),
        ("CompleteAPIEnablements", "True"),
    ]
    has = bare_cluster(status={"conditions": both})
    assert change_api_condition(has, (), None, now=NOW) is None
    assert change_api_condition(has, None, None, now=NOW) is None, "nothing is known yet"
    (_, many) = change_api_condition(has, [f"g{n}/v1" for n in range(12)], None, now=NOW) or ()
    assert many["message"].startswith("g0/v1,")
    assert "and 2 more" in many["message"]
