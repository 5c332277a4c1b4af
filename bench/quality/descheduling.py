"""The descheduler's LowNodeUtilization as documented, under the same rules as all arms.

* Thresholds are distances from the plain mean of all nodes, of cpu, memory and pods.
* Under-utilised is a node at or below the low thresholds in all of them, over-utilised one that is above the
  high one in any. Sources go by what is requested on them, raw: bytes of memory decide.
* From each source pods go by priority (all are of one quality of service here), until it is above no
  threshold any more, or what the under-utilised nodes could take in sum is used up. Meanwhile it looks at its
  own sums alone.
* nodeFit: a pod goes only if the forecast finds an under-utilised node feasible for it. Where it lands the
  forecast decides, and the strategy does not know it.

Cycle follows cycle, each with what the landings have made of the fleet.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

import numpy as np

from bench.quality.refereeing import Course
from reberth.cluster.columns import Bools, Ints
from reberth.cluster.pods.requests import CPU, MEMORY, PODS
from reberth.cluster.templates import RESOURCES
from reberth.forecast.state.view import View
from rescheduler.observe.utilisation import Shares, find_usable_nodes

_COUNTED = [RESOURCES.index(name) for name in (CPU, MEMORY, PODS)]


class Thresholds(NamedTuple):
    """In hundredths below and above the mean; and how many pods leave a node in a cycle."""

    low: int
    high: int
    per_node: int | None

    def __str__(self) -> str:
        return f"-{self.low}/+{self.high}, {self.per_node or 'all'} a node"


@dataclass
class Sight:
    """What one cycle goes by: the nodes as they were at its beginning, and its own sums since."""

    used: Shares  # as [resource, node]
    high: Shares
    under: Bools
    sources: list[int]
    budget: Shares  # what the under-utilised nodes could take, by resource

    def goes_on(self, node: int) -> bool:
        return bool((self.used[:, node] > self.high[:, node]).any() and (self.budget > 0).all())

    def evict(self, node: int, asked: Ints) -> None:
        self.used[:, node] -= asked
        self.budget -= asked


def look(view: View, thresholds: Thresholds) -> Sight:
    """Sort the nodes into under- and over-utilised ones."""
    usable = find_usable_nodes(view.facts).usable
    offered = view.nodes.allocatable.main[_COUNTED].astype(float)
    used = view.requested.main[_COUNTED].astype(float)
    mean = 100 * (used / offered)[:, usable].mean(axis=1)[:, None]
    low, high = (
        np.clip(each, 0, 100) / 100 * offered for each in (mean - thresholds.low, mean + thresholds.high)
    )
    under = (used <= low).all(axis=0) & usable
    over = (used > high).any(axis=0) & usable & ~under
    raw = used[:2].sum(axis=0)
    sources = [node for node in np.argsort(-raw, kind="stable").tolist() if over[node]]
    return Sight(used, high, under, sources if under.any() else [], (high - used)[:, under].sum(axis=1))


def run(course: Course, thresholds: Thresholds, *, most: int, dice: Random) -> None:
    """Run cycles until nothing is evicted or the limit of moves is reached."""
    while len(course.hops) < most:
        before = len(course.hops)
        sight = look(course.view, thresholds)
        for node in sight.sources:
            for pod in _list_evictions(course, sight, node, thresholds):
                _land(course, pod, dice)
                if len(course.hops) == most:
                    return
        if len(course.hops) == before:
            return


def _list_evictions(course: Course, sight: Sight, node: int, thresholds: Thresholds) -> Iterator[int]:
    """Evict from one source; each evicted pod is gone before the next one is considered."""
    snapshot = course.view.facts.snapshot
    found = np.flatnonzero((course.view.node == node) & course.view.counted)
    evicted = 0
    for pod in sorted(found.tolist(), key=lambda pod: (int(snapshot.pods.priority[pod]), pod)):
        if not sight.goes_on(node) or evicted == thresholds.per_node:
            return
        if course.may_move(pod) and _fits(course, sight, pod):
            sight.evict(node, snapshot.templates.requests.main[_COUNTED, snapshot.pods.template[pod]])
            evicted += 1
            yield pod


def _fits(course: Course, sight: Sight, pod: int) -> bool:
    found = course.look_ahead(pod)
    return found is not None and bool(sight.under[found.forecast.feasible].any())


def _land(course: Course, pod: int, dice: Random) -> None:
    """Let the replacement land where the forecast says; on one of the best nodes."""
    found = course.look_ahead(pod)
    if found is not None:
        course.move(pod, dice.choice(found.forecast.best.tolist()))
