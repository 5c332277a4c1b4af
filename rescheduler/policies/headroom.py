"""How full the under-utilised nodes would be with a pod of a given size, kept for a whole plan.

Most pods of a cluster have few distinct sizes, and a move changes two nodes. So the answer for a size is
found once for all nodes, and again only for nodes that moves have changed.
"""

from dataclasses import dataclass, field

import numpy as np

from reberth.cluster.columns import Indices, Ints, seal
from reberth.forecast.state.view import View
from rescheduler.observe.utilisation import Bounds, Shares
from rescheduler.policies.balance import find_largest

_AT_ONCE = 32


@dataclass(frozen=True, eq=False)
class Headroom:
    """Some nodes of the view that a plan begins with, and the distinct sizes of pods."""

    bounds: Bounds
    begun: View
    nodes: Indices
    sizes: Ints  # as [resource, size]
    _known: dict[int, Shares] = field(default_factory=dict, repr=False)

    def fill(self, sizes: Ints, view: View) -> Shares:
        """Give the largest share of each node with a pod of each size; infinite if there is no room."""
        self._fill_begun([size for size in sizes.tolist() if size not in self._known])
        filled = np.array([self._known[size] for size in sizes.tolist()])
        changed = self._list_changed(view)
        if len(changed):
            filled[:, changed] = self._fill(sizes, self.nodes[changed], view)
        return filled

    def _list_changed(self, view: View) -> Indices:
        """Give the places of the nodes that have changed."""
        changed = np.zeros(view.facts.size, np.bool_)
        changed[list(view.changed)] = True
        return np.flatnonzero(changed[self.nodes]).astype(np.int32)

    def _fill_begun(self, sizes: list[int]) -> None:
        """Find the answers for some sizes, a few at a time to bound the memory."""
        for first in range(0, len(sizes), _AT_ONCE):
            few = sizes[first : first + _AT_ONCE]
            filled = self._fill(np.array(few), self.nodes, self.begun)
            self._known.update(zip(few, map(seal, filled), strict=True))

    def _fill(self, sizes: Ints, nodes: Indices, view: View) -> Shares:
        after = self.bounds.uses(view)[:, None, nodes] + self.sizes[:, sizes, None]
        filled = find_largest(after, self.bounds.endless[:, None, nodes])
        filled[np.any(after > self.bounds.high[:, None, nodes], axis=0)] = np.inf
        return filled
