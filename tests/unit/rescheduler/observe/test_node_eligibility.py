"""Which nodes are sources or destinations, and which may be emptied: a row for each mark."""

from typing import Any

import pytest

from reberth.records import Node
from reberth.values.refusal import Refused
from rescheduler.observe.node_eligibility import (
    find_rivals,
    refuse_destination,
    refuse_source,
)
from tests.support.builders import as_record
from tests.support.rescheduler.guardrails import Object

READY = {"type": "Ready", "status": "True"}


def node_of(
    *taints: str, spec: Object | None = None, conditions: tuple[Object, ...] = (READY,), **metadata: Any
) -> Node:
    made = {
        "metadata": {"name": "n1", **metadata},
        "spec": {"taints": [{"key": key, "effect": "PreferNoSchedule"} for key in taints], **(spec or {})},
        "status": {"conditions": list(conditions)},
    }
    return as_record(Node, made)


LEAVING = [
    ("DeletionCandidateOfClusterAutoscaler", node_of("DeletionCandidateOfClusterAutoscaler")),
    ("ToBeDeletedByClusterAutoscaler", node_of("ToBeDeletedByClusterAutoscaler")),
    ("karpenter.sh/disrupted", node_of("karpenter.sh/disrupted")),
    ("medik8s.io/drain", node_of("medik8s.io/drain")),
    ("unschedulable", node_of(spec={"unschedulable": True})),
    ("deletionTimestamp", node_of(deletionTimestamp="2027-01-15T08:00:00Z")),
    ("not Ready", node_of(conditions=({"type": "Ready", "status": "Unknown"},))),
    ("DrainInProgress", node_of(conditions=(READY, {"type": "DrainInProgress", "status": "True"}))),
]
YOUNG = [
    ("karpenter.sh/unregistered", node_of("karpenter.sh/unregistered")),
    (
        "startup-taint.cluster-autoscaler.kubernetes.io/x",
        node_of("startup-taint.cluster-autoscaler.kubernetes.io/x"),
    ),
    ("karpenter.sh/initialized is missing", node_of(labels={"karpenter.sh/nodepool": "a"})),
]
FULL = [
    {"karpenter.sh/do-not-disrupt": "true"},
    {"karpenter.sh/do-not-consolidate": "true"},
    {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"},
]


@pytest.mark.parametrize(("sign", "node"), LEAVING)
def test_a_leaving_node_is_neither_source_nor_destination(sign: str, node: Node) -> None:
    expected = Refused("SourceLeaving", f"the source node is leaving ({sign}), and its pods with it")
    assert refuse_source(node) == expected
    assert refuse_destination(node) == Refused("DestinationLeaving", f"the destination is leaving ({sign})")


@pytest.mark.parametrize(("sign", "node"), YOUNG)
def test_a_young_node_is_neither_source_nor_destination(sign: str, node: Node) -> None:
    assert refuse_source(node) == Refused("SourceYoung", f"the source node is not initialized ({sign})")
    assert refuse_destination(node) == Refused(
        "DestinationYoung", f"the destination is not initialized ({sign})"
    )


@pytest.mark.parametrize("annotations", FULL)
def test_pods_may_leave_a_node_that_autoscalers_keep(annotations: dict[str, str]) -> None:
    node = node_of(annotations=annotations)
    assert refuse_source(node) is None
    assert refuse_destination(node) is None


@pytest.mark.parametrize("where", ["labels", "annotations"])
def test_a_node_with_removal_disabled_is_no_source(where: str) -> None:
    node = node_of(**{where: {"autoscaling.cast.ai/removal-disabled": "true"}})
    refused = refuse_source(node)
    assert refused == Refused(
        "NodeMarked",
        f"the source node has the {where.removesuffix('s')} autoscaling.cast.ai/removal-disabled",
    )
    assert refuse_destination(node) is None


def test_a_node_annotation_with_value_false_is_ignored() -> None:
    marks = dict.fromkeys(
        [*(key for each in FULL for key in each), "autoscaling.cast.ai/removal-disabled"], "false"
    )
    node = node_of(annotations=marks)
    assert refuse_source(node) is None


def test_an_ordinary_node_is_source_and_destination() -> None:
    assert refuse_source(node_of()) is None
    assert refuse_destination(node_of()) is None


def test_another_rescheduler_is_known_by_its_taint() -> None:
    key = "nodeutilization.descheduler.openshift.io/overutilized"
    assert find_rivals([node_of(), node_of(key)]) == key
    assert find_rivals([node_of("a"), node_of()]) is None
