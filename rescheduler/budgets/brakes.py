"""Brakes stop all moves; pauses stop the moves that no broken rule demands.

A brake is on when the cluster, its cache or the results of earlier moves are not as they should be. Pods that
break rules are still moved during a pause.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from reberth.records import Node
from reberth.values.refusal import Refused
from reberth.values.timestamp import TimeError, parse_time
from rescheduler.budgets.move_results import ResultBrakes, judge_results
from rescheduler.observe.rule_context import RuleContext

_DRAINING_TAINTS = ("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted")


@dataclass(frozen=True, eq=False)
class ClusterHealth:
    """What only a process that watches the cluster knows: the brakes need it beside the snapshot.

    `cache_ages` gives by kind how many seconds old the cached objects are. `brakes` are those that the
    process itself has put on. Unless replacements are `drawn` to their destinations, by the extender, no
    landing says anything about the forecast.
    """

    cache_ages: Mapping[str, float] = field(default_factory=dict)
    brakes: tuple[Refused, ...] = ()
    drawn: bool = True


NOT_WATCHED: Final = ClusterHealth()
"""For a snapshot that was read once, such as one from files."""


@dataclass(frozen=True, eq=False)
class Brakes:
    """The brakes that are on: `everywhere`, or only for what the results of its moves hold."""

    everywhere: tuple[Refused, ...]
    results: ResultBrakes

    def refuse(self, place: int, context: RuleContext) -> Refused | None:
        """Refuse to move a pod by the first brake that is on for it."""
        return next(iter(self.everywhere), None) or self.results.refuse(place, context)


def find_brakes(context: RuleContext, health: ClusterHealth = NOT_WATCHED) -> Brakes:
    """Find all brakes that are on."""
    results = judge_results(context, drawn=health.drawn)
    found = (
        *health.brakes,
        _find_not_ready(context),
        _find_stale(health.cache_ages, context),
        *results.everywhere,
    )
    return Brakes(tuple(refused for refused in found if refused), results)


def find_pauses(context: RuleContext) -> tuple[Refused, ...]:
    """List all pauses that are on."""
    found = _find_draining(context), _find_scale_up(context)
    return tuple(refused for refused in found if refused)


def _find_not_ready(context: RuleContext) -> Refused | None:
    nodes, most = context.snapshot.nodes.records, context.brakes.not_ready_nodes
    count = sum(_is_not_ready(node) for node in nodes)
    if count <= most * len(nodes):
        return None
    return Refused("NodesNotReady", f"{count} of {len(nodes)} nodes are not Ready, more than {most:.0%}")


def _find_stale(ages: Mapping[str, float], context: RuleContext) -> Refused | None:
    most = context.brakes.mirror_age
    old = {kind: age for kind, age in ages.items() if age > most}
    if not old:
        return None
    kind = max(sorted(old), key=old.__getitem__)
    return Refused("StaleMirror", f"the cache of {kind} is {old[kind]:.0f} s old, more than {most:g} s")


def _find_draining(context: RuleContext) -> Refused | None:
    names = sorted(node.metadata.name for node in context.snapshot.nodes.records if _is_drained(node))
    if not names or not context.brakes.pause_while_draining:
        return None
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return Refused("AutoscalerDrains", f"an autoscaler is removing node {names[0]}{more}")


def _find_scale_up(context: RuleContext) -> Refused | None:
    """Find young nodes among older ones; if all are young, the cluster is new, and nothing pauses."""
    settling = context.brakes.settling
    births = [_read_birth(node) for node in context.snapshot.nodes.records]
    young = [birth for birth in births if birth > context.now - settling]
    if not young or len(young) == len(births):
        return None
    end = max(young) + settling
    return Refused("ScaleUp", f"{len(young)} nodes are younger than {settling:g} s", end)


def _is_not_ready(node: Node) -> bool:
    conditions = node.status.conditions or ()
    return any(each.type == "Ready" and each.status != "True" for each in conditions)


def _is_drained(node: Node) -> bool:
    return any(taint.key in _DRAINING_TAINTS for taint in node.spec.taints or ())


def _read_birth(node: Node) -> float:
    try:
        return parse_time(node.metadata.creation_timestamp or "")
    except TimeError:
        return -math.inf
