"""Utilisation of nodes by the requests of their pods, and the thresholds.

Only usable nodes count: a leaving or young node is neither over- nor under-utilised. Requests of terminating
pods do not count either, since they are about to be freed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reberth.cluster.columns import Bools, Indices, Ints, seal
from reberth.cluster.node_lifecycle import LeavingNode
from reberth.cluster.pods.requests import CPU, MEMORY
from reberth.forecast.plugins.node_resources import resource_column
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.view import View
from rescheduler.observe.view_cache import ViewCache

Shares = NDArray[np.float64]

# A node without a resource has no threshold for it: no amount reaches this one.
_ENDLESS = 2**53


class UsableNodes(NamedTuple):
    """Which nodes are usable as source or destination, and which are leaving."""

    usable: Bools
    leaving: Bools
    nodes: Indices  # the places of the usable ones


@dataclass(frozen=True, eq=False)
class Bounds:
    """The thresholds as amounts, as [resource, node]."""

    resources: tuple[str, ...]
    low: Ints
    high: Ints
    part: Shares  # what share of a node one unit is; 0 if the node does not count
    endless: Shares  # allocatable amounts; infinite for a resource that a node does not have
    _known: ViewCache[Ints] = field(default_factory=ViewCache, repr=False)

    def uses(self, view: View) -> Ints:
        """Give the requests of the resources, as [resource, node]."""
        return self._known.once(view, "uses", lambda: _rows(view, self.resources, offered=False))

    def find_hot(self, view: View) -> Bools:
        """Find the usable nodes that are over-utilised in any resource."""
        hot: Bools = np.any(self.uses(view) > self.high, axis=0)
        return np.logical_and(hot, find_usable_nodes(view.facts).usable)

    def find_cold(self, view: View) -> Bools:
        """Find the usable nodes that are under-utilised in all resources."""
        return self.find_little_used(view) & find_usable_nodes(view.facts).usable

    def find_little_used(self, view: View) -> Bools:
        """Find the same among all nodes, also leaving ones."""
        little: Bools = np.all(self.uses(view) <= self.low, axis=0)
        return little


def find_usable_nodes(facts: SnapshotFacts) -> UsableNodes:
    """Find the usable nodes and the leaving ones."""
    return facts.once("standing", lambda: _judge(facts))


def shares(view: View, resource: str) -> Shares:
    """Give the requests of a resource as a share of each node; 0 if the node does not have it."""
    return _divide(view, resource, slice(None))


def set_bounds(
    view: View, low: Mapping[str, float], high: Mapping[str, float], *, around_mean: bool
) -> Bounds:
    """Convert shares into amounts; around the mean, they are distances from the mean share of all nodes."""
    resources = tuple(sorted(high))
    lows, highs = [], []
    for name in resources:
        offered = _column(view, name, offered=True)
        mean = _mean(view, name, offered) if around_mean else 0.0
        floor, ceiling = (mean - low[name], mean + high[name]) if around_mean else (low[name], high[name])
        lows.append(_amounts(offered, max(floor, 0.0)))
        highs.append(_amounts(offered, min(ceiling, 1.0)))
    offered = _rows(view, resources, offered=True)
    counted = (offered > 0) & find_usable_nodes(view.facts).usable
    part = np.divide(1.0, offered, out=np.zeros(offered.shape), where=counted)
    size = view.facts.size
    endless = np.where(offered > 0, offered, np.inf)
    return Bounds(resources, seal(_stack(lows, size)), seal(_stack(highs, size)), seal(part), seal(endless))


def list_shares(view: View, nodes: Indices, resources: Iterable[str]) -> list[dict[str, float]]:
    """Give the requests on these nodes in percent, of cpu, memory and these resources."""
    names = sorted({CPU, MEMORY, *resources})
    columns = [(100 * _divide(view, name, nodes)).tolist() for name in names]
    return [
        {name: round(share, 1) for name, share in zip(names, each, strict=True)}
        for each in zip(*columns, strict=True)
    ]


def measure_excess(view: View, bounds: Bounds) -> float:
    """Add up the requests beyond the thresholds, as shares of a node."""
    over = np.maximum(bounds.uses(view) - bounds.high, 0)
    return float((over * bounds.part).sum())


def measure_spread(view: View) -> float:
    """Give the standard deviation over the nodes of the larger share, of cpu or memory."""
    larger = view.by_node("larger share", _find_larger, find_usable_nodes(view.facts).nodes)
    return float(larger.std()) if len(larger) else 0.0


def _find_larger(view: View, nodes: Indices) -> Shares:
    return np.maximum(*(_divide(view, name, nodes) for name in (CPU, MEMORY)))


def count_on_leaving(view: View) -> int:
    """Count the pods on leaving nodes."""
    leaving = find_usable_nodes(view.facts).leaving
    return int(leaving[view.node[view.counted]].sum())


def _judge(facts: SnapshotFacts) -> UsableNodes:
    usable = np.array([verdict is None for verdict in facts.lifecycles], np.bool_)
    leaving = np.array([isinstance(verdict, LeavingNode) for verdict in facts.lifecycles], np.bool_)
    return UsableNodes(seal(usable), seal(leaving), seal(np.flatnonzero(usable).astype(np.int32)))


def _divide(view: View, resource: str, nodes: Indices | slice) -> Shares:
    """Give the requests of a resource as a share of these nodes."""
    offered = _column(view, resource, offered=True)[nodes]
    used = _column(view, resource, offered=False)[nodes]
    return np.divide(used, offered, out=np.zeros(len(used)), where=offered > 0)


def _column(view: View, resource: str, *, offered: bool) -> Ints:
    found = resource_column(view.nodes.allocatable if offered else view.requested, resource)
    if found is None:
        return np.zeros(view.facts.size, np.int64)
    return found if offered else found - _find_leaving(view.facts, resource)


def _find_leaving(facts: SnapshotFacts, resource: str) -> Ints:
    """Give what terminating pods still request: it must not cause more moves off their node."""
    return facts.once(("leaving", resource), lambda: _add_up_leaving(facts, resource))


def _add_up_leaving(facts: SnapshotFacts, resource: str) -> Ints:
    snapshot = facts.snapshot
    pods = snapshot.pods
    leaving = np.flatnonzero(pods.counted & pods.terminating)
    requests = resource_column(snapshot.templates.requests, resource)
    total = np.zeros(facts.size, np.int64)
    if requests is not None:
        np.add.at(total, pods.node[leaving], requests[pods.template[leaving]])
    return seal(total)


def _stack(columns: list[Ints], size: int) -> Ints:
    return np.array(columns, np.int64).reshape(len(columns), size)


def _rows(view: View, resources: tuple[str, ...], *, offered: bool) -> Ints:
    found = [_column(view, name, offered=offered) for name in resources]
    return _stack(found, view.facts.size)


def _mean(view: View, resource: str, offered: Ints) -> float:
    """Give the mean share of the nodes that have the resource, regardless of their sizes."""
    counted = find_usable_nodes(view.facts).usable & (offered > 0)
    return float(shares(view, resource)[counted].mean()) if counted.any() else 0.0


def _amounts(offered: Ints, share: float) -> Ints:
    amounts: Ints = np.floor(offered * share + 1e-6).astype(np.int64)
    return np.where(offered > 0, amounts, _ENDLESS)
