"""Whether the pod would let its node use its resources more evenly."""

from functools import partial, reduce

import numpy as np
from numpy.typing import NDArray

from reberth.columns import Indices, Ints
from reberth.landing.arguments import BalanceArguments, ResourceWeight
from reberth.landing.asking import Asked
from reberth.landing.normalising import MOST
from reberth.landing.resources import Small, find_uses
from reberth.landing.viewing import View
from reberth.requests import Amounts

Parts = NDArray[np.float64]

_HALF = MOST // 2


def score_balance(asked: Asked, view: View, feasible: Indices, arguments: BalanceArguments) -> Ints | None:
    """Score how even the use would be; since 1.36, how much more even than without the pod."""
    demand, resources = asked.demand.amounts, arguments.resources
    if not any(demand.get(each.name, 0) for each in resources):
        return None
    key = ("balance", frozenset(demand.items()), resources)
    scores = view.by_node(key, partial(_score, resources=resources, demand=demand))
    return scores[feasible].astype(np.int64)


def _score(view: View, nodes: Indices, *, resources: tuple[ResourceWeight, ...], demand: Amounts) -> Small:
    uses = list(find_uses(view, nodes, resources, demand, by_load=False))
    evenness = _rate([(use.offered, use.after) for use in uses], len(nodes))
    if view.ground.version < (1, 36):
        return evenness
    before = _rate([(use.offered, use.used) for use in uses], len(nodes))
    return _HALF + (_HALF + evenness - before) // 2


def _rate(uses: list[tuple[Ints, Ints]], size: int) -> Small:
    """Rate each node from 0 to 100: one minus the deviation of the parts in use."""
    there = np.array([offered > 0 for offered, _ in uses]).reshape(len(uses), size)
    parts = np.array([_divide(offered, used) for offered, used in uses]).reshape(len(uses), size)
    return ((1.0 - _deviate(parts, there)) * MOST).astype(np.int8)


def _divide(offered: Ints, used: Ints) -> Parts:
    """Give the part in use, at most 1; 0 where nothing is offered."""
    parts = np.divide(used, offered, out=np.zeros(len(used)), where=offered > 0)
    return np.minimum(parts, 1.0, out=parts)


def _deviate(parts: Parts, there: NDArray[np.bool_]) -> Parts:
    """Take the deviation over what each node offers, in the steps of Go: for two resources a short way."""
    if len(parts) == 2 and there.all():
        half: Parts = np.abs(parts[0] - parts[1]) / 2
        return half
    count = there.sum(axis=0)
    spread = np.where(there, parts, -np.inf).max(axis=0) - np.where(there, parts, np.inf).min(axis=0)
    mean = _add_up(parts) / np.where(count, count, 1)
    squares = _add_up(np.where(there, (parts - mean) * (parts - mean), 0.0))
    several = np.sqrt(squares / np.where(count, count, 1))
    return np.where(count > 2, several, np.where(count == 2, spread / 2, 0.0))


def _add_up(rows: Parts) -> Parts:
    """Add row after row: numpy's own sum may take another order, and give another last bit."""
    return reduce(np.add, rows)
