"""InterPodAffinity: pods that must or prefer to run near other pods, or apart from them.

Terminating pods count like any others: a pod with required anti-affinity to its own replicas keeps its own
replacement off its topology domain until it is gone.

kube-scheduler:
* `pkg/scheduler/framework/plugins/interpodaffinity/filtering.go`: `(*InterPodAffinity).PreFilter`,
  `(*InterPodAffinity).Filter`, `nodeTopologyMatchesAffinity`, `satisfyPodAntiAffinity`,
  `satisfyExistingPodsAntiAffinity`
* `pkg/scheduler/framework/plugins/interpodaffinity/scoring.go`: `(*InterPodAffinity).PreScore`,
  `(*InterPodAffinity).Score`, `(*InterPodAffinity).NormalizeScore`
"""

from collections.abc import Iterable

import numpy as np

from reberth.cluster.columns import Bools, Indices, Ints, seal
from reberth.forecast.plugins.affinity_terms import (
    PREFERRED_AFFINITY,
    PREFERRED_ANTI_AFFINITY,
    REQUIRED_AFFINITY,
    REQUIRED_ANTI_AFFINITY,
    Terms,
    TermsError,
    WeightedTerm,
    own_terms,
)
from reberth.forecast.plugins.existing_terms import WeightedPods, existing_terms
from reberth.forecast.plugins.normalize import MAX_NODE_SCORE
from reberth.forecast.state.facts import ABSENT, SnapshotFacts
from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.forecast.state.label_index import find_matching_pods
from reberth.forecast.state.plugin_args import InterPodAffinityArgs
from reberth.forecast.state.verdict import FITS, FilterVerdict, Rejected, refuse
from reberth.forecast.state.view import View


def filter_inter_pod_affinity(incoming: IncomingPod, view: View) -> FilterVerdict:
    facts = view.facts
    try:
        near = own_terms(incoming, facts)[REQUIRED_AFFINITY]
    except TermsError as error:
        return Rejected(f"parsing pod: {error}")
    from_incoming, from_existing = (
        _weigh_own(incoming, facts, REQUIRED_ANTI_AFFINITY),
        _find_anti_affine(incoming, facts),
    )
    if not (near or from_incoming or from_existing):
        return FITS
    fits = _satisfies_affinity(incoming, view, near)
    apart, existing_anti_affinity = _reach_any(view, from_incoming), _reach_any(view, from_existing)
    return (
        refuse("node(s) didn't match pod affinity rules", ~fits, final=True)
        + refuse("node(s) didn't match pod anti-affinity rules", fits & apart)
        + refuse(
            "node(s) didn't satisfy existing pods anti-affinity rules", fits & ~apart & existing_anti_affinity
        )
    )


def score_inter_pod_affinity(
    incoming: IncomingPod, view: View, feasible: Indices, arguments: InterPodAffinityArgs
) -> Ints | Rejected | None:
    if arguments.ignore_preferred_terms_of_existing_pods and not _has_preferences(incoming):
        return None
    try:
        weighed = _weigh_all(incoming, view.facts, arguments.hard_pod_affinity_weight)
    except TermsError as error:
        return Rejected(f'running PreScore plugin "InterPodAffinity": failed to parse pod: {error}')
    sums = [found for each in weighed if (found := _sum_up(view, each)) is not None]
    return _normalise(np.sum(sums, axis=0)[feasible]) if sums else None


def skips_inter_pod_affinity(incoming: IncomingPod, view: View) -> bool:
    """Tell if PreFilter skips this plugin for the pod.

    Then nominated pods do not count either: AddPod is not called for a skipped plugin.
    `pkg/scheduler/framework/plugins/interpodaffinity/filtering.go`: `(*InterPodAffinity).PreFilter`;
    `pkg/scheduler/framework/runtime/framework.go`: `(*frameworkImpl).RunPreFilterExtensionAddPod`
    """
    own = own_terms(incoming, view.facts)
    existing_anti_affinity = _reach_any(view, _find_anti_affine(incoming, view.facts))
    return not own[REQUIRED_AFFINITY] and not own[REQUIRED_ANTI_AFFINITY] and not existing_anti_affinity.any()


def _find_anti_affine(incoming: IncomingPod, facts: SnapshotFacts) -> tuple[WeightedPods, ...]:
    """Give the existing pods whose required anti-affinity matches the incoming pod."""
    return existing_terms(facts, REQUIRED_ANTI_AFFINITY).matching(incoming, facts)


def _satisfies_affinity(incoming: IncomingPod, view: View, terms: Terms) -> Bools:
    """Tell which nodes satisfy the required affinity terms: each domain has a pod that matches all terms.

    The first pod of a group that matches its own terms may go to any node with the topology labels.
    `pkg/scheduler/framework/plugins/interpodaffinity/filtering.go`: `nodeTopologyMatchesAffinity`
    """
    if not terms:
        return np.ones(view.facts.size, np.bool_)
    where = _places_of(view, _match_all(incoming, view.facts, terms))
    reached = [_reach(view.facts, each.term.topology_key, where) for each in terms]
    if not np.any(reached) and _matches_itself(incoming, terms):
        reached = [view.facts.label(each.term.topology_key).codes >= 0 for each in terms]
    near: Bools = np.all(reached, axis=0)
    return near


