"""What a pod requests against what its node has left: whether it fits, and how well."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reberth.columns import AmountColumns, Indices, Ints
from reberth.landing.arguments import FitArguments, ResourceWeight, ScoringStrategy, ShapePoint
from reberth.landing.asking import Asked
from reberth.landing.normalising import MOST
from reberth.landing.verdicts import Refusal, Verdict
from reberth.landing.viewing import View
from reberth.requests import CPU, MEMORY, PODS, STORAGE, Amounts
from reberth.templates import RESOURCES

_LOAD = (CPU, MEMORY)
# Scores of a shape stand between 0 and 10.
_MOST_OF_SHAPE = 10


# Scores up to 100, as they are kept.
Small = NDArray[np.int8]


class Use(NamedTuple):
    """One resource on the feasible nodes: what they offer, what is used, and what would be with the pod."""

    weight: int
    offered: Ints
    used: Ints
    after: Ints


def refuse_too_full(asked: Asked, view: View, arguments: FitArguments) -> Verdict:
    return tuple(refusal for refusal in _check(asked, view, arguments) if refusal.nodes.any())


def score_fit(asked: Asked, view: View, feasible: Indices, arguments: FitArguments) -> Ints:
    """Score by the profile's strategy. It weighs loads and overlooks what is requested for the whole pod."""
    load, strategy = asked.demand.load, arguments.scoring_strategy
    key = ("fit", frozenset(load.items()), strategy)
    scores = view.by_node(key, partial(_score, strategy=strategy, load=load))
    return scores[feasible].astype(np.int64)


def _score(view: View, nodes: Indices, *, strategy: ScoringStrategy, load: Amounts) -> Small:
    uses = list(find_uses(view, nodes, strategy.resources, load, by_load=True))
    if strategy.requested_to_capacity_ratio:
        scores = _rate_by_shape(uses, strategy.requested_to_capacity_ratio.shape, len(nodes))
    else:
        scores = _rate(uses, _PARTS[strategy.type], len(nodes))
    return scores.astype(np.int8)


def find_uses(
    view: View, feasible: Indices, resources: tuple[ResourceWeight, ...], demand: Amounts, *, by_load: bool
) -> Iterator[Use]:
    """Look at the resources that count for a score; of what few nodes have, only what the pod requests."""
    for each in resources:
        amount = demand.get(each.name, 0)
        if amount or each.name in RESOURCES:
            used = (
                _load(view, each.name)
                if by_load and each.name in _LOAD
                else column(view.requested, each.name)
            )
            offered = column(view.nodes.allocatable, each.name)
            if offered is not None and used is not None:
                yield Use(each.weight, offered[feasible], used[feasible], used[feasible] + amount)


def column(amounts: AmountColumns, resource: str) -> Ints | None:
    if resource in RESOURCES:
        row: Ints = amounts.main[RESOURCES.index(resource)]
        return row
    return amounts.extended.get(resource)


def _load(view: View, resource: str) -> Ints | None:
    """Give what LeastAllocated weighs: of cpu and memory more than what is requested."""
    if resource not in _LOAD:
        return column(view.requested, resource)
    row: Ints = view.load[_LOAD.index(resource)]
    return row


def _check(asked: Asked, view: View, arguments: FitArguments) -> Iterator[Refusal]:
    offered, used = view.nodes.allocatable, view.requested
    pods = RESOURCES.index(PODS)
    yield Refusal("Too many pods", used.main[pods] + 1 > offered.main[pods])
    for name, amount in _in_order(asked.demand.amounts):
        if amount and not _is_ignored(name, arguments):
            yield _compare(name, amount, column(offered, name), column(used, name))


def _in_order(amounts: Amounts) -> list[tuple[str, int]]:
    order = {CPU: 0, MEMORY: 1, STORAGE: 2}
    return sorted(amounts.items(), key=lambda item: (order.get(item[0], len(order)), item[0]))


def _is_ignored(name: str, arguments: FitArguments) -> bool:
    """Extended resources may be left to others; Kubernetes' own may not."""
    if "/" not in name or "kubernetes.io/" in name:
        return False
    return (
        name in arguments.ignored_resources
        or name.split("/", maxsplit=1)[0] in arguments.ignored_resource_groups
    )


def _compare(name: str, amount: int, offered: Ints | None, used: Ints | None) -> Refusal:
    if offered is None or used is None:
        raise AssertionError(f"no column of {name}, though a template requests it")
    return Refusal(f"Insufficient {name}", amount > offered - used)


def _free(use: Use) -> Ints:
    return np.where(use.after > use.offered, 0, use.offered - use.after)


def _filled(use: Use) -> Ints:
    return np.minimum(use.after, use.offered)


_PARTS: dict[str, Callable[[Use], Ints]] = {"LeastAllocated": _free, "MostAllocated": _filled}


def _rate(uses: list[Use], part: Callable[[Use], Ints], size: int) -> Ints:
    """Average the parts of what each node offers, in hundredths; what it does not offer drops out."""
    scores, weights = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for use in uses:
        there = use.offered > 0
        scores += use.weight * np.where(there, part(use) * MOST // np.where(there, use.offered, 1), 0)
        weights += use.weight * there
    return scores // np.where(weights, weights, 1)


def _rate_by_shape(uses: list[Use], shape: tuple[ShapePoint, ...], size: int) -> Ints:
    """Rate each resource by the line of the shape; what rates 0 drops out of the average."""
    scores, weights = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for use in uses:
        there = use.offered > 0
        share = np.where(use.after > use.offered, MOST, use.after * MOST // np.where(there, use.offered, 1))
        rated = np.where(there, follow(shape, share), 0)
        scores += use.weight * rated
        weights += use.weight * (rated > 0)
    return np.floor(scores / np.where(weights, weights, 1) + 0.5).astype(np.int64)


def follow(shape: tuple[ShapePoint, ...], share: Ints) -> Ints:
    """Follow the broken line through the points, dividing as Go does: towards zero."""
    step = MOST // _MOST_OF_SHAPE
    line = np.full(len(share), shape[-1].score * step, np.int64)
    for before, point in reversed(list(pairwise(shape))):
        rise = (point.score - before.score) * step * (share - before.utilization)
        run = point.utilization - before.utilization
        between = before.score * step + np.sign(rise) * (np.abs(rise) // run)
        line = np.where(share <= point.utilization, between, line)
    return np.where(share <= shape[0].utilization, shape[0].score * step, line)
