"""NodeResourcesFit and NodeResourcesBalancedAllocation: a pod's requests against what its node has left.

kube-scheduler:
* `pkg/scheduler/framework/plugins/noderesources/fit.go`: `(*Fit).Filter`, `fitsRequest`, `(*Fit).Score`
* `pkg/scheduler/framework/plugins/noderesources/resource_allocation.go`: `(*resourceAllocationScorer).score`,
  `(*resourceAllocationScorer).calculatePodResourceRequest`
* `pkg/scheduler/framework/plugins/noderesources/least_allocated.go`: `leastResourceScorer`
* `pkg/scheduler/framework/plugins/noderesources/most_allocated.go`: `mostResourceScorer`
* `pkg/scheduler/framework/plugins/noderesources/requested_to_capacity_ratio.go`:
  `buildRequestedToCapacityRatioScorerFunction`
* `pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go`: `(*BalancedAllocation).PreScore`,
  `balancedResourceScorer`, `balancedResourceScore`
"""

from collections.abc import Callable, Iterator
from functools import partial, reduce
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reberth.cluster.columns import AmountColumns, Bools, Indices, Ints
from reberth.cluster.pods.requests import CPU, MEMORY, PODS, STORAGE, Amounts
from reberth.cluster.templates import RESOURCES
from reberth.forecast.plugins.normalize import MAX_NODE_SCORE
from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.forecast.state.plugin_args import (
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from reberth.forecast.state.verdict import FilterVerdict, Refusal
from reberth.forecast.state.view import View

_LOAD = (CPU, MEMORY)
# The scores of a shape are 0..10. `pkg/scheduler/apis/config/types.go`: `MaxCustomPriorityScore`
_MAX_SHAPE_SCORE = 10

Fractions = NDArray[np.float64]

_HALF = MAX_NODE_SCORE // 2
# Scores 0..100, one byte each: they are cached for every node.
SmallScores = NDArray[np.int8]


class ResourceUsage(NamedTuple):
    """The resources that count for a score, as [resource, node]; `after` is the use with the pod."""

    weights: Ints
    offered: Ints
    used: Ints
    after: Ints


def filter_node_resources_fit(
    incoming: IncomingPod, view: View, arguments: NodeResourcesFitArgs
) -> FilterVerdict:
    return tuple(refusal for refusal in _check(incoming, view, arguments) if refusal.nodes.any())


def score_node_resources_fit(
    incoming: IncomingPod, view: View, feasible: Indices, arguments: NodeResourcesFitArgs
) -> Ints:
    """Score by the profile's scoringStrategy.

    The pod-level requests of the incoming pod are ignored, as in kube-scheduler: NewFit sets
    enablePodLevelResources of the plugin and not of its scorer. NewBalancedAllocation sets it of the scorer.
    `pkg/scheduler/framework/plugins/noderesources/fit.go`: `NewFit`, `nodeResourceStrategyTypeMap`
    """
    load, strategy = incoming.demand.load, arguments.scoring_strategy
    key = ("fit", frozenset(load.items()), strategy)
    return view.by_node(key, partial(_score, strategy=strategy, load=load), feasible).astype(np.int64)


def _score(view: View, nodes: Indices, *, strategy: ScoringStrategy, load: Amounts) -> SmallScores:
    uses = _find_usage(view, nodes, strategy.resources, load, by_load=True)
    if strategy.requested_to_capacity_ratio:
        scores = _rate_by_shape(uses, strategy.requested_to_capacity_ratio.shape)
    else:
        scores = _rate(uses, _PARTS[strategy.type])
    return scores.astype(np.int8)


def score_balanced_allocation(
    incoming: IncomingPod, view: View, feasible: Indices, arguments: NodeResourcesBalancedAllocationArgs
) -> Ints | None:
    """Score how balanced the use would be; since 1.36, how much the pod improves it (75: no change)."""
    demand, resources = incoming.demand.amounts, arguments.resources
    if not any(demand.get(each.name, 0) for each in resources):
        return None
    key = ("balance", frozenset(demand.items()), resources)
    return view.by_node(key, partial(_score_balance, resources=resources, demand=demand), feasible).astype(
        np.int64
    )


def _score_balance(
    view: View, nodes: Indices, *, resources: tuple[ResourceSpec, ...], demand: Amounts
) -> SmallScores:
    uses = _find_usage(view, nodes, resources, demand, by_load=False)
    if view.facts.version < (1, 36):
        return _rate_balance(uses.offered, uses.after)
    before, balance = _rate_balance(uses.offered[:, None], np.stack((uses.used, uses.after), axis=1))
    scores: SmallScores = _HALF + (_HALF + balance - before) // 2
    return scores


def _find_usage(
    view: View, nodes: Indices, resources: tuple[ResourceSpec, ...], demand: Amounts, *, by_load: bool
) -> ResourceUsage:
    """Look at the resources that count for a score; extended resources only if the pod requests them."""
    weights, amounts, offered, used = [], [], [], []
    for each in resources:
        amount = demand.get(each.name, 0)
        there = (
            resource_column(view.nodes.allocatable, each.name) if amount or each.name in RESOURCES else None
        )
        taken = _load(view, each.name) if by_load else resource_column(view.requested, each.name)
        if there is not None and taken is not None:
            weights.append(each.weight)
            amounts.append(amount)
            offered.append(there.take(nodes))
            used.append(taken.take(nodes))
    size = (len(weights), len(nodes))
    before = np.array(used, np.int64).reshape(size)
    after = before + np.array(amounts, np.int64)[:, None]
    return ResourceUsage(
        np.array(weights, np.int64), np.array(offered, np.int64).reshape(size), before, after
    )


def resource_column(amounts: AmountColumns, resource: str) -> Ints | None:
    if resource in RESOURCES:
        row: Ints = amounts.main[RESOURCES.index(resource)]
        return row
    return amounts.extended.get(resource)


def _load(view: View, resource: str) -> Ints | None:
    """Give what the strategies count as used: for cpu and memory, with defaults for missing requests.

    `pkg/scheduler/util/pod_resources.go`: `DefaultMilliCPURequest`, `DefaultMemoryRequest`
    """
    if resource not in _LOAD:
        return resource_column(view.requested, resource)
    row: Ints = view.load[_LOAD.index(resource)]
    return row


def _check(incoming: IncomingPod, view: View, arguments: NodeResourcesFitArgs) -> Iterator[Refusal]:
    offered, used = view.nodes.allocatable, view.requested
    pods = RESOURCES.index(PODS)
    yield Refusal("Too many pods", used.main[pods] + 1 > offered.main[pods])
    for name, amount in _in_order(incoming.demand.amounts):
        if amount and not _is_ignored(name, arguments):
            columns = resource_column(offered, name), resource_column(used, name)
            yield _compare(name, amount, *columns, len(view.nodes.names))


def _in_order(amounts: Amounts) -> list[tuple[str, int]]:
    order = {CPU: 0, MEMORY: 1, STORAGE: 2}
    return sorted(amounts.items(), key=lambda item: (order.get(item[0], len(order)), item[0]))


def _is_ignored(name: str, arguments: NodeResourcesFitArgs) -> bool:
    """Only extended resources can be ignored."""
    if "/" not in name or "kubernetes.io/" in name:
        return False
    return (
        name in arguments.ignored_resources
        or name.split("/", maxsplit=1)[0] in arguments.ignored_resource_groups
    )


def _compare(name: str, amount: int, offered: Ints | None, used: Ints | None, nodes: int) -> Refusal:
    """Without a column no node offers it: a replacement may ask for what its pod was never given."""
    free = np.zeros(nodes, np.int64) if offered is None or used is None else offered - used
    return Refusal(f"Insufficient {name}", amount > free)


def _least_allocated(uses: ResourceUsage) -> Ints:
    return np.where(uses.after > uses.offered, 0, uses.offered - uses.after)


def _most_allocated(uses: ResourceUsage) -> Ints:
    return np.minimum(uses.after, uses.offered)


_PARTS: dict[str, Callable[[ResourceUsage], Ints]] = {
    "LeastAllocated": _least_allocated,
    "MostAllocated": _most_allocated,
}


def _rate(uses: ResourceUsage, part: Callable[[ResourceUsage], Ints]) -> Ints:
    """Average over the resources, 0..100 each; a resource of which the node offers nothing drops out."""
    there = uses.offered > 0
    rated = np.where(there, part(uses) * MAX_NODE_SCORE // np.maximum(uses.offered, 1), 0)
    return _average(uses.weights, rated, there)


def _rate_by_shape(uses: ResourceUsage, shape: tuple[UtilizationShapePoint, ...]) -> Ints:
    """Rate each resource by the shape; a resource rated 0 drops out of the average, as in kube-scheduler."""
    there, offered = uses.offered > 0, np.maximum(uses.offered, 1)
    share = np.where(uses.after > uses.offered, MAX_NODE_SCORE, uses.after * MAX_NODE_SCORE // offered)
    rated = np.where(there, follow(shape, share), 0)
    weights = uses.weights @ (rated > 0)
    return np.floor(uses.weights @ rated / np.maximum(weights, 1) + 0.5).astype(np.int64)


def _average(weights: Ints, rated: Ints, counted: Bools) -> Ints:
    average: Ints = (weights @ rated) // np.maximum(weights @ counted, 1)
    return average


def follow(shape: tuple[UtilizationShapePoint, ...], share: Ints) -> Ints:
    """Interpolate between the points of a shape; integer division truncates towards zero, as in Go.

    `pkg/scheduler/framework/plugins/helper/shape_score.go`: `BuildBrokenLinearFunction`
    """
    step = MAX_NODE_SCORE // _MAX_SHAPE_SCORE
    line = np.full(share.shape, shape[-1].score * step, np.int64)
    for before, point in reversed(list(pairwise(shape))):
        rise = (point.score - before.score) * step * (share - before.utilization)
        run = point.utilization - before.utilization
        between = before.score * step + np.sign(rise) * (np.abs(rise) // run)
        line = np.where(share <= point.utilization, between, line)
    return np.where(share <= shape[0].utilization, shape[0].score * step, line)


def _rate_balance(offered: Ints, used: Ints) -> SmallScores:
    """Rate the use of [resource, ...] 0..100: one minus the standard deviation of the used fractions."""
    there = offered > 0
    parts = np.minimum(np.where(there, used / np.maximum(offered, 1), 0.0), 1.0)
    return ((1.0 - _deviate(parts, there)) * MAX_NODE_SCORE).astype(np.int8)


def _deviate(parts: Fractions, there: NDArray[np.bool_]) -> Fractions:
    """Give the standard deviation, computed in Go's order: two resources have a shorter formula."""
    if len(parts) == 2 and there.all():
        half: Fractions = np.abs(parts[0] - parts[1]) / 2
        return half
    count = there.sum(axis=0)
    spread = np.where(there, parts, -np.inf).max(axis=0) - np.where(there, parts, np.inf).min(axis=0)
    mean = _sum_rows(parts) / np.where(count, count, 1)
    squares = _sum_rows(np.where(there, (parts - mean) * (parts - mean), 0.0))
    several = np.sqrt(squares / np.where(count, count, 1))
    return np.where(count > 2, several, np.where(count == 2, spread / 2, 0.0))


def _sum_rows(rows: Fractions) -> Fractions:
    """Add row after row: numpy's sum may add in another order, and the last bit would differ from Go."""
    return reduce(np.add, rows)
