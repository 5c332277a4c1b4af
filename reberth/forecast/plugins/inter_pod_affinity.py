"""InterPodAffinity: whom a pod must or would like to be near or apart from, and who wants that of it.

Leaving pods count like any others: one that keeps its likes away keeps away its own replacement, too.
"""

from collections.abc import Iterable

import numpy as np

from reberth.cluster.columns import Bools, Indices, Ints
from reberth.cluster.tabulating import seal
from reberth.forecast.plugins.affinity_terms import (
    APART,
    DISLIKED,
    LIKED,
    NEAR,
    Terms,
    TermsError,
    Weighty,
    own_terms,
)
from reberth.forecast.plugins.existing_terms import Weighed, standing_terms
from reberth.forecast.plugins.normalize import MOST
from reberth.forecast.state.facts import ABSENT, Ground
from reberth.forecast.state.incoming_pod import Asked
from reberth.forecast.state.label_index import pods_meant
from reberth.forecast.state.plugin_args import PodAffinityArguments
from reberth.forecast.state.verdict import FITS, Rejected, Verdict, refuse
from reberth.forecast.state.view import View


def refuse_pod_affinity(asked: Asked, view: View) -> Verdict:
    ground = view.ground
    try:
        near = own_terms(asked, ground)[NEAR]
    except TermsError as error:
        return Rejected(f"parsing pod: {error}")
    from_others, by_others = _weigh_own(asked, ground, APART), _find_keepers(asked, ground)
    if not (near or from_others or by_others):
        return FITS
    fits = _is_near(asked, view, near)
    apart, kept_off = _reach_any(view, from_others), _reach_any(view, by_others)
    return (
        refuse("node(s) didn't match pod affinity rules", ~fits, final=True)
        + refuse("node(s) didn't match pod anti-affinity rules", fits & apart)
        + refuse("node(s) didn't satisfy existing pods anti-affinity rules", fits & ~apart & kept_off)
    )


def score_pod_affinity(
    asked: Asked, view: View, feasible: Indices, arguments: PodAffinityArguments
) -> Ints | Rejected | None:
    if arguments.ignore_preferred_terms_of_existing_pods and not _wishes(asked):
        return None
    try:
        weighed = _weigh_all(asked, view.ground, arguments.hard_pod_affinity_weight)
    except TermsError as error:
        return Rejected(f'running PreScore plugin "InterPodAffinity": failed to parse pod: {error}')
    sums = [found for each in weighed if (found := _sum_up(view, each)) is not None]
    return _normalise(np.sum(sums, axis=0)[feasible]) if sums else None


def skips_pod_affinity(asked: Asked, view: View) -> bool:
    """Tell if kube-scheduler leaves this plugin out of the pod's cycle.

    Then it does not ask for the terms of pods that are nominated, either.
    """
    own = own_terms(asked, view.ground)
    kept_off = _reach_any(view, _find_keepers(asked, view.ground))
    return not own[NEAR] and not own[APART] and not kept_off.any()


def _find_keepers(asked: Asked, ground: Ground) -> tuple[Weighed, ...]:
    """Give the pods that keep the asking one away."""
    return standing_terms(ground, APART).meaning(asked, ground)


def _is_near(asked: Asked, view: View, terms: Terms) -> Bools:
    """Tell which nodes are near to pods that all the terms mean; the first of its kind may go anywhere."""
    if not terms:
        return np.ones(view.ground.size, np.bool_)
    where = _places_of(view, _meant_by_all(asked, view.ground, terms))
    reached = [_reach(view.ground, each.term.topology_key, where) for each in terms]
    if not np.any(reached) and _means_itself(asked, terms):
        reached = [view.ground.label(each.term.topology_key).codes >= 0 for each in terms]
    near: Bools = np.all(reached, axis=0)
    return near


def _means_itself(asked: Asked, terms: Terms) -> bool:
    return all(each.term.matches(asked.namespace, asked.labels, namespace_labels=None) for each in terms)


def _meant_by_all(asked: Asked, ground: Ground, terms: Terms) -> Indices:
    return ground.once(("meant by all", asked.template), lambda: seal(_intersect(ground, terms)))


def _intersect(ground: Ground, terms: Terms) -> Indices:
    times = np.zeros(len(ground.snapshot.pods.rows), np.int32)
    for each in terms:
        times[pods_meant(ground, each.term.selector, each.term.namespaces)] += 1
    return np.flatnonzero(times == len(terms)).astype(np.int32)


def _weigh_own(asked: Asked, ground: Ground, group: str) -> tuple[Weighed, ...]:
    """Give the pods that the asking pod's terms of a group mean."""
    return ground.once(
        ("own weighed", asked.template, group),
        lambda: tuple(_weigh(ground, each) for each in own_terms(asked, ground)[group]),
    )


def _weigh(ground: Ground, each: Weighty) -> Weighed:
    pods = pods_meant(ground, each.term.selector, each.term.namespaces)
    return Weighed(each.term.topology_key, pods, np.full(len(pods), each.weight))


def _weigh_all(asked: Asked, ground: Ground, hard_weight: int) -> tuple[Weighed, ...]:
    """Give the pods that are liked or disliked, by the asking pod or the other way round."""
    return (
        *_weigh_own(asked, ground, LIKED),
        *_weigh_own(asked, ground, DISLIKED),
        *standing_terms(ground, LIKED, DISLIKED).meaning(asked, ground),
        *_weigh_demands(asked, ground, hard_weight),
    )


def _weigh_demands(asked: Asked, ground: Ground, weight: int) -> tuple[Weighed, ...]:
    """Give the pods whose required affinity means the asking pod: it may as well come to them."""
    if not weight:
        return ()
    found = standing_terms(ground, NEAR).meaning(asked, ground)
    return tuple(each._replace(weights=each.weights * weight) for each in found)


def _wishes(asked: Asked) -> bool:
    """Tell if the pod prefers any company, or to be without."""
    affinity = asked.template.spec.affinity
    sides = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
    return any(side and side.preferred_during_scheduling_ignored_during_execution for side in sides)


def _places_of(view: View, pods: Indices) -> Indices:
    return view.node[view.counted_among(pods)]


def _reach_any(view: View, weighed: Iterable[Weighed]) -> Bools:
    """Tell which nodes share a domain with any of the pods."""
    reached = np.zeros(view.ground.size, np.bool_)
    for each in weighed:
        reached |= _reach(view.ground, each.topology_key, _places_of(view, each.pods))
    return reached


def _reach(ground: Ground, topology_key: str, where: Indices) -> Bools:
    """Tell which nodes are in one domain with any of these."""
    column = ground.label(topology_key)
    reached = np.zeros(len(column.values) + 1, np.bool_)
    reached[column.codes[where]] = True
    reached[ABSENT] = False
    return reached[column.codes]


def _sum_up(view: View, weighed: Weighed) -> Ints | None:
    """Sum up the weights by domain and give each node its domain's; None if no pod stands in any."""
    column = view.ground.label(weighed.topology_key)
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
    return (MOST * ((raw - raw.min()) / span)).astype(np.int64) if span else np.zeros_like(raw)
