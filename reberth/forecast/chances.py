"""How likely each node is to get the pod.

Below 100 nodes kube-scheduler looks at all of them, and the best ones share the chance alike: which of them
wins depends on the order in which it came to know the nodes. From 100 nodes on it stops when it has found
enough feasible ones, so a node wins if it is among those found and no better one is.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from reberth.cluster.columns import Ints

Chances = NDArray[np.float64]

_ALL_BELOW = 100
_LEAST_PERCENTAGE = 5
_MOST_PERCENTAGE = 50
_NODES_PER_POINT = 125


def count_wanted(nodes: int, percentage: int) -> int:
    """Tell how many feasible nodes kube-scheduler looks for; at 0 percent their number decides."""
    if nodes < _ALL_BELOW:
        return nodes
    share = percentage or max(_LEAST_PERCENTAGE, _MOST_PERCENTAGE - nodes // _NODES_PER_POINT)
    return max(_ALL_BELOW, nodes * share // 100)


def find_chances(totals: Ints, wanted: int, *, refused: int = 0) -> Chances:
    """Give the chance of each feasible node, if any of them is found as likely as any other.

    So many more are found and then refused by an extender: if only those are found, nobody gets the pod.
    """
    if not len(totals):
        return np.zeros(0)
    below_best, nodes = totals.max() - totals, len(totals) + refused
    alike = np.bincount(below_best)
    none_better = _miss_best(nodes, min(wanted, nodes))[np.concatenate(([0], np.cumsum(alike)))]
    chances: Chances = ((none_better[:-1] - none_better[1:]) / np.maximum(alike, 1))[below_best]
    return chances


@lru_cache(maxsize=64)
def _miss_best(feasible: int, found: int) -> Chances:
    """Give the chance that none of the best n nodes is among those found, for each n."""
    missed = np.arange(feasible - found)
    steps = (feasible - found - missed) / (feasible - missed)
    return np.concatenate(([1.0], np.cumprod(steps), np.zeros(found)))
