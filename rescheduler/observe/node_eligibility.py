"""Which nodes pods may leave, which they may enter, and which may be emptied.

A node that is going, or that somebody suspects of going soon, is neither a source nor a destination: its pods
go anyway, and room on it is no room. The same holds for one that its maker has not finished.
"""

from collections.abc import Iterable

from reberth.cluster.node_lifecycle import LeavingNode, judge_node
from reberth.records import Labels, Node
from reberth.values.refusal import Refused

# Whoever sets them wants the node to stay as full as it is.
_KEEP_NODE = (
    "karpenter.sh/do-not-disrupt",
    "karpenter.sh/do-not-consolidate",
    "cluster-autoscaler.kubernetes.io/scale-down-disabled",
)
_KEEP_PODS = "autoscaling.cast.ai/removal-disabled"
_BUSY_PREFIX = "delay-deletion.cluster-autoscaler.kubernetes.io/"
ONLY_LEAVING = Refused(
    "DestinationLeaving", "destination is leaving: the only nodes that fit are leaving or not finished"
)
_RIVALS = tuple(
    f"nodeutilization.descheduler.openshift.io/{sign}" for sign in ("overutilized", "appropriate")
)


def refuse_source(node: Node) -> Refused | None:
    """Tell why no policy moves a pod off a node."""
    standing = judge_node(node)
    if isinstance(standing, LeavingNode):
        return Refused("SourceLeaving", f"source is leaving ({standing.sign}): its pods go anyway")
    if standing:
        return Refused("SourceYoung", f"source is not finished ({standing.sign})")
    for where, pairs in (("label", node.metadata.labels), ("annotation", node.metadata.annotations)):
        if _is_set(pairs, _KEEP_PODS):
            return Refused("NodeMarked", f"the source's {where} {_KEEP_PODS}")
    return None


def refuse_destination(node: Node) -> Refused | None:
    """Tell why no pod is moved onto a node."""
    standing = judge_node(node)
    if isinstance(standing, LeavingNode):
        return Refused("DestinationLeaving", f"destination is leaving ({standing.sign})")
    if standing:
        return Refused("DestinationYoung", f"destination is not finished ({standing.sign})")
    return None


def refuse_emptying(node: Node) -> Refused | None:
    """Tell why a node is not emptied, though single pods may be moved off it."""
    refused = refuse_source(node)
    if refused:
        return refused
    annotations = node.metadata.annotations or {}
    for key in annotations:
        if key.startswith(_BUSY_PREFIX):
            return Refused("NodeBusy", f"annotation {key}")
    kept = next((key for key in _KEEP_NODE if _is_set(annotations, key)), None)
    return Refused("NodeMarked", f"annotation {kept}") if kept else None


def find_rivals(nodes: Iterable[Node]) -> str | None:
    """Name the taint by which another load-aware rescheduler shows itself."""
    keys = (taint.key for node in nodes for taint in node.spec.taints or ())
    return next((key for key in keys if key in _RIVALS), None)


def _is_set(pairs: Labels | None, key: str) -> bool:
    return (pairs or {}).get(key, "false") != "false"
