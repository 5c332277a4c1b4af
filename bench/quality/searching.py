"""The best single move, again and again: the pair of pod and node that improves the balance most.

Every step tries every pod on every node, by the columns, and takes the first pair that protections, limits
and the forecast allow. It knows no thresholds and no costs: nothing that looks one move ahead evens out more.
"""

import numpy as np

from bench.quality.refereeing import Course
from reberth.cluster.columns import Ints
from reberth.cluster.pods.requests import CPU, MEMORY
from reberth.cluster.templates import RESOURCES

_COUNTED = [RESOURCES.index(name) for name in (CPU, MEMORY)]


class Table:
    """What each pod on each node would change: the sum of the larger shares, and of their squares.

    The nodes' standard deviation follows from both; a move changes two nodes, their columns and their pods.
    """

    def __init__(self, course: Course) -> None:
        self.course = course
        view = course.view
        snapshot = view.facts.snapshot
        self.pods: Ints = np.flatnonzero(view.counted & ~course.protected)
        self.asked = snapshot.templates.requests.main[_COUNTED][:, snapshot.pods.template[self.pods]].astype(
            float
        )
        self.offered = view.nodes.allocatable.main[_COUNTED].astype(float)
        self.closed = np.zeros((len(self.pods), view.facts.size), np.bool_)
        self.sums = np.zeros(self.closed.shape)
        self.squares = np.zeros(self.closed.shape)
        self.update(range(view.facts.size))

    def update(self, nodes: range | list[int]) -> None:
        """Look at some nodes again, and at the pods on them."""
        view, rows = self.course.view, np.flatnonzero(np.isin(self.course.view.node[self.pods], nodes))
        self.used = view.requested.main[_COUNTED].astype(float)
        self.shares = (self.used / self.offered).max(axis=0)
        self._fill(np.arange(len(self.pods)), np.asarray(nodes))
        self._fill(rows, np.arange(view.facts.size))

    def _fill(self, rows: Ints, nodes: Ints) -> None:
        source = self.course.view.node[self.pods[rows]]
        left = ((self.used[:, source] - self.asked[:, rows]) / self.offered[:, source]).max(axis=0)[:, None]
        taken = (self.used[:, None, nodes] + self.asked[:, rows, None]) / self.offered[:, None, nodes]
        more, before, own = taken.max(axis=0), self.shares[nodes], self.shares[source][:, None]
        place = np.ix_(rows, nodes)
        self.sums[place] = more - before + left - own
        self.squares[place] = more**2 - before**2 + left**2 - own**2
        self.closed[place] |= (more > 1) | (source[:, None] == nodes)

    def find_best(self) -> tuple[int, int] | None:
        """Return the pair, as row and node, that balances the nodes best; None if none does."""
        total, count = self.shares.sum(), len(self.shares)
        variance = self.squares / count - ((total + self.sums) ** 2 - total**2) / count**2
        variance[self.closed] = 0
        row, node = divmod(int(variance.argmin()), count)
        return (row, node) if variance[row, node] < -1e-12 else None

    def close(self, row: int, least: int | None) -> None:
        """Exclude the nodes that protections, limits or the forecast refuse for this pod."""
        pod, course = int(self.pods[row]), self.course
        found = course.look_ahead(pod) if course.may_move(pod) else None
        refused = np.ones(self.closed.shape[1], np.bool_)
        if found is not None:
            good = found.feasible if least is None else found.feasible & (found.gains > least)
            refused[found.nodes[good]] = False
        self.closed[row] |= refused


def run(course: Course, *, most: int, least: int | None) -> None:
    """Make the best move until none helps or the limit is reached.

    With `least` only moves count whose gain the forecast sees to be larger, in kube-scheduler's points.
    """
    table = Table(course)
    while len(course.hops) < most:
        best = table.find_best()
        if best is None:
            return
        row, node = best
        table.close(row, least)
        if not table.closed[row, node]:
            _move(table, row, node)


def _move(table: Table, row: int, node: int) -> None:
    pod = int(table.pods[row])
    source = int(table.course.view.node[pod])
    if table.course.move(pod, node):
        table.closed[row] = True
        table.update([source, node])
    else:
        table.closed[row, node] = True
