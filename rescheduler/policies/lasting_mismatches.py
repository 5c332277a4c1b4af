"""Where pods have not matched the labels of their node for some time.

Labels of nodes come and go as taints do: an agent that discovers hardware removes them while it is upgraded.
So required node affinity counts as broken only after it has been so for some time. The plan memory keeps it.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np

from reberth.cluster.columns import Bools
from reberth.cluster.templates import Template
from reberth.config.settings import Section
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.view import View
from reberth.selectors import NodeRule, compile_node_rule
from reberth.values.duration import Duration
from rescheduler.model.plan_memory import find_beginnings

# By node and controller: since when pods of the controller do not match the node.
MismatchTimes = Mapping[str, Mapping[str, float]]


class NodeAffinitySettings(Section, frozen=True):
    """Whether pods leave nodes that they no longer match, and after what time."""

    enabled: bool = True
    """Move pods off nodes that their required node affinity or nodeSelector does not match."""
    lasting: Duration = msgspec.field(default=Duration(5 * 60), name="for")
    """A pod must not have matched its node for this time without a gap."""


@dataclass(frozen=True, eq=False)
class LastingMismatches:
    """By controller, the nodes that its pods have not matched for long enough."""

    nodes: Mapping[str, list[int]]

    def find(self, template: Template, size: int) -> Bools:
        """Tell on which of the nodes pods of a template are in the wrong place for long enough."""
        found = np.zeros(size, np.bool_)
        found[self.nodes.get(_identify(template), [])] = True
        return found


class WatchedMismatches(NamedTuple):
    """The mismatches that count on a view, and since when each has been there."""

    lasting: LastingMismatches
    since: dict[str, dict[str, float]]


def list_choosy(facts: SnapshotFacts) -> tuple[int, ...]:
    """List the templates that require something of their node."""
    return facts.templates_where(_demands_nodes)


def watch_mismatches(
    view: View, settings: NodeAffinitySettings, before: MismatchTimes | None, *, now: float
) -> WatchedMismatches:
    """Find the mismatches that count; `before` is what the last view gave, None if nothing is remembered."""
    names, since = view.nodes.names, {}
    nodes: defaultdict[str, list[int]] = defaultdict(list)
    found: defaultdict[int, set[str]] = defaultdict(set)
    for node, controller in _find_mismatches(view):
        found[node].add(controller)
    for node in sorted(found):
        known = None if before is None else before.get(names[node], {})
        since[names[node]] = find_beginnings(sorted(found[node]), known, now=now)
        for controller, begun in since[names[node]].items():
            if now - begun >= settings.lasting:
                nodes[controller].append(node)
    return WatchedMismatches(LastingMismatches(nodes), since)


def _find_mismatches(view: View) -> Iterator[tuple[int, str]]:
    """Give each node with a pod that does not match it, and the controller of the pod."""
    facts = view.facts
    templates, number_of = facts.snapshot.templates.all, facts.snapshot.pods.template
    for rule, numbers in facts.once("choosy templates", lambda: _group_by_rule(facts)).items():
        pods = view.counted_among(facts.pods_of(numbers))
        wrong = pods[~facts.matching(rule)[view.node[pods]]]
        for node, number in set(zip(view.node[wrong].tolist(), number_of[wrong].tolist(), strict=True)):
            yield node, _identify(templates[number])


def _group_by_rule(facts: SnapshotFacts) -> dict[NodeRule, list[int]]:
    """Group the choosy templates by what they require: thousands of them have a few rules."""
    groups: defaultdict[NodeRule, list[int]] = defaultdict(list)
    for number in list_choosy(facts):
        groups[compile_node_rule(facts.snapshot.templates.all[number].spec)].append(number)
    return groups


def _identify(template: Template) -> str:
    """Give the uid of the controller.

    Pods without one share the empty one, and so the time of the first of them on a node. Few of these are
    ever moved: only those with a mark that allows it.
    """
    return template.controller.uid if template.controller else ""


def _demands_nodes(template: Template) -> bool:
    spec = template.spec
    affinity = spec.affinity and spec.affinity.node_affinity
    return bool(
        spec.node_selector or (affinity and affinity.required_during_scheduling_ignored_during_execution)
    )
