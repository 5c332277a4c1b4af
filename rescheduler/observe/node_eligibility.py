"""Which nodes may be the source or the destination of a move.

A node that is leaving, or that another tool may soon remove, is neither: its pods leave it anyway, and room
on it does not last. A young node, which is not initialized yet, is neither.
"""

from collections.abc import Iterable

from reberth.cluster.node_lifecycle import LeavingNode, judge_node
from reberth.records import Labels, Node
from reberth.values.refusal import Refused

_KEEP_PODS = "autoscaling.cast.ai/removal-disabled"
ONLY_LEAVING = Refused("DestinationLeaving", "the only nodes that fit are leaving or not initialized")
_RIVALS = tuple(
    f"nodeutilization.descheduler.openshift.io/{sign}" for sign in ("overutilized", "appropriate")
)


def refuse_source(node: Node) -> Refused | None:
    """Refuse to move pods off a node."""
    standing = judge_node(node)
    if isinstance(standing, LeavingNode):
        return Refused("SourceLeaving", f"the source node is leaving ({standing.sign}), and its pods with it")
    if standing:
        return Refused("SourceYoung", f"the source node is not initialized ({standing.sign})")
    for where, pairs in (("label", node.metadata.labels), ("annotation", node.metadata.annotations)):
        if _is_set(pairs, _KEEP_PODS):
            return Refused("NodeMarked", f"the source node has the {where} {_KEEP_PODS}")
    return None


def refuse_destination(node: Node) -> Refused | None:
    """Refuse to move pods onto a node."""
    standing = judge_node(node)
    if isinstance(standing, LeavingNode):
        return Refused("DestinationLeaving", f"the destination is leaving ({standing.sign})")
    if standing:
        return Refused("DestinationYoung", f"the destination is not initialized ({standing.sign})")
    return None


def find_rivals(nodes: Iterable[Node]) -> str | None:
    """Name the taint that another load-aware rescheduler has set, if there is one."""
    keys = (taint.key for node in nodes for taint in node.spec.taints or ())
    return next((key for key in keys if key in _RIVALS), None)


def _is_set(pairs: Labels | None, key: str) -> bool:
    return (pairs or {}).get(key, "false") != "false"
