"""The forecast of one move: what each node would gain for the pod, and where the replacement would land.

The gain of a node is how many points of kube-scheduler's weighted total it has more than the source node.
Both are scored in one list and without the pod. The chances hold for the cluster as kube-scheduler will find
it: the old pod is terminating or deleted, and our extender draws the replacement to the destinations.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reberth.cluster.columns import Bools, Indices, Ints
from reberth.forecast.chances import Chances, count_wanted, find_chances
from reberth.forecast.cycle import NodeScores, PluginScorer, rerun_scores, run_scores
from reberth.forecast.extender import AVOID, ReberthExtender
from reberth.forecast.forecast import Forecast, forecast_replacement, profile_of
from reberth.forecast.replacement.refusals import CANNOT_BE_REPLACED, CANNOT_FORECAST
from reberth.forecast.state.verdict import Irreplaceable, Rejected, Unforeseeable
from reberth.forecast.state.view import View
from reberth.memory.history import MOST_DESTINATIONS
from reberth.values.refusal import Refused
from rescheduler.observe.scheduler_model import AdvisedScheduler

NO_FEASIBLE_NODE = "NoFeasibleNode"

# With this chance kube-scheduler finds at least one of the destinations, if there are enough of them. It may
# miss any single one, since it stops searching after enough feasible nodes (percentageOfNodesToScore).
_SURE = 0.999
# An eviction history keeps no more destinations than this.
_FEWEST, _MOST = 3, MOST_DESTINATIONS


@dataclass(frozen=True, eq=False)
class Prospect:
    """The source node and the feasible nodes: the score of each, and its gain over the source node."""

    view: View
    place: int
    source: int
    nodes: Indices
    scores: NodeScores
    gains: Ints
    forecast: Forecast
    wanted: int  # kube-scheduler stops its search after so many feasible nodes
    drawn: Chances | None = None  # of each feasible node, if our extender draws the pod

    @cached_property
    def chances(self) -> Chances:
        """Give the chance of each feasible node."""
        return self.forecast.chances if self.drawn is None else self.drawn

    @cached_property
    def feasible(self) -> Bools:
        """Tell which of the nodes are feasible: all but possibly the source node."""
        if self.nodes is self.forecast.feasible:
            return np.ones(len(self.nodes), np.bool_)
        return _find(self.nodes, self.forecast.feasible, self.view.facts.size)

    def are_among(self, places: Sequence[int]) -> Bools:
        """Tell which of the nodes are at these places."""
        if not places:
            return np.zeros(len(self.nodes), np.bool_)
        return _find(self.nodes, np.array(places, np.int32), self.view.facts.size)

    def chance_among(self, nodes: Indices) -> float:
        """Give the chance that the pod lands on one of these nodes."""
        return float(self.chances[_find(self.forecast.feasible, nodes, self.view.facts.size)].sum())

    def chance_of(self, node: int) -> float:
        return float(self.chances[self.forecast.feasible == node].sum())

    def expect(self, gains: Ints) -> float:
        """Give the mean gain, weighted by the chance of each node."""
        return float((gains[self.feasible] * self.chances).sum())


def forecast_move(place: int, view: View, advised: AdvisedScheduler) -> Prospect | Refused:
    """Forecast a move without our extender drawing the replacement."""
    found = forecast_replacement(place, view, advised.scheduler, extenders=advised.extenders)
    if isinstance(found, Irreplaceable):
        return Refused(CANNOT_BE_REPLACED, found.reason)
    if isinstance(found, Unforeseeable):
        return Refused(CANNOT_FORECAST, found.reason)
    profile = profile_of(found.incoming, advised.scheduler)
    if isinstance(profile, Unforeseeable):
        return Refused(CANNOT_FORECAST, profile.reason)
    if not len(found.feasible):
        return Refused(NO_FEASIBLE_NODE, _describe_refusals(found))
    source = int(view.node[place])
    nodes = _insert(found.feasible, source)
    ask = PluginScorer(found.incoming, view.without(place), profile)
    scores = rerun_scores(ask, found.scores, nodes, source) if found.scores else run_scores(*ask, nodes)
    if isinstance(scores, Rejected):
        return Refused(CANNOT_FORECAST, scores.reason)
    totals = scores.totals
    return Prospect(
        view,
        place,
        source,
        nodes,
        scores,
        totals - totals[np.searchsorted(nodes, source)],
        found,
        count_wanted(view.facts.size, profile.percentage),
    )


def draw(prospect: Prospect, destinations: Indices, extenders: Sequence[ReberthExtender]) -> Prospect:
    """Forecast where the replacement would land while our extender draws it, if kube-scheduler asks it.

    kube-scheduler asks the extender about the nodes that it has found, and the extender draws to the best
    destination among these. So the destinations score above all other nodes, in their order, unless the
    extender's weight is too small.
    """
    found, totals = prospect.forecast, prospect.forecast.totals.copy()
    for extender in extenders:
        if extender.path == AVOID and found.scores is not None:
            weights, signals = _weigh(prospect, found.feasible, extender), extender.memory.settings.advice
            is_source = found.feasible == prospect.source
            totals -= np.where(is_source & signals.notes, weights, 0)
            if signals.draw:
                places = np.searchsorted(found.feasible, destinations).astype(np.int32)
                totals = _raise(totals, places, int(weights.max(initial=0)))
    return replace(prospect, drawn=find_chances(totals, prospect.wanted))


def find_avoided(prospect: Prospect, extenders: Sequence[ReberthExtender]) -> Bools:
    """Tell which of the nodes our extender makes the pod avoid."""
    avoided = np.zeros(len(prospect.nodes), np.bool_)
    for extender in extenders:
        if extender.path == AVOID:
            weights = _weigh(prospect, prospect.nodes, extender)
            avoided |= weights < weights.max(initial=0)
    return avoided


def _weigh(prospect: Prospect, nodes: Indices, extender: ReberthExtender) -> Ints:
    found = prospect.forecast
    if nodes is found.feasible and extender in found.extender_scores:
        return found.extender_scores[extender]
    return extender.prioritize(found.incoming, prospect.view, nodes)


def _raise(totals: Ints, places: Indices, points: int) -> Ints:
    """Raise some totals by these points; if that lifts them above all others, keep the given order."""
    raised, is_other = totals[places] + points, np.ones(len(totals), np.bool_)
    is_other[places] = False
    highest = totals.max(initial=0, where=is_other)
    if raised.min() > highest:
        raised = highest + np.arange(len(places), 0, -1)
    higher = totals.copy()
    higher[places] = raised
    return higher


def list_destinations(
    prospect: Prospect, chosen: Bools, *, preferred: NDArray[np.float64] | None = None
) -> Indices:
    """Give the chosen nodes, best first: as many as make sure that kube-scheduler finds one of them.

    They are ordered by preference, then by score, then by name.
    """
    nodes = prospect.nodes[chosen]
    first = np.zeros(len(nodes)) if preferred is None else preferred[chosen]
    order = np.lexsort((-prospect.scores.totals[chosen], -first))
    feasible = len(prospect.forecast.feasible)
    return nodes[order[: _count_enough(feasible, min(prospect.wanted, feasible))]]


def _insert(nodes: Indices, node: int) -> Indices:
    """Insert a node into others, which stay in order."""
    place = int(np.searchsorted(nodes, node))
    is_there = place < len(nodes) and nodes[place] == node
    return nodes if is_there else np.concatenate((nodes[:place], np.array([node], np.int32), nodes[place:]))


def _find(nodes: Indices, wanted: Indices, size: int) -> Bools:
    """Tell which of some nodes are among others, in a cluster of this size."""
    found = np.zeros(size, np.bool_)
    found[wanted] = True
    return found.take(nodes)


def _count_enough(feasible: int, found: int) -> int:
    """Count how many destinations make sure that one is found, if so many feasible nodes are found."""
    missed, count = 1.0, 0
    while missed > 1 - _SURE and count < min(_MOST, feasible):
        missed *= (feasible - found - count) / (feasible - count)
        count += 1
    return max(count, _FEWEST)


def _describe_refusals(found: Forecast) -> str:
    counts = [f"{int(each.nodes.sum())} {each.reason}" for each in found.refusals]
    return f"no node is feasible for the replacement: {', '.join(counts)}"
