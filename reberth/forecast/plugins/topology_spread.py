"""PodTopologySpread: how evenly pods are spread over zones, nodes or other topology domains.

A constraint with DoNotSchedule refuses a node if its domain would exceed the emptiest by more than maxSkew.
One with ScheduleAnyway lowers the score by the pods in the node's domain, weighted by the number of domains.
Terminating pods are not counted.

kube-scheduler:
* `pkg/scheduler/framework/plugins/podtopologyspread/filtering.go`: `(*PodTopologySpread).calPreFilterState`,
  `(*preFilterState).minMatchNum`, `(*PodTopologySpread).updateWithPod`,
  `(*PodTopologySpread).Filter`
* `pkg/scheduler/framework/plugins/podtopologyspread/scoring.go`: `(*PodTopologySpread).PreScore`,
  `(*PodTopologySpread).Score`, `(*PodTopologySpread).NormalizeScore`, `topologyNormalizingWeight`,
  `scoreForCount`
* `pkg/scheduler/framework/plugins/podtopologyspread/common.go`: `countPodsMatchSelector`,
  `(*topologySpreadConstraint).matchNodeInclusionPolicies`
"""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reberth.cluster.columns import Bools, Indices, Ints, seal
from reberth.forecast.plugins.normalize import MAX_NODE_SCORE
from reberth.forecast.plugins.spread_constraints import (
    HARD,
    HOSTNAME,
    SOFT,
    PodSpreadConstraint,
    constraints_of,
    needs_all_labels,
)
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.forecast.state.label_index import find_matching_pods
from reberth.forecast.state.plugin_args import PodTopologySpreadArgs
from reberth.forecast.state.verdict import FITS, FilterVerdict, Rejected, refuse
from reberth.forecast.state.view import View
from reberth.records import Toleration
from reberth.selectors import (
    EVERYTHING,
    NodeRule,
    Selector,
    SelectorError,
    compile_node_rule,
    find_untolerated,
)

_NOT_MATCHED = "node(s) didn't match pod topology spread constraints"
_NO_LABEL = f"{_NOT_MATCHED} (missing required label)"


class Domains(NamedTuple):
    """The domains of one topology key, `size` at most.

    `of` gives the domain of each node; a node that lacks the label is in the domain of the empty value. Only
    pods on `counting` nodes count, and `known` are the domains that have such nodes.
    """

    of: Indices
    size: int
    lacking: Bools
    counting: Bools
    known: Indices


def filter_pod_topology_spread(
    incoming: IncomingPod, view: View, arguments: PodTopologySpreadArgs
) -> FilterVerdict:
    try:
        constraints = constraints_of(incoming, view.facts, arguments, action=HARD)
    except SelectorError as error:
        return Rejected(
            'running PreFilter plugin "PodTopologySpread": get constraints from pod: '
            f"obtaining pod's hard topology spread constraints: {error}"
        )
    if not constraints:
        return FITS
    where = _find_places(incoming, view, constraints)
    keys = _keys(constraints)
    lacking, skewed = np.zeros((2, view.facts.size), np.bool_)
    for constraint in constraints:
        domains = _find_domains(incoming, view.facts, constraint, keys)
        passed = ~(lacking | skewed)
        lacking |= passed & domains.lacking
        skewed |= passed & ~domains.lacking & _is_skewed(constraint, domains, where[constraint.selector])
    return refuse(_NO_LABEL, lacking, final=True) + refuse(_NOT_MATCHED, skewed)


def score_pod_topology_spread(
    incoming: IncomingPod, view: View, feasible: Indices, arguments: PodTopologySpreadArgs
) -> Ints | Rejected | None:
    try:
        constraints = constraints_of(incoming, view.facts, arguments, action=SOFT)
    except SelectorError as error:
        return Rejected(
            'running PreScore plugin "PodTopologySpread": calculating preScoreState: '
            f"obtaining pod's soft topology spread constraints: {error}"
        )
    if not constraints:
        return None
    keys = _keys(constraints) if needs_all_labels(incoming, arguments) else ()
    lacking, where = _lacks_any(view.facts, keys), _find_places(incoming, view, constraints)
    compared = feasible[~lacking[feasible]] if lacking.any() else feasible
    costs = np.zeros(view.facts.size)
    for constraint in constraints:
        domains = _find_domains(incoming, view.facts, constraint, keys)
        costs += _find_costs(constraint, domains, where[constraint.selector], compared)
    scores = _normalise(_round(costs.take(compared)))
    if len(compared) == len(feasible):
        return scores
    found = np.zeros(len(feasible), np.int64)  # what lacks a label is not scored, either
    found[~lacking[feasible]] = scores
    return found


def _keys(constraints: Iterable[PodSpreadConstraint]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(constraint.topology_key for constraint in constraints))