def _matches_itself(incoming: IncomingPod, terms: Terms) -> bool:
    return all(
        each.term.matches(incoming.namespace, incoming.labels, namespace_labels=None) for each in terms
    )


def _match_all(incoming: IncomingPod, facts: SnapshotFacts, terms: Terms) -> Indices:
    return facts.once(("match all", incoming.template), lambda: seal(_intersect(facts, terms)))


def _intersect(facts: SnapshotFacts, terms: Terms) -> Indices:
    times = np.zeros(len(facts.snapshot.pods.rows), np.int32)
    for each in terms:
        times[find_matching_pods(facts, each.term.selector, each.term.namespaces)] += 1
    return np.flatnonzero(times == len(terms)).astype(np.int32)


def _weigh_own(incoming: IncomingPod, facts: SnapshotFacts, group: str) -> tuple[WeightedPods, ...]:
    """Give the pods that match the incoming pod's terms of a group."""
    return facts.once(
        ("own weighed", incoming.template, group),
        lambda: tuple(_weigh(facts, each) for each in own_terms(incoming, facts)[group]),
    )


def _weigh(facts: SnapshotFacts, each: WeightedTerm) -> WeightedPods:
    pods = find_matching_pods(facts, each.term.selector, each.term.namespaces)
    return WeightedPods(each.term.topology_key, pods, np.full(len(pods), each.weight))


def _weigh_all(incoming: IncomingPod, facts: SnapshotFacts, hard_weight: int) -> tuple[WeightedPods, ...]:
    """Give the pods that add to the score: by the incoming pod's preferred terms or by their own."""
    return (
        *_weigh_own(incoming, facts, PREFERRED_AFFINITY),
        *_weigh_own(incoming, facts, PREFERRED_ANTI_AFFINITY),
        *existing_terms(facts, PREFERRED_AFFINITY, PREFERRED_ANTI_AFFINITY).matching(incoming, facts),
        *_weigh_required(incoming, facts, hard_weight),
    )


def _weigh_required(incoming: IncomingPod, facts: SnapshotFacts, weight: int) -> tuple[WeightedPods, ...]:
    """Give the pods whose required affinity matches the incoming pod; hardPodAffinityWeight is their weight.

    `pkg/scheduler/framework/plugins/interpodaffinity/scoring.go`: `(*InterPodAffinity).processExistingPod`
    """
    if not weight:
        return ()
    found = existing_terms(facts, REQUIRED_AFFINITY).matching(incoming, facts)
    return tuple(each._replace(weights=each.weights * weight) for each in found)


def _has_preferences(incoming: IncomingPod) -> bool:
    """Tell if the pod has preferred pod affinity or anti-affinity."""
    affinity = incoming.template.spec.affinity
    sides = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
    return any(side and side.preferred_during_scheduling_ignored_during_execution for side in sides)


def _places_of(view: View, pods: Indices) -> Indices:
    return view.node[view.counted_among(pods)]


def _reach_any(view: View, weighed: Iterable[WeightedPods]) -> Bools:
    """Tell which nodes are in the topology domain of any of the pods."""
    reached = np.zeros(view.facts.size, np.bool_)
    for each in weighed:
        reached |= _reach(view.facts, each.topology_key, _places_of(view, each.pods))
    return reached


def _reach(facts: SnapshotFacts, topology_key: str, where: Indices) -> Bools:
    """Tell which nodes are in the topology domain of any of these nodes."""
    column = facts.label(topology_key)
    reached = np.zeros(len(column.values) + 1, np.bool_)
    reached[column.codes[where]] = True
    reached[ABSENT] = False
    return reached[column.codes]


def _sum_up(view: View, weighed: WeightedPods) -> Ints | None:
    """Sum the weights by topology domain, for each node; None if none of the pods is in a domain."""
    column = view.facts.label(weighed.topology_key)
    counted = view.counted[weighed.pods]
    codes = column.codes[view.node[weighed.pods[counted]]]
    present = codes >= 0
    if not present.any():
        return None
    weights = weighed.weights[counted][present]
    sums = np.bincount(codes[present], weights, minlength=len(column.values) + 1)
    return sums.astype(np.int64)[column.codes]


def _normalise(raw: Ints) -> Ints:
    """Scale from the lowest to the highest to 0..100; if all are equal, all get 0.

    `pkg/scheduler/framework/plugins/interpodaffinity/scoring.go`: `(*InterPodAffinity).NormalizeScore`
    """
    span = np.ptp(raw) if len(raw) else 0
    return (MAX_NODE_SCORE * ((raw - raw.min()) / span)).astype(np.int64) if span else np.zeros_like(raw)
