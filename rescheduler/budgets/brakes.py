"""Brakes stop moves when the cluster, its cache or the results of earlier moves are not as they should be."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from reberth.records import Node
from reberth.values.refusal import Refused
from rescheduler.budgets.move_results import ResultBrakes, judge_results
from rescheduler.observe.rule_context import RuleContext


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


def _find_not_ready(context: RuleContext) -> Refused | None:
    nodes, most = context.snapshot.nodes.records, context.brakes.not_ready_nodes
    count = context.once_of_cluster("not ready nodes", lambda: sum(map(_is_not_ready, nodes)))
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


def _is_not_ready(node: Node) -> bool:
    for each in node.status.conditions or ():  # a generator for each node would cost more than the rest
        if each.type == "Ready":
            return each.status != "True"
    return False
