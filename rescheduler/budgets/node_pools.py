"""Pools of nodes, and the disruption budgets of Karpenter's: when their owner wants no disruption.

A budget limits how many nodes Karpenter may disrupt at once, for some reasons and at some times. What it says
about nodes that are being removed is known from their taint. But a budget of 0 says that nothing in the pool
is to be disrupted now, which a move for balance would do.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from reberth.cluster.kinds import NODE_POOL
from reberth.records import Node, NodePool, NodePoolBudget
from reberth.values.duration import Duration
from reberth.values.refusal import Refused
from rescheduler.budgets.cron import read_cron
from rescheduler.observe.rule_context import RuleContext

NODE_POOL_LABEL = "karpenter.sh/nodepool"
# Karpenter's own reasons to consolidate. A move for balance, too, is made to save room.
UNDERUTILIZED = "Underutilized"
EMPTY = "Empty"
# A value above zero. Karpenter reads any other one as 0, too.
_SOME = re.compile(r"0*[1-9][0-9]*%?")

Pool = tuple[str, str]
"""The label that names the pool of a node, and its value; empty: the nodes without such a label."""


def find_pool(node: Node, keys: Sequence[str]) -> Pool:
    """Find the pool of a node: the first of these labels that it has."""
    labels = node.metadata.labels or {}
    return next(((key, labels[key]) for key in keys if key in labels), ("", ""))


def write_pool(pool: Pool) -> str:
    """Write a pool as the move ledger does; empty for the nodes without one."""
    key, name = pool
    return f"{key}={name}" if key else ""


def refuse_by_node_pool(name: str, context: RuleContext) -> Refused | None:
    """Refuse to move pods for balance if a budget of the NodePool allows no disruption now."""
    pool = context.snapshot.of(NODE_POOL).named("", name)
    ends = list(_list_ends(pool, UNDERUTILIZED, context.now)) if pool else []
    if not ends:
        return None
    reason = f"the disruption budget of NodePool {name} allows no node to be disrupted now"
    return Refused("NodePoolBudget", reason, None if None in ends else max(filter(None, ends)))


def is_spent(pool: NodePool, reason: str, now: float) -> bool:
    """Tell whether a budget of the NodePool allows no disruption for this reason now."""
    return bool(list(_list_ends(pool, reason, now)))


def _list_ends(pool: NodePool, reason: str, now: float) -> Iterator[float | None]:
    """Give the end of each budget of 0 that is active; None if it has no end."""
    for budget in pool.spec.disruption.budgets or ():
        concerned = budget.reasons is None or reason in budget.reasons
        if not concerned or _SOME.fullmatch(budget.nodes):
            continue
        if budget.schedule is None and budget.duration is None:
            yield None
        else:
            yield from _find_end(budget, now)


def _find_end(budget: NodePoolBudget, now: float) -> Iterator[float | None]:
    """Give the end of a scheduled budget if it is active; one that cannot be read is, as for Karpenter."""
    schedule, duration = read_cron(budget.schedule or ""), Duration.from_text(budget.duration or "")
    if schedule is None or duration is None:
        yield None
        return
    until, time = datetime.fromtimestamp(now, UTC), timedelta(seconds=duration)
    begun = schedule.find_last(until - time, until)
    if begun:
        yield (begun + time).timestamp()
