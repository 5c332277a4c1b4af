"""Where a pod would land: the feasible nodes with their scores, the best of them, and the chance of each.

kube-scheduler: `pkg/scheduler/schedule_one.go`: `(*Scheduler).schedulePod`,
`(*Scheduler).findNodesThatFitPod`, `(*Scheduler).evaluateNominatedNode`, `findNodesThatPassExtenders`,
`prioritizeNodes`
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, partial
from typing import Protocol

import numpy as np

from reberth.cluster.columns import Indices, Ints
from reberth.cluster.pods.identity import BARE_POD
from reberth.cluster.rows import PodRow
from reberth.forecast.chances import Chances, count_wanted, find_chances
from reberth.forecast.cycle import Feasibility, NodeScores, run_filters, run_scores
from reberth.forecast.replacement.refusals import CANNOT_BE_REPLACED
from reberth.forecast.state.incoming_pod import IncomingPod, predict_replacement
from reberth.forecast.state.profile import DEFAULT_SCHEDULER, KubeScheduler, Profile
from reberth.forecast.state.verdict import Irreplaceable, Refusal, Rejected, Unforeseeable
from reberth.forecast.state.view import View
from reberth.values.refusal import Refused


class Victim(Enum):
    """What kube-scheduler sees of the old pod when it schedules the replacement, in the order of time.

    The events of the two pods arrive one by one: rarely its cache is stale for the old pod.
    """

    UNNOTICED = "unnoticed"
    TERMINATING = "terminating"
    GONE = "gone"

    @property
    def earlier(self) -> tuple["Victim", ...]:
        """Give what a stale cache may still show instead."""
        order = tuple(Victim)
        return order[: order.index(self)]


class ExtenderModel(Protocol):
    """The model of an extender that kube-scheduler calls."""

    def filter(self, incoming: IncomingPod, view: View, nodes: Indices) -> Sequence[Refusal]:
        """Give the nodes that it refuses, and why."""

    def prioritize(self, incoming: IncomingPod, view: View, nodes: Indices) -> Ints:
        """Give what it adds to the total of each node, if it is called with all of them."""

    def rank(self, incoming: IncomingPod, view: View, nodes: Indices) -> Ints:
        """Give an order of the nodes that holds for any subset of them with which it is called."""


@dataclass(frozen=True, eq=False)
class Forecast:
    """What kube-scheduler would do with a pod. All arrays are by feasible node."""

    incoming: IncomingPod
    feasible: Indices
    scores: NodeScores | None  # None if at most one node is feasible: kube-scheduler then skips scoring
    totals: Ints
    refusals: tuple[Refusal, ...]
    find_chances: Callable[[], Chances] = field(repr=False)
    extender_scores: Mapping[ExtenderModel, Ints] = field(default_factory=dict)  # part of the totals
    rejected: str | None = None

    @cached_property
    def chances(self) -> Chances:
        """Give the chance of each; computed on demand."""
        return self.find_chances()

    @property
    def best(self) -> Indices:
        """Give the nodes with the highest total; if all nodes are searched, the pod lands on one of them."""
        best: Indices = self.feasible[self.totals == self.totals.max(initial=0)]
        return best

    def chance_of(self, node: int) -> float:
        return float(self.chances[self.feasible == node].sum())

    def reasons(self, node: int) -> list[str]:
        """Give the reasons why a node is refused."""
        return [refusal.reason for refusal in self.refusals if refusal.nodes[node]]


def forecast(
    incoming: IncomingPod, view: View, scheduler: KubeScheduler, *, extenders: Sequence[ExtenderModel] = ()
) -> Forecast | Unforeseeable:
    """Forecast where the pod would land if it were scheduled on the cluster as this view shows it."""
    profile = profile_of(incoming, scheduler)
    if isinstance(profile, Unforeseeable):
        return profile
    found = run_filters(incoming, view, profile, among=scheduler.profiles)
    if isinstance(found, Unforeseeable):
        return found
    if isinstance(found, Rejected):
        return _reject(incoming, view, (), found.reason)
    passed = int(np.count_nonzero(found.fits))
    found = _ask_advisers(incoming, view, found, extenders)
    feasible = _find_feasible(incoming, view, found)
    scores = run_scores(incoming, view, profile, feasible) if len(feasible) > 1 else None
    if isinstance(scores, Rejected):
        return _reject(incoming, view, found.refusals, scores.reason)
    extender_scores = {
        extender: extender.prioritize(incoming, view, feasible) for extender in extenders if scores
    }
    totals: Ints = sum(
        extender_scores.values(), scores.totals if scores else np.zeros(len(feasible), np.int64)
    )
    wanted = count_wanted(view.facts.size, profile.percentage)
    order = (
        partial(_prefer, incoming, view, scores, extenders) if scores and wanted < passed else lambda: totals
    )
    refused = passed - int(np.count_nonzero(found.fits))
    chances = partial(_find_chances, order, wanted, refused)
    return Forecast(incoming, feasible, scores, totals, found.refusals, chances, extender_scores)


def forecast_replacement(
    place: int,
    view: View,
    scheduler: KubeScheduler,
    *,
    victim: Victim | None = None,
    extenders: Sequence[ExtenderModel] = (),
) -> Forecast | Unforeseeable | Irreplaceable:
    """Forecast where the replacement of a pod would land.

    `victim` tells what kube-scheduler sees of the old pod; by default that depends on its controller.
    """
    row = view.facts.snapshot.pods.rows[place]
    if row.template.controller is None:
        return Unforeseeable(BARE_POD.reason)
    incoming = predict_replacement(view.facts, place)
    if isinstance(incoming, Refused):
        is_known = incoming.rule == CANNOT_BE_REPLACED
        return Irreplaceable(incoming.reason) if is_known else Unforeseeable(incoming.reason)
    match victim or expect_victim(row):
        case Victim.GONE:
            view = view.without(place)
        case Victim.TERMINATING:
            view = view.with_terminating(place)
    return forecast(incoming, view, scheduler, extenders=extenders)


def forecast_with_stale_cache(
    place: int, view: View, scheduler: KubeScheduler, *, extenders: Sequence[ExtenderModel] = ()
) -> tuple[Forecast, ...]:
    """Forecast where it would land if kube-scheduler's cache is stale for the old pod, as happens rarely."""
    row = view.facts.snapshot.pods.rows[place]
    found = (
        forecast_replacement(place, view, scheduler, victim=victim, extenders=extenders)
        for victim in expect_victim(row).earlier
    )
    return tuple(one for one in found if isinstance(one, Forecast) and len(one.feasible))


