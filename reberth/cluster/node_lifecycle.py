"""Nodes that are leaving, and nodes that are not ready for pods yet: neither is a destination of moves.

Two autoscalers, several drain tools and the kubelet each mark nodes in their own way. A young node is
recognised by the steps that its provisioner has not finished yet, never by its age: provisioning has no fixed
duration.
"""

from collections.abc import Iterator

import msgspec

from reberth.records import Node

_LEAVING_TAINTS = frozenset(
    {
        "DeletionCandidateOfClusterAutoscaler",
        "ToBeDeletedByClusterAutoscaler",
        "karpenter.sh/disrupted",
        "cloud.google.com/impending-node-termination",
        "NodeWithImpairedVolumes",
        "medik8s.io/drain",
    }
)
_LEAVING_TAINT_PREFIX = "status-taint.cluster-autoscaler.kubernetes.io/"
_LEAVING_CONDITIONS = frozenset(
    {
        "MaintenancePlanned",
        "DrainInProgress",
        "Drained",
        "MaintenanceInProgress",
        "GracefulNodeShutdownInProgress",
    }
)
_YOUNG_TAINTS = frozenset({"karpenter.sh/unregistered"})
_YOUNG_TAINT_PREFIXES = (
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
)
_KARPENTER_LABEL = "karpenter.sh/nodepool"
_INITIALIZED_LABEL = "karpenter.sh/initialized"


class LeavingNode(msgspec.Struct, frozen=True):
    """The node is being removed or drained, or it does not work."""

    sign: str


class YoungNode(msgspec.Struct, frozen=True):
    """The provisioner has not finished the node."""

    sign: str


def judge_node(node: Node) -> LeavingNode | YoungNode | None:
    """Give the first sign that rules the node out as a destination."""
    for sign in _signs_of_leaving(node):
        return LeavingNode(sign)
    for sign in _signs_of_youth(node):
        return YoungNode(sign)
    return None


def _signs_of_leaving(node: Node) -> Iterator[str]:
    if node.metadata.deletion_timestamp is not None:
        yield "deletionTimestamp"
    if node.spec.unschedulable:
        yield "unschedulable"
    for taint in node.spec.taints or ():
        if taint.key in _LEAVING_TAINTS or taint.key.startswith(_LEAVING_TAINT_PREFIX):
            yield taint.key
    for condition in node.status.conditions or ():
        if condition.type == "Ready" and condition.status != "True":
            yield "not Ready"
        elif condition.type in _LEAVING_CONDITIONS and condition.status == "True":
            yield condition.type


def _signs_of_youth(node: Node) -> Iterator[str]:
    for taint in node.spec.taints or ():
        if taint.key in _YOUNG_TAINTS or taint.key.startswith(_YOUNG_TAINT_PREFIXES):
            yield taint.key
    labels = node.metadata.labels or {}
    if _KARPENTER_LABEL in labels and _INITIALIZED_LABEL not in labels:
        yield f"{_INITIALIZED_LABEL} is missing"
