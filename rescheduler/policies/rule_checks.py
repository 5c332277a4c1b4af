"""Each rule as a question about a template: on which nodes one of its standing pods would break it.

Kube-scheduler's own functions answer, so a rule means here what it means there. What they say is about a pod
that is still to come; the pods that are asked about stand already. So a pod's own presence is taken out
again: from the count of its domain, and from those that keep its likes away.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import msgspec
import numpy as np

from reberth.cluster.columns import Ints
from reberth.cluster.templates import Template
from reberth.forecast.plugins.affinity_terms import APART, TermsError, own_terms
from reberth.forecast.plugins.existing_terms import Weighed, standing_terms
from reberth.forecast.plugins.node_rules import refuse_tainted
from reberth.forecast.plugins.spread_constraints import HARD, constraints_of
from reberth.forecast.plugins.topology_spread import refuse_spread
from reberth.forecast.state.facts import ABSENT, Ground
from reberth.forecast.state.incoming_pod import Asked
from reberth.forecast.state.label_index import pods_meant
from reberth.forecast.state.plugin_args import SpreadArguments
from reberth.forecast.state.profile import DEFAULT_SCHEDULER, Scheduler
from reberth.forecast.state.verdict import Rejected, Unforeseeable, Verdict
from reberth.forecast.state.view import View
from reberth.records import Labels
from reberth.selectors import SelectorError, compile_node_rule
from rescheduler.observe.utilisation import standing

# Gives for each node how badly a pod of the template breaks the rule there; 0: not at all.
Question = Callable[[Asked, View, Scheduler], Ints]

_SPREAD_PLUGIN = "PodTopologySpread"


def break_taints(asked: Asked, seen: View, _scheduler: Scheduler) -> Ints:
    return _refused(refuse_tainted(asked, seen), seen)


def break_node_affinity(asked: Asked, seen: View, _scheduler: Scheduler) -> Ints:
    return (~seen.ground.matching(compile_node_rule(asked.spec))).astype(np.int64)


def break_anti_affinity(asked: Asked, seen: View, _scheduler: Scheduler) -> Ints:
    """Count the others in its domain that the pod keeps away, or that keep it away."""
    others = np.zeros(seen.ground.size, np.int64)
    template = seen.ground.snapshot.pods.template
    for each in list_apart(asked, seen.ground):
        column = seen.ground.label(each.topology_key)
        where = column.codes[seen.node[seen.counted_among(each.pods)]]
        counts = np.bincount(where[where != ABSENT], minlength=len(column.values) + 1)
        counts[ABSENT] = 0
        itself = int((template[each.pods] == template[asked.place]).any())
        others += np.maximum(counts[column.codes] - itself, 0)
    return others


def break_spread(asked: Asked, seen: View, scheduler: Scheduler) -> Ints:
    """Ask with one more of skew: the domain counts the pod already that kube-scheduler would add."""
    arguments = _spread_arguments(asked, scheduler)
    if arguments is None:
        return np.zeros(seen.ground.size, np.int64)
    looser = seen.ground.once(("looser", asked.template), lambda: _loosen(asked.template))
    return _refused(refuse_spread(_with_template(asked, looser), seen, arguments), seen)


def break_duplicates(asked: Asked, seen: View, _scheduler: Scheduler) -> Ints:
    """Count by how many more of an owner's pods a node has than if they stood on all nodes alike."""
    if asked.controller is None:
        return np.zeros(seen.ground.size, np.int64)
    counts = count_replicas(seen, asked.controller.uid)
    nodes = int(standing(seen.ground).usable.sum())
    return np.maximum(counts - max(-(-int(counts.sum()) // max(nodes, 1)), 1), 0)


def count_replicas(seen: View, controller: str) -> Ints:
    """Count a controller's pods node by node."""
    templates = seen.ground.once("by controller", lambda: _group_by_controller(seen.ground))
    return seen.counts_on_nodes(seen.ground.pods_of(templates.get(controller, ())))


def list_apart(asked: Asked, ground: Ground) -> tuple[Weighed, ...]:
    """Give whom the pod keeps away, and who keeps it away, by topology."""
    try:
        own = own_terms(asked, ground)[APART]
    except TermsError:
        own = ()
    meant = (
        (each.term.topology_key, pods_meant(ground, each.term.selector, each.term.namespaces)) for each in own
    )
    ones = [Weighed(key, pods, np.ones(len(pods), np.int64)) for key, pods in meant]
    return (*ones, *standing_terms(ground, APART).meaning(asked, ground))


def counts_in_spread(asked: Asked, ground: Ground, labels: Labels, scheduler: Scheduler) -> bool:
    """Tell whether a pod with these labels, of the same namespace, counts for the template's hard spread."""
    arguments = _spread_arguments(asked, scheduler)
    try:
        found = constraints_of(asked, ground, arguments, action=HARD) if arguments else ()
    except SelectorError:
        return False
    return any(each.selector.matches(labels) for each in found)


def _spread_arguments(asked: Asked, scheduler: Scheduler) -> SpreadArguments | None:
    profile = scheduler.profiles.get(asked.template.spec.scheduler_name or DEFAULT_SCHEDULER)
    if profile is None or _SPREAD_PLUGIN not in profile.filters:
        return None
    arguments = profile.arguments[_SPREAD_PLUGIN]
    return arguments if isinstance(arguments, SpreadArguments) else None


def _group_by_controller(ground: Ground) -> Mapping[str, tuple[int, ...]]:
    found: dict[str, list[int]] = {}
    for place, template in enumerate(ground.snapshot.templates.all):
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


def _with_template(asked: Asked, template: Template) -> Asked:
    return replace(asked, row=msgspec.structs.replace(asked.row, template=template))


def _refused(verdict: Verdict, seen: View) -> Ints:
    refused = np.zeros(seen.ground.size, np.bool_)
    if not isinstance(verdict, Rejected | Unforeseeable):
        for each in verdict:
            refused |= each.nodes
    return refused.astype(np.int64)
