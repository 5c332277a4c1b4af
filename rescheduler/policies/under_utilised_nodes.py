"""Policy underUtilisedNodes: moves pods from over-utilised nodes to under-utilised ones.

* Utilisation is what pods request of a resource as a share of the node's allocatable amount. Every resource
  with a threshold counts, extended resources too.
* A node is over-utilised if any of these is above `high`, and under-utilised if all are at or below `low`.
  With `aroundMean` both are distances from the mean of all nodes.
* Pods are moved off a node only after it has been over-utilised for the time `hotFor` without a gap, and only
  until it is no longer over-utilised.
* A destination must be under-utilised, and the pod must not make it over-utilised. So a pod that is too
  large for every under-utilised node stays, and if no node is under-utilised every pod stays.
* Leaving and young nodes are neither source nor destination. If a pod fits only there, the refusal says so.

The pod whose move evens out most goes first. The measure is the sum of squared distances from the mean; it is
calculated again after every move. Destinations are ordered by how much the move evens out, together with
kube-scheduler's points except those for resources.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple

import msgspec
import numpy as np

from reberth.cluster.columns import Bools, Indices, Ints
from reberth.cluster.pods.requests import CPU, MEMORY, write_amount
from reberth.forecast.plugins.node_resources import resource_column
from reberth.forecast.state.view import View
from reberth.values.duration import Duration, Percentage
from reberth.values.refusal import Refused
from rescheduler.model.plan import UNDER_UTILISED_NODES
from rescheduler.model.plan_memory import PlanMemory, find_beginnings
from rescheduler.observe.node_eligibility import ONLY_LEAVING
from rescheduler.observe.prospects import Prospect
from rescheduler.observe.utilisation import Bounds, Shares, find_usable_nodes, set_bounds
from rescheduler.observe.view_cache import ViewCache
from rescheduler.policies.balance import Balance, find_balance
from rescheduler.policies.headroom import Headroom
from rescheduler.policies.proposal import PolicySection, Promises, Proposal, Proposals

_TOO_LARGE = Refused("NoBetterNode", "no under-utilised node has room for the pod below its `high` threshold")
# Chosen so that moving half of the load of a full node onto an empty one promises 100 points.
_POINTS = 200.0
# More than a pod can add on any node that has room for it.
_NO_ROOM = 4.0

# Differences of fewer digits do not count, so that equal nodes keep the order of their names.
_DIGITS = 2
_OF_RESOURCES = ("NodeResourcesFit", "NodeResourcesBalancedAllocation")
_NONE_COLD = Refused("NoBetterNode", "no node is under-utilised")


class UtilisationSettings(PolicySection, frozen=True):
    """When a node is over-utilised, and when it is under-utilised."""

    low: dict[str, Percentage] = msgspec.field(
        default_factory=lambda: {CPU: Percentage(0.3), MEMORY: Percentage(0.3)}
    )
    """A node is under-utilised if the requested share of every resource is at most this."""
    high: dict[str, Percentage] = msgspec.field(
        default_factory=lambda: {CPU: Percentage(0.75), MEMORY: Percentage(0.75)}
    )
    """A node is over-utilised if the requested share of any resource is above this; as in `low`."""
    around_mean: bool = False
    """Interpret `low` and `high` as distances below and above the mean of all nodes."""
    hot_for: Duration = Duration(5 * 60)
    """A node must be over-utilised for this time without a gap before a pod is moved off it."""

    def __post_init__(self) -> None:
        if set(self.low) != set(self.high):
            raise ValueError("low and high must name the same resources")
        if not self.around_mean and any(self.low[name] > self.high[name] for name in self.low):
            raise ValueError("low must not be above high")


class _Sizes(NamedTuple):
    """The distinct requests, as [resource, size], and the size of each template's pods."""

    requests: Ints
    of_template: Ints


