"""How far nodes are from being used alike, and what one pod more or less on them changes.

A node counts by the resource of which most is in use on it. Its distance from the mean of all nodes is
squared, as in the standard deviation: what a move changes is the sum of what it changes on two nodes.
"""

from dataclasses import dataclass

import numpy as np

from reberth.columns import Indices, Ints
from reberth.landing.viewing import View
from rescheduler.utilisation import Bounds, Shares, standing


@dataclass(frozen=True, eq=False)
class Balance:
    """The nodes of one view. What a node does not offer it has without end."""

    used: Ints  # as [resource, node]
    offered: Shares
    largest: Shares
    mean: float

    def measure_burdens(self, asks: Ints, nodes: Indices) -> Shares:
        """Tell how much farther from the mean each node would be with each pod; as [pod, node]."""
        used, offered = self.used[:, None, nodes], self.offered[:, None, nodes]
        return self._compare(self.largest[nodes], _find_largest(used + asks[:, :, None], offered))

    def measure_relief(self, asks: Ints, nodes: Indices) -> Shares:
        """Tell how much nearer to the mean the node of each pod would be without it."""
        left = _find_largest(self.used[:, nodes] - asks, self.offered[:, nodes])
        return -self._compare(self.largest[nodes], left)

    def _compare(self, before: Shares, after: Shares) -> Shares:
        return (after - before) * (after + before - 2 * self.mean)


def find_balance(bounds: Bounds, seen: View) -> Balance:
    """Measure the nodes by the resources that have bounds."""
    offered, used = bounds.offers(seen), bounds.uses(seen)
    endless = np.where(offered > 0, offered, np.inf)
    largest, usable = _find_largest(used, endless), standing(seen.ground).usable
    return Balance(used, endless, largest, float(largest[usable].mean()) if usable.any() else 0.0)


def _find_largest(used: Ints, offered: Shares) -> Shares:
    largest: Shares = (used / offered).max(axis=0, initial=0.0)
    return largest
