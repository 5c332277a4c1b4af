"""NodeUnschedulable, TaintToleration, NodeAffinity and NodeDeclaredFeatures: what depends on nodes alone.

None of it depends on other pods, so the pods of one template share the answers.

kube-scheduler:
* `pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go`: `(*NodeUnschedulable).Filter`
* `pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go`: `(*TaintToleration).Filter`,
  `(*TaintToleration).Score`, `(*TaintToleration).countIntolerableTaintsPreferNoSchedule`
* `pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go`: `(*NodeAffinity).PreFilter`,
  `(*NodeAffinity).Filter`, `(*NodeAffinity).PreScore`, `(*NodeAffinity).Score`
* `pkg/scheduler/framework/plugins/nodedeclaredfeatures/nodedeclaredfeatures.go`:
  `(*NodeDeclaredFeatures).PreFilter`, `(*NodeDeclaredFeatures).Filter`
"""

from collections.abc import Hashable

import numpy as np

from reberth.cluster.columns import Bools, Indices, Ints, seal
from reberth.forecast.plugins.normalize import normalize_scores
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.forecast.state.plugin_args import NodeAffinityArgs
from reberth.forecast.state.verdict import FITS, FilterVerdict, Rejected, refuse
from reberth.forecast.state.view import View
from reberth.records import NodeAffinity, PodSpec, PreferredSchedulingTerm, Taint
from reberth.selectors import (
    NodeRule,
    SelectorError,
    compile_node_preferences,
    compile_node_rule,
    compile_node_selector,
    compile_preferences,
    count_unpreferred,
    find_untolerated,
    tolerates,
)

_UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "NoSchedule")
# The features that a pod spec can require in 1.36 and 1.37, with the default feature gates:
# `k8s.io/component-helpers/nodedeclaredfeatures/features/registry.go`: `AllFeatures`
_RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits"
_USER_NAMESPACES_HOST_NETWORK = "UserNamespacesHostNetworkSupport"


def filter_node_unschedulable(incoming: IncomingPod, view: View) -> FilterVerdict:
    unschedulable = view.nodes.unschedulable
    if not unschedulable.any() or tolerates(incoming.spec.tolerations, _UNSCHEDULABLE):
        return FITS
    return refuse("node(s) were unschedulable", unschedulable, final=True)


def filter_taint_toleration(incoming: IncomingPod, view: View) -> FilterVerdict:
    facts = view.facts
    tainted = facts.once(
        ("untolerated", incoming.spec.tolerations), lambda: _find_tainted(facts, incoming.spec)
    )
    return refuse("node(s) had untolerated taint(s)", tainted, final=True)


def score_taint_toleration(incoming: IncomingPod, view: View, feasible: Indices) -> Ints:
    facts = view.facts
    counts = facts.once(
        ("unpreferred", incoming.spec.tolerations), lambda: _count_taints(facts, incoming.spec)
    )
    return normalize_scores(counts.take(feasible), reverse=True)


def filter_node_affinity(incoming: IncomingPod, view: View, arguments: NodeAffinityArgs) -> FilterVerdict:
    """Refuse nodes that do not match nodeSelector, required node affinity, or the profile's addedAffinity."""
    rule = _rule_of(incoming, view.facts)
    if rule.names is not None and not rule.names:
        return Rejected("pod affinity terms conflict")
    enforced = arguments.added_affinity and _required(arguments.added_affinity)
    refusals = refuse(
        "node(s) didn't match Pod's node affinity/selector", ~view.facts.matching(rule), final=True
    )
    if not enforced:
        return refusals
    beyond = ~view.facts.matching(enforced)
    first = refuse("node(s) didn't match scheduler-enforced node affinity", beyond, final=True)
    return first + tuple(each._replace(nodes=each.nodes & ~beyond) for each in refusals)


def prefilter_node_affinity(incoming: IncomingPod, view: View) -> Bools | None:
    """Give the nodes that the pod names, if every required term has matchFields; only these are filtered.

    kube-scheduler's PreFilterResult: DaemonSet pods are made this way.
    """
    names = _rule_of(incoming, view.facts).names
    if not names:
        return None
    looked_at = np.zeros(view.facts.size, np.bool_)
    looked_at[[view.nodes.index[name] for name in names if name in view.nodes.index]] = True
    return looked_at


