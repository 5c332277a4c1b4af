"""Nodes that Karpenter is about to remove because too little runs on them.

A pod that lands on such a node keeps it alive: Karpenter waits for `consolidateAfter` again, and then there
is one pod more to move. Karpenter marks none of these nodes. The condition Consolidatable of its NodeClaim
says that no pod has come or gone for `consolidateAfter`. With its default of 0s that is true of every node,
and those are removed whose pods fit elsewhere. So little must be requested of a node, too.
"""

from collections.abc import Callable, Iterator

import numpy as np

from reberth.cluster.columns import Bools
from reberth.cluster.kinds import NODE_CLAIM, NODE_POOL
from reberth.cluster.pods.requests import CPU, MEMORY
from reberth.cluster.snapshot import Snapshot
from reberth.cluster.templates import Template
from reberth.forecast.state.view import View
from reberth.records import KarpenterNodeClaim, Labels
from rescheduler.observe.utilisation import shares

# Karpenter has no threshold; this is the one of Cluster Autoscaler (--scale-down-utilization-threshold).
_LITTLE = 0.5
_POOL = "karpenter.sh/nodepool"
_KEEP = "karpenter.sh/do-not-disrupt"
_WHEN_EMPTY = "WhenEmpty"


def find_emptying(view: View) -> Bools:
    """Tell which nodes Karpenter is about to remove."""
    snapshot, emptying = view.facts.snapshot, np.zeros(view.facts.size, np.bool_)
    candidates = dict(_list_candidates(snapshot))
    if not candidates:
        return emptying
    empty, kept = ~_find_served(view, _is_movable), _find_served(view, _is_kept)
    little = np.maximum(shares(view, CPU), shares(view, MEMORY)) < _LITTLE
    for node, only_empty in candidates.items():
        is_little = empty[node] or (little[node] and not only_empty)
        is_kept = kept[node] or _asks_to_stay(snapshot.nodes.records[node].metadata.annotations)
        emptying[node] = is_little and not is_kept
    return emptying


def _list_candidates(snapshot: Snapshot) -> Iterator[tuple[int, bool]]:
    """Give the nodes whose NodePool is consolidated, and whether it is so only when they are empty."""
    for claim in snapshot.of(NODE_CLAIM):
        node = snapshot.nodes.index.get(claim.status.node_name)
        pool = snapshot.of(NODE_POOL).named("", (claim.metadata.labels or {}).get(_POOL, ""))
        # Karpenter keeps the number of nodes of a pool with `replicas`.
        if node is not None and _is_consolidatable(claim) and pool and pool.spec.replicas is None:
            yield node, pool.spec.disruption.consolidation_policy == _WHEN_EMPTY


def _is_consolidatable(claim: KarpenterNodeClaim) -> bool:
    conditions = claim.status.conditions or ()
    return any(each.type == "Consolidatable" and each.status == "True" for each in conditions)


def _find_served(view: View, question: Callable[[Template], bool]) -> Bools:
    """Tell which nodes have a pod of a template of which something is true."""
    pods = view.facts.pods_of(view.facts.templates_where(question))
    return view.counts_on_nodes(pods) > 0


def _is_movable(template: Template) -> bool:
    """Tell whether the pods of a template would have to go elsewhere if their node were removed."""
    return template.controller is None or template.controller.kind not in ("DaemonSet", "Node")


def _asks_to_stay(annotations: Labels | None) -> bool:
    return (annotations or {}).get(_KEEP) == "true"


def _is_kept(template: Template) -> bool:
    return _asks_to_stay(template.pod.metadata.annotations)
