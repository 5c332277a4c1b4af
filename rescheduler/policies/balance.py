"""How far nodes are from being used alike, and what one pod more or less on them changes.

A node counts by the resource of which most is in use on it. Its distance from the mean of all nodes is
squared, as in the standard deviation: what a move changes is the sum of what it changes on two nodes.
"""

from dataclasses import dataclass

from reberth.cluster.columns import Indices, Ints
from reberth.forecast.state.view import View
from rescheduler.observe.utilisation import Bounds, Shares, find_usable_nodes


@dataclass(frozen=True, eq=False)
class Balance:
    """The nodes of one view. What a node does not offer it has without end."""

    used: Ints  # as [resource, node]
    offered: Shares
    largest: Shares
    mean: float

    def measure_burdens(self, ask: Ints) -> Shares:
        """Tell how much farther from the mean each node would be with a pod."""
        return self.compare(self.largest, find_largest(self.used + ask[:, None], self.offered))

    def measure_relief(self, asks: Ints, nodes: Indices) -> Shares:
        """Tell how much nearer to the mean the node of each pod would be without it."""
        left = find_largest(self.used[:, nodes] - asks, self.offered[:, nodes])
        return -self.compare(self.largest[nodes], left)

    def compare(self, before: Shares, after: Shares) -> Shares:
        """Tell how much farther from the mean nodes are, by their largest shares."""
        return (after - before) * (after + before - 2 * self.mean)


def find_balance(bounds: Bounds, view: View) -> Balance:
    """Measure the nodes by the resources that have bounds."""
    used, endless = bounds.uses(view), bounds.endless
    largest, usable = find_largest(used, endless), find_usable_nodes(view.facts).usable
    return Balance(used, endless, largest, float(largest[usable].mean()) if usable.any() else 0.0)


def find_largest(used: Ints, offered: Shares) -> Shares:
    """Find the largest share of each node, which stand last in both."""
    largest: Shares = (used / offered).max(axis=0, initial=0.0)
    return largest
