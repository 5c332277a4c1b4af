"""InterPodAffinity: whom a pod must or would like to be near or apart from, and who wants that of it.

Leaving pods count like any others: one that keeps its likes away keeps away its own replacement, too.
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
    from_others, by_others = (
        _weigh_own(incoming, facts, REQUIRED_ANTI_AFFINITY),
        _find_keepers(incoming, facts),
    )
    if not (near or from_others or by_others):
        return FITS
    fits = _is_near(incoming, view, near)
    apart, kept_off = _reach_any(view, from_others), _reach_any(view, by_others)
    return (
        refuse("node(s) didn't match pod affinity rules", ~fits, final=True)
        + refuse("node(s) didn't match pod anti-affinity rules", fits & apart)
        + refuse("node(s) didn't satisfy existing pods anti-affinity rules", fits & ~apart & kept_off)
    )


def score_inter_pod_affinity(
    incoming: IncomingPod, view: View, feasible: Indices, arguments: InterPodAffinityArgs
) -> Ints | Rejected | None:
    if arguments.ignore_preferred_terms_of_existing_pods and not _wishes(incoming):
        return None
    try:
        weighed = _weigh_all(incoming, view.facts, arguments.hard_pod_affinity_weight)
    except TermsError as error:
        return Rejected(f'running PreScore plugin "InterPodAffinity": failed to parse pod: {error}')
    sums = [found for each in weighed if (found := _sum_up(view, each)) is not None]
    return _normalise(np.sum(sums, axis=0)[feasible]) if sums else None


def skips_inter_pod_affinity(incoming: IncomingPod, view: View) -> bool:
    """Tell if kube-scheduler leaves this plugin out of the pod's cycle.

    Then it does not ask for the terms of pods that are nominated, either.
    """
    own = own_terms(incoming, view.facts)
    kept_off = _reach_any(view, _find_keepers(incoming, view.facts))
    return not own[REQUIRED_AFFINITY] and not own[REQUIRED_ANTI_AFFINITY] and not kept_off.any()


def _find_keepers(incoming: IncomingPod, facts: SnapshotFacts) -> tuple[WeightedPods, ...]:
    """Give the pods that keep the asking one away."""
    return existing_terms(facts, REQUIRED_ANTI_AFFINITY).meaning(incoming, facts)


def _is_near(incoming: IncomingPod, view: View, terms: Terms) -> Bools:
    """Tell which nodes are near to pods that all the terms mean; the first of its kind may go anywhere."""
    if not terms:
        return np.ones(view.facts.size, np.bool_)
    where = _places_of(view, _meant_by_all(incoming, view.facts, terms))
    reached = [_reach(view.facts, each.term.topology_key, where) for each in terms]
    if not np.any(reached) and _means_itself(incoming, terms):
        reached = [view.facts.label(each.term.topology_key).codes >= 0 for each in terms]
    near: Bools = np.all(reached, axis=0)
    return near


def _means_itself(incoming: IncomingPod, terms: Terms) -> bool:
    return all(
        each.term.matches(incoming.namespace, incoming.labels, namespace_labels=None) for each in terms
    )


def _meant_by_all(incoming: IncomingPod, facts: SnapshotFacts, terms: Terms) -> Indices:
    return facts.once(("meant by all", incoming.template), lambda: seal(_intersect(facts, terms)))


def _intersect(facts: SnapshotFacts, terms: Terms) -> Indices:
    times = np.zeros(len(facts.snapshot.pods.rows), np.int32)
    for each in terms:
        times[find_matching_pods(facts, each.term.selector, each.term.namespaces)] += 1
    return np.flatnonzero(times == len(terms)).astype(np.int32)


def _weigh_own(incoming: IncomingPod, facts: SnapshotFacts, group: str) -> tuple[WeightedPods, ...]:
    """Give the pods that the asking pod's terms of a group mean."""
    return facts.once(
        ("own weighed", incoming.template, group),
        lambda: tuple(_weigh(facts, each) for each in own_terms(incoming, facts)[group]),
    )


def _weigh(facts: SnapshotFacts, each: WeightedTerm) -> WeightedPods:
    pods = find_matching_pods(facts, each.term.selector, each.term.namespaces)
    return WeightedPods(each.term.topology_key, pods, np.full(len(pods), each.weight))


def _weigh_all(incoming: IncomingPod, facts: SnapshotFacts, hard_weight: int) -> tuple[WeightedPods, ...]:
    """Give the pods that are liked or disliked, by the asking pod or the other way round."""
    return (
        *_weigh_own(incoming, facts, PREFERRED_AFFINITY),
        *_weigh_own(incoming, facts, PREFERRED_ANTI_AFFINITY),
        *existing_terms(facts, PREFERRED_AFFINITY, PREFERRED_ANTI_AFFINITY).meaning(incoming, facts),
        *_weigh_demands(incoming, facts, hard_weight),
    )


def _weigh_demands(incoming: IncomingPod, facts: SnapshotFacts, weight: int) -> tuple[WeightedPods, ...]:
    """Give the pods whose required affinity means the asking pod: it may as well come to them."""
    if not weight:
        return ()
    found = existing_terms(facts, REQUIRED_AFFINITY).meaning(incoming, facts)
    return tuple(each._replace(weights=each.weights * weight) for each in found)


def _wishes(incoming: IncomingPod) -> bool:
    """Tell if the pod prefers any company, or to be without."""
    affinity = incoming.template.spec.affinity
    sides = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
    return any(side and side.preferred_during_scheduling_ignored_during_execution for side in sides)


def _places_of(view: View, pods: Indices) -> Indices:
    return view.node[view.counted_among(pods)]


def _reach_any(view: View, weighed: Iterable[WeightedPods]) -> Bools:
    """Tell which nodes share a domain with any of the pods."""
    reached = np.zeros(view.facts.size, np.bool_)
    for each in weighed:
        reached |= _reach(view.facts, each.topology_key, _places_of(view, each.pods))
    return reached


def _reach(facts: SnapshotFacts, topology_key: str, where: Indices) -> Bools:
    """Tell which nodes are in one domain with any of these."""
    column = facts.label(topology_key)
    reached = np.zeros(len(column.values) + 1, np.bool_)
    reached[column.codes[where]] = True
    reached[ABSENT] = False
    return reached[column.codes]


def _sum_up(view: View, weighed: WeightedPods) -> Ints | None:
    """Sum up the weights by domain and give each node its domain's; None if no pod stands in any."""
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
    """Stretch the scores over the whole range; where all are equal nobody gets anything."""
    span = np.ptp(raw) if len(raw) else 0
    return (MAX_NODE_SCORE * ((raw - raw.min()) / span)).astype(np.int64) if span else np.zeros_like(raw)
