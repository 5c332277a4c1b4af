"""Leaving and young nodes: each taint, condition and annotation that marks them."""

from typing import Any

import msgspec
import pytest

from reberth.cluster.node_lifecycle import LeavingNode, YoungNode, judge_node
from reberth.records import Node
from tests.support import builders


def node(*, deleted: str | None = None, conditions: dict[str, str] | None = None, **fields: Any) -> Node:
    made = builders.node("n1", **fields)
    made["metadata"]["deletionTimestamp"] = deleted
    made["status"]["conditions"] += [
        {"type": kind, "status": value} for kind, value in (conditions or {}).items()
    ]
    return msgspec.convert(made, Node)


def tainted(key: str, effect: str = "NoSchedule") -> Node:
    return node(taints=[{"key": key, "effect": effect}])


@pytest.mark.parametrize(
    "key",
    [
        "DeletionCandidateOfClusterAutoscaler",
        "ToBeDeletedByClusterAutoscaler",
        "karpenter.sh/disrupted",
        "cloud.google.com/impending-node-termination",
        "NodeWithImpairedVolumes",
        "medik8s.io/drain",
        "status-taint.cluster-autoscaler.kubernetes.io/upgrade",
    ],
)
@pytest.mark.parametrize("effect", ["NoSchedule", "PreferNoSchedule"])
def test_a_deletion_taint_marks_a_node_as_leaving(key: str, effect: str) -> None:
    assert judge_node(tainted(key, effect)) == LeavingNode(key)


@pytest.mark.parametrize(
    "key",
    [
        "startup-taint.cluster-autoscaler.kubernetes.io/storage",
        "ignore-taint.cluster-autoscaler.kubernetes.io/network",
        "karpenter.sh/unregistered",
    ],
)
def test_a_startup_taint_marks_a_node_as_young(key: str) -> None:
    assert judge_node(tainted(key)) == YoungNode(key)


@pytest.mark.parametrize(
    "condition",
    [
        "MaintenancePlanned",
        "DrainInProgress",
        "Drained",
        "MaintenanceInProgress",
        "GracefulNodeShutdownInProgress",
    ],
)
def test_a_condition_marks_a_node_as_leaving(condition: str) -> None:
    assert judge_node(node(conditions={condition: "True"})) == LeavingNode(condition)
    assert judge_node(node(conditions={condition: "False"})) is None


@pytest.mark.parametrize(
    ("found", "sign"),
    [
        (node(deleted="2026-11-18T12:00:00Z"), "deletionTimestamp"),
        (node(unschedulable=True), "unschedulable"),
        (node(conditions={"Ready": "False"}), "not Ready"),
        (node(conditions={"Ready": "Unknown"}), "not Ready"),
    ],
)
def test_a_node_that_takes_no_pods_is_leaving(found: Node, sign: str) -> None:
    assert judge_node(found) == LeavingNode(sign)


@pytest.mark.parametrize(
    ("labels", "young"),
    [
        ({"karpenter.sh/nodepool": "default"}, True),
        ({"karpenter.sh/nodepool": "default", "karpenter.sh/registered": "true"}, True),
        ({"karpenter.sh/nodepool": "default", "karpenter.sh/initialized": "true"}, False),
        ({}, False),
    ],
)
def test_a_node_of_karpenter_is_young_until_it_is_initialized(labels: dict[str, str], *, young: bool) -> None:
    expected = YoungNode("karpenter.sh/initialized is missing") if young else None

    assert judge_node(node(labels=labels)) == expected


@pytest.mark.parametrize(
    "found",
    [
        node(),
        tainted("node-role.kubernetes.io/control-plane"),
        tainted("dedicated"),
        Node(node().metadata),
        node(conditions={"DiskPressure": "True"}),
    ],
)
def test_an_ordinary_node_of_any_age_is_accepted(found: Node) -> None:
    assert judge_node(found) is None


def test_a_young_node_that_is_leaving_is_leaving() -> None:
    found = node(taints=[{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}], unschedulable=True)

    assert judge_node(found) == LeavingNode("unschedulable")