@dataclass(frozen=True, eq=False)
class UnderUtilisedNodes:
    """The policy on one snapshot: the thresholds stay the same while the plan moves pods."""

    bounds: Bounds
    hot: Bools  # for long enough when the plan began
    cold: Bools
    begun: View
    name: str = UNDER_UTILISED_NODES
    causes: tuple[str, ...] = (UNDER_UTILISED_NODES,)
    _known: ViewCache[Bools] = field(default_factory=ViewCache, repr=False)
    _rooms: ViewCache[Bools] = field(default_factory=ViewCache, repr=False)
    _balances: ViewCache[Balance] = field(default_factory=ViewCache, repr=False)

    def propose(self, view: View) -> Iterator[Proposals]:
        hot = self._find_hot(view)
        if not hot.any():
            return
        pods = np.flatnonzero(view.counted & hot[view.node]).astype(np.int32)
        pods = pods[self._ask_too_much(view, pods)]
        describe = partial(self._describe, view)
        yield Proposals(UNDER_UTILISED_NODES, UNDER_UTILISED_NODES, pods, self.weigh(pods, view), describe)

    def weigh(self, pods: Indices, view: View) -> Promises:
        """Tell how much each move would even out, to the node where it adds least imbalance."""
        asks = _requests(view, self.bounds.resources, pods)
        relief = self._measure(view).measure_relief(asks, view.node[pods])
        promises: Promises = _POINTS * (relief - self._find_least_burdens(view, pods))
        return promises

    def find_due(self, _cause: str, pods: Indices, view: View) -> Bools:
        return self._find_hot(view)[view.node[pods]]

    def refuse(self, proposal: Proposal, view: View) -> Refused | None:
        if self.cold.any() and self._has_room(proposal.pod, view).any():
            return None
        leaving = self._cold_but_leaving
        if len(leaving) and self._find_room(leaving, proposal.pod, view).any():
            return ONLY_LEAVING
        return _TOO_LARGE if self.cold.any() else _NONE_COLD

    def choose(self, proposal: Proposal, prospect: Prospect) -> Bools:
        del proposal
        return self._has_room(prospect.place, prospect.view)[prospect.nodes]

    def prefer(self, proposal: Proposal, prospect: Prospect) -> Promises:
        """Rate by kube-scheduler's points, but replace those for resources by how much the move evens out."""
        ask = _requests(prospect.view, self.bounds.resources, np.array([proposal.pod]))[:, 0]
        burdens = self._measure(prospect.view).measure_burdens(ask)[prospect.nodes]
        scores = prospect.scores
        points = scores.totals - sum(scores.plugins.get(name, 0) for name in _OF_RESOURCES)
        preferred: Promises = np.round(points - _POINTS * burdens, _DIGITS)
        return preferred

    def _has_room(self, pod: int, view: View) -> Bools:
        """Tell which under-utilised nodes would stay below `high` with the pod."""
        return self._rooms.once(view, pod, lambda: self._find_room(self._fitting.nodes, pod, view))

    def _find_room(self, nodes: Indices, pod: int, view: View) -> Bools:
        fits = np.zeros(view.facts.size, np.bool_)
        after = self.bounds.uses(view)[:, nodes] + _requests(view, self.bounds.resources, np.array([pod]))
        fits[nodes] = np.all(after <= self.bounds.high[:, nodes], axis=0)
        return fits

    def _find_hot(self, view: View) -> Bools:
        return self._known.once(view, "hot", lambda: self.hot & self.bounds.find_hot(view))

    def _ask_too_much(self, view: View, pods: Indices) -> Bools:
        """Tell which pods request a resource of which their node is over-utilised."""
        over = self.bounds.uses(view) > self.bounds.high
        asked: Bools = np.any(
            (_requests(view, self.bounds.resources, pods) > 0) & over[:, view.node[pods]], axis=0
        )
        return asked

    def _find_least_burdens(self, view: View, pods: Indices) -> Shares:
        """Tell how much imbalance each pod adds to the under-utilised node where it adds least."""
        templates = view.facts.snapshot.pods.template[pods]
        sizes, which = _find_used(self._sizes.of_template[templates], self._sizes.requests.shape[1])
        fitting, balance = self._fitting, self._measure(view)
        burdens = balance.compare(balance.largest[fitting.nodes], fitting.fill(sizes, view))
        least: Shares = burdens.min(axis=1, initial=_NO_ROOM)[which]
        return least

    @cached_property
    def _cold_but_leaving(self) -> Indices:
        """List leaving and young nodes that would otherwise be under-utilised."""
        going = self.bounds.find_little_used(self.begun) & ~find_usable_nodes(self.begun.facts).usable
        return np.flatnonzero(going).astype(np.int32)

    @cached_property
    def _fitting(self) -> Headroom:
        cold = np.flatnonzero(self.cold).astype(np.int32)
        return Headroom(self.bounds, self.begun, cold, self._sizes.requests)

    @cached_property
    def _sizes(self) -> "_Sizes":
        """Find the distinct requests of all pods."""
        templates = np.arange(len(self.begun.facts.snapshot.templates.all))
        asked = _requests_of(self.begun, self.bounds.resources, templates)
        of_template = np.zeros(len(templates), np.int64)
        for row in asked:
            _, code = np.unique(row, return_inverse=True)
            _, of_template = np.unique(of_template * len(templates) + code, return_inverse=True)
        requests = np.zeros((len(asked), int(of_template.max(initial=-1)) + 1), np.int64)
        requests[:, of_template] = asked
        return _Sizes(requests, of_template)

    def _measure(self, view: View) -> Balance:
        return self._balances.once(view, "balance", lambda: find_balance(self.bounds, view))

    def _describe(self, view: View, pod: int) -> str:
        bounds, node = self.bounds, int(view.node[pod])
        used, high = bounds.uses(view)[:, node], bounds.high[:, node]
        over = [
            f"{write_amount(name, int(used[place]))} of {name}, above {write_amount(name, int(high[place]))}"
            for place, name in enumerate(bounds.resources)
            if used[place] > high[place]
        ]
        return f"its node is over-utilised: {', '.join(over)}"


