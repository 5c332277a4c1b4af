"""Pauses: the moves for balance wait while an autoscaler changes a pool of nodes.

New nodes are there for the pods that were pending, and these are still coming; the pods of a node that is
being removed land on the others. A move that takes room there now makes the autoscaler add another node. That
concerns the pool that it changes, as the source and as the destination of moves, and no other.

Both end: a pool to which nodes are added all the time would otherwise never be balanced, nor one with a taint
that was left behind.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from reberth.cluster.columns import Bools
from reberth.records import Node
from reberth.values.refusal import Refused
from reberth.values.timestamp import TimeError, parse_time
from rescheduler.budgets.node_pools import NODE_POOL_LABEL, Pool, find_pool, refuse_by_node_pool, write_pool
from rescheduler.observe.rule_context import RuleContext

_DRAINING_TAINTS = ("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted")


@dataclass(frozen=True, eq=False)
class Pauses:
    """The pauses of each pool, and the pool of each node."""

    by_pool: Mapping[Pool, tuple[Refused, ...]]
    pools: Sequence[Pool]

    def refuse(self, node: int) -> Refused | None:
        """Refuse to move a pod off a node, or onto it."""
        return next(iter(self.by_pool.get(self.pools[node], ())), None) if node >= 0 else None

    @cached_property
    def may_change(self) -> Bools:
        """Tell for each node whether its pool is not paused."""
        return np.array([pool not in self.by_pool for pool in self.pools], np.bool_)

    def list_rules(self) -> Iterator[Refused]:
        """Give each rule once, with the reason of one pool."""
        found: defaultdict[str, list[Refused]] = defaultdict(list)
        for refused in (each for pool in sorted(self.by_pool) for each in self.by_pool[pool]):
            found[refused.rule].append(refused)
        for rule, (first, *others) in sorted(found.items()):
            more = f", and {len(others)} more pools are paused" if others else ""
            yield Refused(rule, f"{first.reason}{more}", first.until)


def find_pauses(context: RuleContext, tainted: Mapping[str, Mapping[str, float]]) -> Pauses:
    """Find the pauses; `tainted` says by node and taint since when it is there, as far as that is known."""
    records, labels = context.snapshot.nodes.records, context.brakes.node_pool_labels
    pools = [find_pool(node, labels) for node in records]
    members: defaultdict[Pool, list[Node]] = defaultdict(list)
    for pool, node in zip(pools, records, strict=True):
        members[pool].append(node)
    is_new = not any(_is_settled(node, context) for node in records)
    found = {
        pool: tuple(_list_pauses(pool, nodes, context, tainted, is_new=is_new))
        for pool, nodes in members.items()
    }
    return Pauses({pool: pauses for pool, pauses in found.items() if pauses}, pools)


def _list_pauses(
    pool: Pool,
    nodes: Sequence[Node],
    context: RuleContext,
    tainted: Mapping[str, Mapping[str, float]],
    *,
    is_new: bool,
) -> Iterator[Refused]:
    settings, now = context.brakes, context.now
    drained = [node.metadata.name for node in nodes if _is_drained(node)]
    ends = {name: _find_drain(tainted.get(name, {}), now) + settings.longest_drain for name in drained}
    leaving = sorted(name for name, end in ends.items() if now < end)
    if leaving and settings.pause_while_draining:
        more = f" and {len(leaving) - 1} more" if len(leaving) > 1 else ""
        reason = f"an autoscaler is removing node {leaving[0]}{more} of {_describe(pool)}"
        yield Refused("AutoscalerDrains", reason, max(ends.values()))
    names = {(node.metadata.labels or {}).get(NODE_POOL_LABEL, "") for node in nodes}
    spent = (refuse_by_node_pool(name, context) for name in sorted(names) if settings.node_pool_budgets)
    yield from filter(None, spent)
    births = sorted(map(_read_birth, nodes))
    young = sum(birth > now - settings.settling for birth in births)
    end = _find_first(births, settings.settling) + settings.settling
    if young and end > now and not is_new:
        yield Refused(
            "ScaleUp", f"{young} nodes of {_describe(pool)} are younger than {settings.settling:g} s", end
        )


def _find_first(births: Sequence[float], settling: float) -> float:
    """Give the birth of the first node of the last burst: each came before the one before it had settled."""
    first = births[-1]
    for birth in reversed(births):
        if birth < first - settling:
            break
        first = birth
    return first


def _describe(pool: Pool) -> str:
    return f"pool {write_pool(pool)}" if pool[0] else "the nodes without a pool"


def _is_settled(node: Node, context: RuleContext) -> bool:
    return _read_birth(node) <= context.now - context.brakes.settling


def _is_drained(node: Node) -> bool:
    return any(taint.key in _DRAINING_TAINTS for taint in node.spec.taints or ())


def _find_drain(times: Mapping[str, float], now: float) -> float:
    """Tell since when a node is being removed; the taints are written as `kubectl taint` does."""
    keys = {name: name.partition(":")[0].partition("=")[0] for name in times}
    return min((since for name, since in times.items() if keys[name] in _DRAINING_TAINTS), default=now)


def _read_birth(node: Node) -> float:
    try:
        return parse_time(node.metadata.creation_timestamp or "")
    except TimeError:
        return -math.inf
