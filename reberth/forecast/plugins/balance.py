"""Whether the pod would let its node use its resources more evenly."""

from functools import partial, reduce

import numpy as np
from numpy.typing import NDArray

from reberth.cluster.columns import Indices, Ints
from reberth.cluster.pods.requests import Amounts
from reberth.forecast.plugins.node_resources import Small, find_uses
from reberth.forecast.plugins.normalize import MOST
from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.forecast.state.plugin_args import BalanceArguments, ResourceWeight
from reberth.forecast.state.view import View

Parts = NDArray[np.float64]

_HALF = MOST // 2


def score_balance(
    incoming: IncomingPod, view: View, feasible: Indices, arguments: BalanceArguments
) -> Ints | None:
    """Score how even the use would be; since 1.36, how much more even than without the pod."""
    demand, resources = incoming.demand.amounts, arguments.resources
    if not any(demand.get(each.name, 0) for each in resources):
        return None
    key = ("balance", frozenset(demand.items()), resources)
    return view.by_node(key, partial(_score, resources=resources, demand=demand), feasible).astype(np.int64)


def _score(view: View, nodes: Indices, *, resources: tuple[ResourceWeight, ...], demand: Amounts) -> Small:
    uses = find_uses(view, nodes, resources, demand, by_load=False)
    if view.facts.version < (1, 36):
        return _rate(uses.offered, uses.after)
    before, evenness = _rate(uses.offered[:, None], np.stack((uses.used, uses.after), axis=1))
    scores: Small = _HALF + (_HALF + evenness - before) // 2
    return scores


def _rate(offered: Ints, used: Ints) -> Small:
    """Rate from 0 to 100, of [resource, ...] in use: one minus the deviation of the parts."""
    there = offered > 0
    parts = np.minimum(np.where(there, used / np.maximum(offered, 1), 0.0), 1.0)
    return ((1.0 - _deviate(parts, there)) * MOST).astype(np.int8)


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
