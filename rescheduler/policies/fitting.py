"""How full the under-utilised nodes would be with a pod of some size, kept for a whole plan.

Most pods of a fleet are of few sizes, and a move changes few nodes: so the answer for a size is found once
for all nodes, and from then on found anew only where pods have come or gone.
"""

from dataclasses import dataclass, field

import numpy as np

from reberth.columns import Indices, Ints
from reberth.landing.viewing import View
from reberth.tabulating import seal
from rescheduler.policies.balance import find_largest
from rescheduler.utilisation import Bounds, Shares


@dataclass(frozen=True, eq=False)
class Fitting:
    """Some nodes of the view that a plan begins with, and pods of some sizes."""

    bounds: Bounds
    begun: View
    nodes: Indices
    sizes: Ints  # as [resource, size]
    _known: dict[int, Shares] = field(default_factory=dict, repr=False)

    def fill(self, sizes: Ints, seen: View) -> Shares:
        """Give the largest share of each node with a pod of each size; endless where there is no room."""
        filled = np.array([self._fill_begun(size) for size in sizes.tolist()])
        changed = self._list_changed(seen)
        if len(changed):
            filled[:, changed] = self._fill(sizes, self.nodes[changed], seen)
        return filled

    def _list_changed(self, seen: View) -> Indices:
        """Give the places of the nodes that are not as they were."""
        changed = np.zeros(seen.ground.size, np.bool_)
        changed[list(seen.changed)] = True
        return np.flatnonzero(changed[self.nodes]).astype(np.int32)

    def _fill_begun(self, size: int) -> Shares:
        if size not in self._known:
            self._known[size] = seal(self._fill(np.array([size]), self.nodes, self.begun)[0])
        return self._known[size]

    def _fill(self, sizes: Ints, nodes: Indices, seen: View) -> Shares:
        after = self.bounds.uses(seen)[:, None, nodes] + self.sizes[:, sizes, None]
        filled = find_largest(after, self.bounds.endless[:, None, nodes])
        filled[np.any(after > self.bounds.high[:, None, nodes], axis=0)] = np.inf
        return filled
