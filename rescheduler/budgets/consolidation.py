"""Nodes that Karpenter is about to remove because too little runs on them.

A pod that lands on such a node keeps it alive: Karpenter waits for `consolidateAfter` again, and then there
is one pod more to move. Karpenter marks none of these nodes. The condition Consolidatable of its NodeClaim
says that no pod has come or gone for `consolidateAfter`. With its default of 0s that is true of every node,
for ever, and those are removed whose pods fit elsewhere. So little must be requested of a node, too, and
Karpenter must still be deciding: a node that has stayed for long after the last change is one that Karpenter
cannot remove, or will not.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from reberth.cluster.columns import Bools
from reberth.cluster.kinds import NODE_CLAIM, NODE_POOL
from reberth.cluster.pods.requests import CPU, MEMORY
from reberth.cluster.snapshot import Snapshot
from reberth.cluster.templates import Template
from reberth.forecast.state.view import View
from reberth.records import Condition, KarpenterNodeClaim, Labels, NodePool
from reberth.values.timestamp import TimeError, parse_time
from rescheduler.budgets.node_pools import EMPTY, NODE_POOL_LABEL, UNDERUTILIZED, is_spent
from rescheduler.observe.rule_context import RuleContext
from rescheduler.observe.utilisation import shares
from rescheduler.protections.annotations import FOR_A_WHILE
from rescheduler.protections.pod_state import find_kept_for_a_while

# Karpenter has no threshold; this is the one of Cluster Autoscaler (--scale-down-utilization-threshold).
_LITTLE = 0.5
# How long Karpenter may be deciding. It looks for nodes to remove every 10 s, and even if nothing has changed
# every 5 min; then it looks again 15 s later. Its budgets let a part of the nodes go at once.
_DECIDING = 15 * 60.0
_WHEN_EMPTY = "WhenEmpty"


def find_emptying(view: View, context: RuleContext) -> Bools:
    """Tell which nodes Karpenter is about to remove."""
    snapshot, emptying = context.snapshot, np.zeros(view.facts.size, np.bool_)
    candidates = dict(_list_candidates(snapshot))
    if not candidates:
        return emptying
    empty, kept = ~_find_served(view), _find_kept(view, context)
    little = np.maximum(shares(view, CPU), shares(view, MEMORY)) < _LITTLE
    for node, pool in candidates.items():
        is_little = empty[node] or (little[node] and pool.spec.disruption.consolidation_policy != _WHEN_EMPTY)
        if (
            is_little
            and not kept[node]
            and not _asks_to_stay(snapshot.nodes.records[node].metadata.annotations)
        ):
            emptying[node] = not _is_spent(pool, EMPTY if empty[node] else UNDERUTILIZED, context)
    return emptying


def _list_candidates(snapshot: Snapshot) -> Iterator[tuple[int, NodePool]]:
    """Give the nodes that Karpenter may be deciding about, and their NodePools."""
    for claim in snapshot.of(NODE_CLAIM):
        node = snapshot.nodes.index.get(claim.status.node_name)
        pool = snapshot.of(NODE_POOL).named("", (claim.metadata.labels or {}).get(NODE_POOL_LABEL, ""))
        # Karpenter keeps the number of nodes of a pool with `replicas`.
        if node is not None and pool and pool.spec.replicas is None and _is_undecided(claim, snapshot.now):
            yield node, pool


def _is_undecided(claim: KarpenterNodeClaim, now: float) -> bool:
    """Tell whether Karpenter may be deciding about a node: it may be removed, and changed a short time ago.

    A time that is missing, invalid or far in the future says nothing. If neither says anything, the node does
    not count: one pod may land on a node that goes, but the other way round nothing would ever be balanced.
    """
    conditions = claim.status.conditions or ()
    said = next(filter(_is_consolidatable, conditions), None)
    if said is None:
        return False
    changed = said.last_transition_time, claim.status.last_pod_event_time
    return any(_is_recent(time or "", now) for time in changed)


def _is_consolidatable(condition: Condition) -> bool:
    return condition.type == "Consolidatable" and condition.status == "True"


def _is_recent(text: str, now: float) -> bool:
    try:
        return abs(now - parse_time(text)) <= _DECIDING
    except TimeError:
        return False


def _is_spent(pool: NodePool, reason: str, context: RuleContext) -> bool:
    """Tell whether a disruption budget lets Karpenter remove no node of a pool now; found once for a pool."""
    key = ("spent", pool.metadata.name, reason)
    return context.once(key, partial(is_spent, pool, reason, context.now))


def _find_served(view: View) -> Bools:
    """Tell which nodes have a pod that would have to go elsewhere if its node were removed."""
    return view.counts_on_nodes(view.facts.pods_of(view.facts.templates_where(_is_movable))) > 0


def _is_movable(template: Template) -> bool:
    return template.controller is None or template.controller.kind not in ("DaemonSet", "Node")


def _find_kept(view: View, context: RuleContext) -> Bools:
    """Tell which nodes have a pod that keeps Karpenter from removing them, for ever or for a while."""
    kept = find_kept_for_a_while(context).copy()
    kept[view.facts.pods_of(view.facts.templates_where(_is_kept))] = True
    return view.counts_on_nodes(np.flatnonzero(kept).astype(np.int32)) > 0


def _is_kept(template: Template) -> bool:
    return _asks_to_stay(template.pod.metadata.annotations)


def _asks_to_stay(annotations: Labels | None) -> bool:
    return (annotations or {}).get(FOR_A_WHILE) == "true"