def score_node_affinity(
    incoming: IncomingPod, view: View, feasible: Indices, arguments: NodeAffinityArgs
) -> Ints | Rejected | None:
    added = arguments.added_affinity
    extra = (added and added.preferred_during_scheduling_ignored_during_execution) or ()
    if not extra and not _prefers(incoming.spec):
        return None
    key = ("preferred", incoming.template, arguments)
    try:
        weights = view.facts.once(key, lambda: _weigh(view.facts, incoming.spec, extra))
    except SelectorError as error:
        return Rejected(f'running PreScore plugin "NodeAffinity": {error}')
    return normalize_scores(weights.take(feasible))


def filter_node_declared_features(incoming: IncomingPod, view: View) -> FilterVerdict:
    """Refuse nodes that do not declare a feature that the spec requires.

    Since 1.36: feature gate NodeDeclaredFeatures is off by default in 1.35 and on in 1.36.
    """
    needed = _needed_features(incoming.spec)
    if not needed or view.facts.version < (1, 36):
        return FITS
    declared = [frozenset(record.status.declared_features or ()) for record in view.nodes.records]
    lacking = np.array([not needed <= features for features in declared], np.bool_)
    return refuse("node(s) didn't match Pod's required features", lacking, final=True)


def _rule_of(incoming: IncomingPod, facts: SnapshotFacts) -> NodeRule:
    key: Hashable = ("rule of", incoming.template, incoming.own.pinned_to)
    return facts.once(key, lambda: compile_node_rule(incoming.spec))


def _required(affinity: NodeAffinity) -> NodeRule | None:
    required = affinity.required_during_scheduling_ignored_during_execution
    return compile_node_selector(required) if required else None


def _prefers(spec: PodSpec) -> bool:
    affinity = spec.affinity and spec.affinity.node_affinity
    return bool(affinity and affinity.preferred_during_scheduling_ignored_during_execution)


def _weigh(facts: SnapshotFacts, spec: PodSpec, extra: tuple[PreferredSchedulingTerm, ...]) -> Ints:
    """Sum the weights of the preferred terms that each node matches."""
    weights = np.zeros(facts.size, np.int64)
    for weight, term in (*compile_node_preferences(spec).terms, *compile_preferences(extra).terms):
        weights += weight * facts.matching_term(term)
    return seal(weights)


def _taints_of(facts: SnapshotFacts) -> tuple[tuple[tuple[Taint, ...], ...], Indices]:
    """Give the distinct sets of taints, and the index of each node's set."""
    return facts.once("taints", lambda: _group_taints(facts))


def _group_taints(facts: SnapshotFacts) -> tuple[tuple[tuple[Taint, ...], ...], Indices]:
    groups: dict[tuple[Taint, ...], int] = {}
    codes = np.zeros(facts.size, np.int32)
    for place, record in enumerate(facts.snapshot.nodes.records):
        taints = tuple(Taint(each.key, each.effect, each.value) for each in record.spec.taints or ())
        codes[place] = groups.setdefault(taints, len(groups))
    return tuple(groups), seal(codes)


def _find_tainted(facts: SnapshotFacts, spec: PodSpec) -> Bools:
    groups, codes = _taints_of(facts)
    answers = [find_untolerated(taints, spec.tolerations) is not None for taints in groups]
    return seal(np.array(answers, np.bool_)[codes])


def _count_taints(facts: SnapshotFacts, spec: PodSpec) -> Ints:
    groups, codes = _taints_of(facts)
    counts = [count_unpreferred(taints, spec.tolerations) for taints in groups]
    return seal(np.array(counts, np.int64)[codes])


def _needed_features(spec: PodSpec) -> frozenset[str]:
    needed = set()
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    rules = [rule for container in containers for rule in container.restart_policy_rules or ()]
    if any(rule.action == "RestartAllContainers" for rule in rules):
        needed.add(_RESTART_ALL_CONTAINERS)
    if spec.host_network and spec.host_users is False:
        needed.add(_USER_NAMESPACES_HOST_NETWORK)
    return frozenset(needed)
