"""Scheduling rules that a bound pod may come to break, checked template by template.

A rule is checked only for templates to which it may apply. The answer is found once per view. The effect of a
move is counted on the templates that it touches.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from reberth.cluster.columns import Bools, Indices, Ints, group_codes, seal
from reberth.cluster.templates import Template
from reberth.forecast.plugins.spread_constraints import HARD
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.incoming_pod import IncomingPod, read_bound_pod
from reberth.forecast.state.view import View
from rescheduler.observe.view_cache import ViewCache
from rescheduler.policies.lasting_mismatches import list_choosy
from rescheduler.policies.rule_checks import (
    Question,
    RuleInputs,
    break_anti_affinity,
    break_duplicates,
    break_node_affinity,
    break_spread,
    break_taints,
    counts_in_spread,
    list_apart,
)

TAINTS, NODE_AFFINITY, ANTI_AFFINITY = "taints", "nodeAffinity", "antiAffinity"
SPREAD, DUPLICATES = "topologySpread", "duplicates"


@dataclass(frozen=True, eq=False)
class SchedulingRules:
    """The enabled rules on one snapshot."""

    names: tuple[str, ...]
    inputs: RuleInputs
    _known: ViewCache[Ints] = field(default_factory=ViewCache, repr=False)

    def find_broken(self, view: View) -> Iterator[tuple[str, Indices, Ints]]:
        """Give the pods that break each rule and how often, template by template."""
        for rule in self.names:
            for template in sorted(_list_concerned(rule, view.facts)):
                pods = self._list_breaking(rule, template, view)
                if len(pods):
                    yield rule, pods, self._find_nodes(rule, template, view)[view.node[pods]]

    def count_broken(self, view: View) -> int:
        """Count the broken rules of all pods that are not terminating."""
        return sum(_count_staying(pods, view) for _, pods, _ in self.find_broken(view))

    def count_among(self, templates: Iterable[int], view: View) -> int:
        """Count the broken rules of some templates' pods."""
        pairs = [
            (rule, template)
            for rule in self.names
            for template in _list_concerned(rule, view.facts).intersection(templates)
        ]
        return sum(
            _count_staying(self._list_breaking(rule, template, view), view) for rule, template in pairs
        )

    def find_breaking(self, rule: str, pods: Indices, view: View) -> Bools:
        """Tell which of the pods break a rule on their node."""
        found = np.zeros(len(pods), np.bool_)
        for template, theirs in group_codes(view.facts.snapshot.pods.template[pods]):
            found[theirs] = self._find_nodes(rule, template, view)[view.node[pods[theirs]]] > 0
        return found

    def list_touched(self, pod: int, view: View) -> tuple[int, ...]:
        """List the templates whose rules may depend on the node of this pod."""
        facts = view.facts
        template = int(facts.snapshot.pods.template[pod])
        return facts.once(("touched", template), lambda: tuple(sorted(self._find_touched(pod, facts))))

    def _list_breaking(self, rule: str, template: int, view: View) -> Indices:
        pods = view.counted_among(view.facts.pods_of([template]))
        return pods[self._find_nodes(rule, template, view)[view.node[pods]] > 0] if len(pods) else pods

    def _find_nodes(self, rule: str, template: int, view: View) -> Ints:
        """Tell for each node how often a pod of the template breaks the rule there."""
        return self._known.once(
            view,
            (rule, template),
            lambda: _QUESTIONS[rule](_ask(view.facts, template), view, self.inputs),
        )

    def _find_touched(self, pod: int, facts: SnapshotFacts) -> set[int]:
        row = facts.snapshot.pods.rows[pod]
        column = facts.snapshot.pods.template
        near = set(_list_spread_hard(facts)).intersection(facts.snapshot.templates_in(row.namespace))
        found = {
            each
            for each in near
            if counts_in_spread(_ask(facts, each), facts, row.labels, self.inputs.scheduler)
        }
        for each in list_apart(read_bound_pod(facts, pod), facts):
            found.update(np.unique(column[each.pods]).tolist())
        return found | {int(column[pod])}


def _list_concerned(rule: str, facts: SnapshotFacts) -> frozenset[int]:
    """List the templates to which a rule may apply."""
    return facts.once(("concerned", rule), lambda: frozenset(_LISTINGS[rule](facts)))


def _count_staying(pods: Indices, view: View) -> int:
    return int(np.count_nonzero(~view.terminating[pods]))


def _ask(facts: SnapshotFacts, template: int) -> IncomingPod:
    """Give the next pod of a template, as if it replaced the first one."""
    return read_bound_pod(facts, int(facts.pods_of([template]).min()))


def _list_on_tainted(facts: SnapshotFacts) -> list[int]:
    pods = facts.snapshot.pods
    tainted = facts.once("tainted", lambda: seal(np.array(list(_find_tainted(facts)), np.bool_)))
    there = np.flatnonzero(pods.counted)
    there = there[tainted[pods.node[there]]]
    found: list[int] = np.unique(pods.template[there]).tolist()
    return found


def _find_tainted(facts: SnapshotFacts) -> Iterator[bool]:
    for record in facts.snapshot.nodes.records:
        yield any(taint.effect in ("NoSchedule", "NoExecute") for taint in record.spec.taints or ())


def _list_apart(facts: SnapshotFacts) -> tuple[int, ...]:
    """List the templates with required anti-affinity, and those that it matches."""
    return facts.once("all apart", lambda: tuple(sorted(_find_apart(facts))))


def _find_apart(facts: SnapshotFacts) -> set[int]:
    found: set[int] = set()
    for template in facts.templates_where(_keeps_away):
        found.add(template)
        for each in list_apart(_ask(facts, template), facts):
            found.update(np.unique(facts.snapshot.pods.template[each.pods]).tolist())
    return found


def _keeps_away(template: Template) -> bool:
    affinity = template.spec.affinity and template.spec.affinity.pod_anti_affinity
    return bool(affinity and affinity.required_during_scheduling_ignored_during_execution)


def _list_spread_hard(facts: SnapshotFacts) -> tuple[int, ...]:
    return facts.templates_where(_spreads_hard)


def _spreads_hard(template: Template) -> bool:
    constraints = template.spec.topology_spread_constraints
    return constraints is not None and any(each.when_unsatisfiable == HARD for each in constraints)


def _list_replicated(facts: SnapshotFacts) -> tuple[int, ...]:
    return facts.templates_where(_is_replicated)


def _is_replicated(template: Template) -> bool:
    return template.controller is not None


_QUESTIONS: Mapping[str, Question] = {
    TAINTS: break_taints,
    NODE_AFFINITY: break_node_affinity,
    ANTI_AFFINITY: break_anti_affinity,
    SPREAD: break_spread,
    DUPLICATES: break_duplicates,
}
_LISTINGS: Mapping[str, Callable[[SnapshotFacts], Iterable[int]]] = {
    TAINTS: _list_on_tainted,
    NODE_AFFINITY: list_choosy,
    ANTI_AFFINITY: _list_apart,
    SPREAD: _list_spread_hard,
    DUPLICATES: _list_replicated,
}
