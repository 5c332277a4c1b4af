"""How likely each feasible node is to get the pod.

Below 100 nodes kube-scheduler filters all of them, and the nodes with the highest total share the chance:
which of them wins depends on the order in which the scheduler learned of its nodes. From 100 nodes on it
stops when it has found enough feasible nodes, so a node wins if it is among those found and no better one is.

kube-scheduler: `pkg/scheduler/schedule_one.go`: `(*Scheduler).numFeasibleNodesToFind`,
`(*Scheduler).findNodesThatPassFilters`, `prioritizeNodes`
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from reberth.cluster.columns import Ints

Chances = NDArray[np.float64]

# `pkg/scheduler/schedule_one.go`: `minFeasibleNodesToFind`, `minFeasibleNodesPercentageToFind`
_MIN_FEASIBLE_NODES = 100
_MIN_PERCENTAGE = 5
# The adaptive percentage: 50 minus one for every 125 nodes.
# `pkg/scheduler/schedule_one.go`: `(*Scheduler).numFeasibleNodesToFind`
_MAX_PERCENTAGE = 50
_NODES_PER_PERCENT = 125


def count_wanted(nodes: int, percentage: int) -> int:
    """Give how many feasible nodes kube-scheduler searches for; 0 percent means adaptive."""
    if nodes < _MIN_FEASIBLE_NODES:
        return nodes
    share = percentage or max(_MIN_PERCENTAGE, _MAX_PERCENTAGE - nodes // _NODES_PER_PERCENT)
    return max(_MIN_FEASIBLE_NODES, nodes * share // 100)


def find_chances(totals: Ints, wanted: int, *, refused: int = 0) -> Chances:
    """Give the chance of each feasible node, if the search finds each with the same probability.

    `refused` more nodes pass the filters and are then refused by an extender: if the search finds only those,
    no node gets the pod.
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
    """Give the probability that none of the best n nodes is among those found, for each n."""
    missed = np.arange(feasible - found)
    steps = (feasible - found - missed) / (feasible - missed)
    return np.concatenate(([1.0], np.cumprod(steps), np.zeros(found)))