def expect_victim(row: PodRow) -> Victim:
    """Tell what kube-scheduler sees of a pod when it schedules the replacement.

    A StatefulSet controller waits until the old pod is gone; others create the replacement at once, and only
    a pod without a grace period is gone by then.
    """
    controller = row.template.controller
    of_stateful_set = controller is not None and controller.kind == "StatefulSet"
    is_gone = of_stateful_set or row.template.spec.termination_grace_period_seconds == 0
    return Victim.GONE if is_gone else Victim.TERMINATING


def profile_of(incoming: IncomingPod, scheduler: KubeScheduler) -> Profile | Unforeseeable:
    """Give the profile that schedules the pod."""
    name = incoming.template.spec.scheduler_name or DEFAULT_SCHEDULER
    profile = scheduler.profiles.get(name)
    return profile or Unforeseeable(f"the scheduler has no profile {name}")


def _ask_advisers(
    incoming: IncomingPod, view: View, found: Feasibility, extenders: Sequence[ExtenderModel]
) -> Feasibility:
    for extender in extenders:
        for refusal in extender.filter(incoming, view, np.flatnonzero(found.fits).astype(np.int32)):
            found = Feasibility(found.fits & ~refusal.nodes, (*found.refusals, refusal))
    return found


def _find_feasible(incoming: IncomingPod, view: View, found: Feasibility) -> Indices:
    """Give the feasible nodes; if the pod's nominated node is feasible, only that one.

    `pkg/scheduler/schedule_one.go`: `(*Scheduler).evaluateNominatedNode`
    """
    nominated = view.nodes.index.get(incoming.nominated or "")
    if nominated is not None and found.fits[nominated]:
        return np.array([nominated], np.int32)
    return np.flatnonzero(found.fits).astype(np.int32)


def _prefer(
    incoming: IncomingPod, view: View, scores: NodeScores, extenders: Sequence[ExtenderModel]
) -> Ints:
    """Rank the nodes by which wins, for any subset of them that kube-scheduler finds."""
    return sum((extender.rank(incoming, view, scores.nodes) for extender in extenders), scores.totals)


def _find_chances(order: Callable[[], Ints], wanted: int, refused: int) -> Chances:
    return find_chances(order(), wanted, refused=refused)


def _reject(incoming: IncomingPod, view: View, refusals: tuple[Refusal, ...], reason: str) -> Forecast:
    """Every node is refused for this reason."""
    no_nodes: Indices = np.zeros(0, np.int32)
    everywhere = Refusal(reason, np.ones(view.facts.size, np.bool_))
    no_totals: Ints = np.zeros(0, np.int64)
    return Forecast(
        incoming, no_nodes, None, no_totals, (*refusals, everywhere), lambda: np.zeros(0), rejected=reason
    )