def _find_places(
    incoming: IncomingPod, view: View, constraints: Iterable[PodSpreadConstraint]
) -> Mapping[Selector, Indices]:
    """Give the nodes of the pods that each constraint counts."""
    selectors = {constraint.selector for constraint in constraints}
    return {selector: _find_place(incoming, view, selector) for selector in selectors}


def _find_place(incoming: IncomingPod, view: View, selector: Selector) -> Indices:
    if selector == EVERYTHING:
        return _find_expected(incoming, view)
    pods = view.counted_among(find_matching_pods(view.facts, selector, frozenset((incoming.namespace,))))
    return view.node[pods[~view.terminating[pods]]]


def _find_expected(incoming: IncomingPod, view: View) -> Indices:
    """An empty selector counts no pods (countPodsMatchSelector), but all nominated ones (updateWithPod)."""
    rows = view.facts.snapshot.pods.rows
    return view.node[[pod for pod in view.expected if rows[pod].namespace == incoming.namespace]]


def _is_skewed(constraint: PodSpreadConstraint, domains: Domains, where: Indices) -> Bools:
    counts = _count(domains, where)
    enough = len(domains.known) >= max(constraint.min_domains, 1)
    least = counts[domains.known].min() if enough else 0
    skewed: Bools = counts + constraint.own - least > constraint.max_skew
    return skewed[domains.of]


def _count(domains: Domains, where: Indices) -> Ints:
    """Count the pods on these nodes by domain."""
    return np.bincount(domains.of[where[domains.counting[where]]], minlength=domains.size)


def _find_costs(
    constraint: PodSpreadConstraint, domains: Domains, where: Indices, compared: Indices
) -> NDArray[np.float64]:
    """Give the raw score of each node of the cluster, the lower the better, when these nodes are compared."""
    of_nodes = constraint.topology_key == HOSTNAME
    counts = np.bincount(where, minlength=len(domains.of)) if of_nodes else _count(domains, where)
    size = len(compared) if of_nodes else _count_domains(domains, compared)
    costs = np.asarray(counts * math.log(size + 2) + float(constraint.max_skew - 1), np.float64)
    costs = costs if of_nodes else costs.take(domains.of)
    if domains.lacking.any():
        costs[domains.lacking] = 0.0
    return costs


def _count_domains(domains: Domains, nodes: Indices) -> int:
    """Count the domains that have any of these nodes."""
    has_any = np.zeros(domains.size, np.bool_)
    has_any[domains.of.take(nodes)] = True
    return int(np.count_nonzero(has_any))


def _round(costs: NDArray[np.float64]) -> Ints:
    """Round as Go's math.Round: adding 0.5 first would round up 0.49999999999999994, too."""
    whole = np.floor(costs)
    return (whole + (costs - whole >= 0.5)).astype(np.int64)


def _normalise(costs: Ints) -> Ints:
    """Give the lowest cost the highest score; if the highest cost is 0, all get 100."""
    least, most = (int(costs.min()), int(costs.max())) if len(costs) else (0, 0)
    return MAX_NODE_SCORE * (most + least - costs) // most if most else np.full(len(costs), MAX_NODE_SCORE)


def _find_domains(
    incoming: IncomingPod, facts: SnapshotFacts, constraint: PodSpreadConstraint, keys: tuple[str, ...]
) -> Domains:
    """Find the domains of a constraint; only nodes that have all topology keys count."""
    rule = compile_node_rule(incoming.spec) if constraint.honors_affinity else NodeRule()
    tolerations = (incoming.spec.tolerations or ()) if constraint.honors_taints else None
    key = ("domains", constraint.topology_key, keys, rule, tolerations)
    return facts.once(
        key,
        lambda: _group_nodes(facts, constraint.topology_key, _counting(facts, keys, rule, tolerations)),
    )


def _group_nodes(facts: SnapshotFacts, key: str, counting: Bools) -> Domains:
    column = facts.label(key)
    lacking = column.codes < 0
    values = (*column.values, "")
    of = np.where(lacking, values.index(""), column.codes).astype(np.int32)
    known = np.flatnonzero(np.bincount(of[counting], minlength=len(values))).astype(np.int32)
    return Domains(seal(of), len(values), seal(lacking), seal(counting), seal(known))


def _counting(
    facts: SnapshotFacts, keys: tuple[str, ...], rule: NodeRule, tolerations: tuple[Toleration, ...] | None
) -> Bools:
    counting = facts.matching(rule) & ~_lacks_any(facts, keys)
    if tolerations is None:
        return counting
    records = facts.snapshot.nodes.records
    return counting & [find_untolerated(each.spec.taints, tolerations) is None for each in records]


def _lacks_any(facts: SnapshotFacts, keys: tuple[str, ...]) -> Bools:
    return facts.once(("lacks any", keys), lambda: seal(_find_lacking(facts, keys)))


def _find_lacking(facts: SnapshotFacts, keys: tuple[str, ...]) -> Bools:
    lacking = np.zeros(facts.size, np.bool_)
    for key in keys:
        lacking |= facts.label(key).codes < 0
    return lacking
