"""One check per rule: on which nodes the bound pods of a template break it.

The checks use the simulation of kube-scheduler's filters, so a rule has the same meaning there. A filter is
made for a pod that is not bound yet, but these pods are. So the pod itself is subtracted: from the count of
its domain, and from the pods that its own anti-affinity matches.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import msgspec
import numpy as np

from reberth.cluster.columns import Ints
from reberth.cluster.templates import Template
from reberth.forecast.plugins.affinity_terms import REQUIRED_ANTI_AFFINITY, TermsError, own_terms
from reberth.forecast.plugins.existing_terms import WeightedPods, existing_terms
from reberth.forecast.plugins.spread_constraints import HARD, constraints_of
from reberth.forecast.plugins.topology_spread import filter_pod_topology_spread
from reberth.forecast.state.facts import ABSENT, SnapshotFacts
from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.forecast.state.label_index import find_matching_pods
from reberth.forecast.state.plugin_args import PodTopologySpreadArgs
from reberth.forecast.state.profile import DEFAULT_SCHEDULER, KubeScheduler
from reberth.forecast.state.verdict import FilterVerdict, Rejected, Unforeseeable
from reberth.forecast.state.view import View
from reberth.records import Labels
from reberth.selectors import SelectorError, compile_node_rule
from rescheduler.observe.utilisation import find_usable_nodes
from rescheduler.policies.lasting_mismatches import LastingMismatches
from rescheduler.policies.lasting_taints import LastingTaints


class RuleInputs(NamedTuple):
    """What the checks need beside the view."""

    scheduler: KubeScheduler
    taints: LastingTaints
    mismatches: LastingMismatches


# Gives for each node how often a pod of the template breaks the rule there; 0: it keeps the rule.
Question = Callable[[IncomingPod, View, RuleInputs], Ints]

_SPREAD_PLUGIN = "PodTopologySpread"


def break_taints(incoming: IncomingPod, _view: View, inputs: RuleInputs) -> Ints:
    return inputs.taints.find_untolerated(incoming.spec.tolerations)


def break_node_affinity(incoming: IncomingPod, view: View, inputs: RuleInputs) -> Ints:
    wrong = ~view.facts.matching(compile_node_rule(incoming.spec))
    return (wrong & inputs.mismatches.find(incoming.template, view.facts.size)).astype(np.int64)


def break_anti_affinity(incoming: IncomingPod, view: View, _inputs: RuleInputs) -> Ints:
    """Count the other pods in the domain that must be kept apart from the pod."""
    others = np.zeros(view.facts.size, np.int64)
    template = view.facts.snapshot.pods.template
    for each in list_apart(incoming, view.facts):
        column = view.facts.label(each.topology_key)
        where = column.codes[view.node[view.counted_among(each.pods)]]
        counts = np.bincount(where[where != ABSENT], minlength=len(column.values) + 1)
        counts[ABSENT] = 0
        itself = int((template[each.pods] == template[incoming.place]).any())
        others += np.maximum(counts[column.codes] - itself, 0)
    return others


def break_spread(incoming: IncomingPod, view: View, inputs: RuleInputs) -> Ints:
    """Check with maxSkew + 1: kube-scheduler would add the pod, but the domain already counts it."""
    arguments = _spread_arguments(incoming, inputs.scheduler)
    if arguments is None:
        return np.zeros(view.facts.size, np.int64)
    looser = view.facts.once(("looser", incoming.template), lambda: _loosen(incoming.template))
    return _refused(filter_pod_topology_spread(_with_template(incoming, looser), view, arguments), view)


def break_duplicates(incoming: IncomingPod, view: View, _inputs: RuleInputs) -> Ints:
    """Count how many more pods of the controller a node has than an even distribution would give it."""
    if incoming.controller is None:
        return np.zeros(view.facts.size, np.int64)
    counts = count_replicas(view, incoming.controller.uid)
    nodes = int(find_usable_nodes(view.facts).usable.sum())
    return np.maximum(counts - max(-(-int(counts.sum()) // max(nodes, 1)), 1), 0)


def count_replicas(view: View, controller: str) -> Ints:
    """Count a controller's pods node by node."""
    templates = view.facts.once("by controller", lambda: _group_by_controller(view.facts))
    return view.counts_on_nodes(view.facts.pods_of(templates.get(controller, ())))


def list_apart(incoming: IncomingPod, facts: SnapshotFacts) -> tuple[WeightedPods, ...]:
    """List the pods that must be kept apart from the pod, by either's required anti-affinity."""
    try:
        own = own_terms(incoming, facts)[REQUIRED_ANTI_AFFINITY]
    except TermsError:
        own = ()
    meant = (
        (each.term.topology_key, find_matching_pods(facts, each.term.selector, each.term.namespaces))
        for each in own
    )
    ones = [WeightedPods(key, pods, np.ones(len(pods), np.int64)) for key, pods in meant]
    return (*ones, *existing_terms(facts, REQUIRED_ANTI_AFFINITY).matching(incoming, facts))


def counts_in_spread(
    incoming: IncomingPod, facts: SnapshotFacts, labels: Labels, scheduler: KubeScheduler
) -> bool:
    """Tell whether a pod with these labels counts for a DoNotSchedule constraint of the template."""
    arguments = _spread_arguments(incoming, scheduler)
    try:
        found = constraints_of(incoming, facts, arguments, action=HARD) if arguments else ()
    except SelectorError:
        return False
    return any(each.selector.matches(labels) for each in found)


def _spread_arguments(incoming: IncomingPod, scheduler: KubeScheduler) -> PodTopologySpreadArgs | None:
    profile = scheduler.profiles.get(incoming.template.spec.scheduler_name or DEFAULT_SCHEDULER)
    if profile is None or _SPREAD_PLUGIN not in profile.filters:
        return None
    arguments = profile.arguments[_SPREAD_PLUGIN]
    return arguments if isinstance(arguments, PodTopologySpreadArgs) else None


def _group_by_controller(facts: SnapshotFacts) -> Mapping[str, tuple[int, ...]]:
    found: dict[str, list[int]] = {}
    for place, template in enumerate(facts.snapshot.templates.all):
        if template.controller is not None:
            found.setdefault(template.controller.uid, []).append(place)
    return {uid: tuple(places) for uid, places in found.items()}


def _loosen(template: Template) -> Template:
    constraints = tuple(
        msgspec.structs.replace(each, max_skew=each.max_skew + 1)
        for each in template.spec.topology_spread_constraints or ()
    )
    spec = msgspec.structs.replace(template.spec, topology_spread_constraints=constraints or None)
    return msgspec.structs.replace(template, pod=msgspec.structs.replace(template.pod, spec=spec))


def _with_template(incoming: IncomingPod, template: Template) -> IncomingPod:
    return replace(incoming, row=msgspec.structs.replace(incoming.row, template=template))


def _refused(verdict: FilterVerdict, view: View) -> Ints:
    refused = np.zeros(view.facts.size, np.bool_)
    if not isinstance(verdict, Rejected | Unforeseeable):
        for each in verdict:
            refused |= each.nodes
    return refused.astype(np.int64)
