"""What would follow if a pod were moved: what each node is worth to it, and where it would land.

The gain of a node are the points of kube-scheduler's weighted total that it has more than the pod's own node,
both scored in one list with the pod taken off. The chances are those of kube-scheduler as it will find the
cluster: the old pod leaving or gone, our extender drawing the new one to the destinations.
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
from reberth.forecast.state.verdict import Rejected, Unforeseeable
from reberth.forecast.state.view import View
from reberth.values.refusal import Refused
from rescheduler.observe.scheduler_model import AdvisedScheduler

NO_FEASIBLE_NODE = "NoFeasibleNode"
CANNOT_FORECAST = "CannotForecast"

# One of the destinations is among the nodes that kube-scheduler finds with this chance, if there are so many.
_SURE = 0.999
_FEWEST, _MOST = 3, 64


@dataclass(frozen=True, eq=False)
class Prospect:
    """A pod's own node and the feasible ones: what each scores, and what each is worth more than its own."""

    view: View
    place: int
    source: int
    nodes: Indices
    scores: NodeScores
    gains: Ints
    forecast: Forecast
    wanted: int  # so many feasible nodes are enough for kube-scheduler
    drawn: Chances | None = None  # of each feasible node, if our extender draws the pod

    @cached_property
    def chances(self) -> Chances:
        """Give the chance of each feasible node."""
        return self.forecast.chances if self.drawn is None else self.drawn

    @cached_property
    def feasible(self) -> Bools:
        """Tell which of the nodes are feasible: all, but the pod's own may be not."""
        if self.nodes is self.forecast.feasible:
            return np.ones(len(self.nodes), np.bool_)
        return _find(self.nodes, self.forecast.feasible)

    def are_among(self, places: Sequence[int]) -> Bools:
        """Tell which of the nodes are among these."""
        if not places:
            return np.zeros(len(self.nodes), np.bool_)
        return _find(self.nodes, np.array(places, np.int32))

    def chance_among(self, nodes: Indices) -> float:
        """Give the chance that the pod lands on one of these nodes."""
        return float(self.chances[_find(self.forecast.feasible, nodes)].sum())

    def chance_of(self, node: int) -> float:
        return float(self.chances[self.forecast.feasible == node].sum())

    def expect(self, gains: Ints) -> float:
        """Give the mean of what the nodes are worth, each as likely as the pod lands there."""
        return float((gains[self.feasible] * self.chances).sum())


def forecast_move(place: int, view: View, advised: AdvisedScheduler) -> Prospect | Refused:
    """See what would follow if a pod were moved, while nobody draws its replacement."""
    found = forecast_replacement(place, view, advised.scheduler, extenders=advised.extenders)
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
    """See where the pod would land if its move were open: our extender draws it, if it is asked at all.

    It is asked about the nodes that kube-scheduler has found, and draws to the best destination among these.
    So the destinations stand above all other nodes, in their order, unless the extender weighs too little.
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
    """Tell which of the nodes our extender keeps the pod away from: it draws nobody there."""
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
    """Raise some totals by these points; if that lifts them above all others, let their own order decide."""
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
    """Give the chosen nodes, the best first: as many as make sure that kube-scheduler finds one of them.

    Those that are preferred most come first, then those that score most. Nodes stand in the order of their
    names, which decides where nothing else does.
    """
    nodes = prospect.nodes[chosen]
    first = np.zeros(len(nodes)) if preferred is None else preferred[chosen]
    order = np.lexsort((-prospect.scores.totals[chosen], -first))
    feasible = len(prospect.forecast.feasible)
    return nodes[order[: _count_enough(feasible, min(prospect.wanted, feasible))]]


def _insert(nodes: Indices, node: int) -> Indices:
    """Put a node in its place among others, if it is not there."""
    place = int(np.searchsorted(nodes, node))
    is_there = place < len(nodes) and nodes[place] == node
    return nodes if is_there else np.concatenate((nodes[:place], np.array([node], np.int32), nodes[place:]))


def _find(nodes: Indices, wanted: Indices) -> Bools:
    """Tell which of some nodes are wanted ones."""
    found = np.zeros(int(max(nodes.max(initial=0), wanted.max(initial=0))) + 1, np.bool_)
    found[wanted] = True
    return found.take(nodes)


def _count_enough(feasible: int, found: int) -> int:
    """Count the nodes of which surely one is found, if so many of the feasible ones are, whichever."""
    missed, count = 1.0, 0
    while missed > 1 - _SURE and count < min(_MOST, feasible):
        missed *= (feasible - found - count) / (feasible - count)
        count += 1
    return max(count, _FEWEST)


def _describe_refusals(found: Forecast) -> str:
    counts = [f"{int(each.nodes.sum())} {each.reason}" for each in found.refusals]
    return f"no node would take it: {', '.join(counts)}"
