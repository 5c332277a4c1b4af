"""The balance of nodes, and how one pod more or less changes it.

A node counts by its most used resource. Its distance from the mean of all nodes is squared, as in the
standard deviation. So the effect of a move is the sum of its effects on two nodes.
"""

from dataclasses import dataclass

from reberth.cluster.columns import Indices, Ints
from reberth.forecast.state.view import View
from rescheduler.observe.utilisation import Bounds, Shares, find_usable_nodes


@dataclass(frozen=True, eq=False)
class Balance:
    """The nodes of one view. A resource that a node does not have counts as infinite."""

    used: Ints  # as [resource, node]
    offered: Shares
    largest: Shares
    mean: float

    def measure_burdens(self, ask: Ints) -> Shares:
        """Tell how much farther from the mean each node would be with the pod."""
        return self.compare(self.largest, find_largest(self.used + ask[:, None], self.offered))

    def measure_relief(self, asks: Ints, nodes: Indices) -> Shares:
        """Tell how much nearer to the mean the node of each pod would be without it."""
        left = find_largest(self.used[:, nodes] - asks, self.offered[:, nodes])
        return -self.compare(self.largest[nodes], left)

    def compare(self, before: Shares, after: Shares) -> Shares:
        """Tell how much farther from the mean nodes are, by their largest shares."""
        return (after - before) * (after + before - 2 * self.mean)


def find_balance(bounds: Bounds, view: View) -> Balance:
    """Measure the nodes by the resources that have thresholds."""
    used, endless = bounds.uses(view), bounds.endless
    largest, usable = find_largest(used, endless), find_usable_nodes(view.facts).usable
    return Balance(used, endless, largest, float(largest[usable].mean()) if usable.any() else 0.0)


def find_largest(used: Ints, offered: Shares) -> Shares:
    """Find the largest share of each node; nodes are the last axis of both arrays."""
    largest: Shares = (used / offered).max(axis=0, initial=0.0)
    return largest