def begin(
    view: View, settings: UtilisationSettings, memory: PlanMemory | None
) -> tuple[UnderUtilisedNodes, dict[str, float]]:
    """Begin a cycle: give the policy, and since when each over-utilised node has been so."""
    low, high = (settings.low, settings.high) if settings.is_on else ({}, {})
    bounds = set_bounds(view, low, high, around_mean=settings.around_mean)
    names = view.nodes.names
    hot, long_hot = np.flatnonzero(bounds.find_hot(view)).tolist(), np.zeros(len(names), np.bool_)
    now, before = view.facts.snapshot.now, memory.hot_since if memory else None
    since = find_beginnings((names[node] for node in hot), before, now=now)
    long_hot[hot] = [now - each >= settings.hot_for for each in since.values()]
    usable = find_usable_nodes(view.facts).usable
    return UnderUtilisedNodes(bounds, long_hot & usable, bounds.find_cold(view) & ~long_hot, view), since


def _find_used(numbers: Ints, most: int) -> tuple[Ints, Ints]:
    """Give the distinct numbers in order, and for each number its place among them."""
    occurs = np.zeros(most, np.bool_)
    occurs[numbers] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[numbers]


def _requests(view: View, resources: tuple[str, ...], pods: Indices) -> Ints:
    """Give what pods request of the resources, as [resource, pod]."""
    return _requests_of(view, resources, view.facts.snapshot.pods.template[pods])


def _requests_of(view: View, resources: tuple[str, ...], templates: Ints | Indices) -> Ints:
    """Give what pods of these templates request of the resources, as [resource, template]."""
    amounts = view.facts.snapshot.templates
    rows = [
        np.zeros(len(templates), np.int64) if found is None else found[templates]
        for found in (resource_column(amounts.requests, name) for name in resources)
    ]
    return np.array(rows, np.int64).reshape(len(rows), len(templates))
