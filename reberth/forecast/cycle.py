"""One scheduling cycle for one pod: which nodes are feasible, and how each of them scores.

Each filter looks at all nodes at once. A node's reasons are those of the first plugin that refuses it, since
kube-scheduler stops there; a pod that a PreFilter plugin rejects is refused by every node.

kube-scheduler:
* `pkg/scheduler/schedule_one.go`: `(*Scheduler).findNodesThatFitPod`, `prioritizeNodes`
* `pkg/scheduler/framework/runtime/framework.go`: `(*frameworkImpl).RunPreFilterPlugins`,
  `(*frameworkImpl).RunFilterPluginsWithNominatedPods`, `addGENominatedPods`,
  `(*frameworkImpl).RunScorePlugins`
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from reberth.cluster.columns import Bools, Indices, Ints
from reberth.forecast.plugin_registry import FILTERS, SCORES
from reberth.forecast.plugins.inter_pod_affinity import skips_inter_pod_affinity
from reberth.forecast.plugins.node_rules import prefilter_node_affinity
from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.forecast.state.profile import Profile
from reberth.forecast.state.verdict import FITS, FilterVerdict, Refusal, Rejected, Unforeseeable
from reberth.forecast.state.view import View

T = TypeVar("T")
_Weighted = tuple[str, int]

# The only plugin for which it matters whether a pod is terminating.
# `pkg/scheduler/framework/plugins/podtopologyspread/common.go`: `countPodsMatchSelector`
_SEES_TERMINATING = "PodTopologySpread"
# The scores of these do not change when a terminating pod is gone; those of the next only on the pod's node.
_UNCHANGED_BY_END = frozenset({"TaintToleration", "NodeAffinity", "ImageLocality", _SEES_TERMINATING})
_CHANGED_ON_ONE_NODE = frozenset({"NodeResourcesFit", "NodeResourcesBalancedAllocation"})


class Feasibility(NamedTuple):
    """Which nodes pass the filters, and why each of the others is refused."""

    fits: Bools
    refusals: tuple[Refusal, ...]


class NodeScores(NamedTuple):
    """The weighted scores of some nodes by plugin; a plugin that skips the pod is absent."""

    nodes: Indices
    plugins: Mapping[str, Ints]
    totals: Ints


class PluginScorer(NamedTuple):
    """Runs score plugins, each given with its weight."""

    incoming: IncomingPod
    view: View
    profile: Profile

    def __call__(self, plugin: _Weighted, nodes: Indices) -> Ints | Rejected | None:
        name, weight = plugin
        scores = SCORES[name](self.incoming, self.view, nodes, self.profile)
        return scores * weight if weight != 1 and isinstance(scores, np.ndarray) else scores

    def again(
        self, plugin: _Weighted, before: NodeScores, nodes: Indices, node: int
    ) -> Ints | Rejected | None:
        """Rerun a plugin only as far as the end of a pod on this node can change its scores."""
        known = before.plugins.get(plugin[0])
        if plugin[0] in _UNCHANGED_BY_END and nodes is before.nodes:
            return known
        if plugin[0] not in _CHANGED_ON_ONE_NODE or known is None:
            return self(plugin, nodes)
        there = self(plugin, np.array([node], np.int32))
        return _put(known, nodes, node, there) if isinstance(there, np.ndarray) else there


def run_filters(
    incoming: IncomingPod, view: View, profile: Profile, *, among: Container[str]
) -> Feasibility | Rejected | Unforeseeable:
    """Run all filters. `among` are the scheduler's profiles: nominated pods of these count."""
    verdicts = _share(incoming, view, profile, partial(_ask_filters, incoming, view, profile), "filters")
    if _SEES_TERMINATING in verdicts:
        verdicts = {**verdicts, _SEES_TERMINATING: FILTERS[_SEES_TERMINATING](incoming, view, profile)}
    for name in (*profile.pre_filters, *profile.filters):
        verdict = verdicts[name]
        if isinstance(verdict, Rejected | Unforeseeable):
            return verdict
    started = _start(incoming, view, profile)
    found = _sift(started, [verdicts[name] for name in profile.filters])
    for node in filter(started.fits.__getitem__, view.nominated):
        refusals = tuple(_refuse_with_nominated(incoming, view, profile, node, among))
        found = _replace(found, refusals, node) if refusals else found
    return found


def run_scores(incoming: IncomingPod, view: View, profile: Profile, nodes: Indices) -> NodeScores | Rejected:
    """Score these nodes, and normalize the scores among them."""
    ask = PluginScorer(incoming, view, profile)
    shared = _share(incoming, view, profile, partial(_ask_scores, ask, nodes), nodes)
    found = {
        plugin: ask(plugin, nodes) if plugin[0] == _SEES_TERMINATING else shared[plugin]
        for plugin in profile.scores
    }
    return _gather(nodes, found)


def rerun_scores(ask: PluginScorer, before: NodeScores, nodes: Indices, node: int) -> NodeScores | Rejected:
    """Score nodes again when the pod that terminated on one of them is gone; that node may be new."""
    return _gather(nodes, {plugin: ask.again(plugin, before, nodes, node) for plugin in ask.profile.scores})


def _put(known: Ints, nodes: Indices, node: int, there: Ints) -> Ints:
    """Put the score of one node in the place of its known score, or insert it."""
    place = int(np.searchsorted(nodes, node))
    after = place + len(known) - len(nodes) + 1
    return np.concatenate((known[:place], there, known[after:]))


def _gather(nodes: Indices, found: Mapping[_Weighted, Ints | Rejected | None]) -> NodeScores | Rejected:
    """Sum the scores, unless one of the plugins rejects the pod."""
    plugins: dict[str, Ints] = {}
    for (name, _), scores in found.items():
        if isinstance(scores, Rejected):
            return scores
        if scores is not None:
            plugins[name] = scores
    return NodeScores(nodes, plugins, sum(plugins.values(), np.zeros(len(nodes), np.int64)))


def _share(
    incoming: IncomingPod, view: View, profile: Profile, ask: Callable[[], T], about: str | Indices
) -> T:
    """Share the answer among a controller's replicas while no pod has moved: only who terminates differs."""
    if not view.is_unmoved:
        return ask()
    what = about if isinstance(about, str) else about.tobytes()
    return view.facts.once_recently((what, incoming.template, incoming.own, profile.name), ask)


def _ask_filters(incoming: IncomingPod, view: View, profile: Profile) -> dict[str, FilterVerdict]:
    names = dict.fromkeys((*profile.pre_filters, *profile.filters))
    return {
        name: FITS if name == _SEES_TERMINATING else FILTERS[name](incoming, view, profile) for name in names
    }


def _ask_scores(ask: PluginScorer, nodes: Indices) -> dict[_Weighted, Ints | Rejected | None]:
    return {plugin: ask(plugin, nodes) for plugin in ask.profile.scores if plugin[0] != _SEES_TERMINATING}


def _start(incoming: IncomingPod, view: View, profile: Profile) -> Feasibility:
    """Begin with all nodes, or with those that PreFilter leaves: only NodeAffinity narrows them.

    `pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go`: `(*NodeAffinity).PreFilter`;
    `pkg/scheduler/schedule_one.go`: `(*Scheduler).findNodesThatFitPod`
    """
    narrowed = prefilter_node_affinity(incoming, view) if "NodeAffinity" in profile.pre_filters else None
    if narrowed is None:
        return Feasibility(np.ones(view.facts.size, np.bool_), ())
    reason = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
    return Feasibility(narrowed, (Refusal(reason, ~narrowed, final=True),))


def _sift(started: Feasibility, verdicts: Iterable[FilterVerdict]) -> Feasibility:
    """Let each plugin refuse among the nodes that the plugins before it have left."""
    fits, refusals = started.fits, list(started.refusals)
    for verdict in verdicts:
        left = fits
        for refusal in _refusals_of(verdict):
            nodes = refusal.nodes & left
            if nodes.any():
                refusals.append(refusal._replace(nodes=nodes))
                fits = fits & ~nodes
    return Feasibility(fits, tuple(refusals))


def _refusals_of(verdict: FilterVerdict) -> tuple[Refusal, ...]:
    return () if isinstance(verdict, Rejected | Unforeseeable) else verdict


def _counts_as_nominated(incoming: IncomingPod, view: View, pod: int, among: Container[str]) -> bool:
    row = view.facts.snapshot.pods.rows[pod]
    is_another = row.uid != incoming.uid or incoming.is_expected
    scheduler = row.template.spec.scheduler_name or "default-scheduler"
    return is_another and scheduler in among and row.template.priority >= incoming.priority


def _refuse_with_nominated(
    incoming: IncomingPod, view: View, profile: Profile, node: int, among: Container[str]
) -> Iterator[Refusal]:
    """Give the reasons why a node would be refused if the pods nominated for it were already there.

    Nominated pods of equal or higher priority count. kube-scheduler filters with them first: if that refuses
    the node, its reasons are the only ones.
    `pkg/scheduler/framework/runtime/framework.go`: `(*frameworkImpl).RunFilterPluginsWithNominatedPods`
    """
    nominated = [pod for pod in view.nominated[node] if _counts_as_nominated(incoming, view, pod, among)]
    fuller = view
    for pod in nominated:
        fuller = fuller.with_nominated(pod, node)
    for name in _filters_with_nominated(incoming, view, profile) if nominated else ():
        verdict = FILTERS[name](incoming, fuller, profile)
        if isinstance(verdict, Rejected):
            yield Refusal(verdict.reason, np.ones(view.facts.size, np.bool_))
        refused = [refusal for refusal in _refusals_of(verdict) if refusal.nodes[node]]
        yield from refused
        if refused:
            return


def _filters_with_nominated(incoming: IncomingPod, view: View, profile: Profile) -> tuple[str, ...]:
    """Leave out InterPodAffinity if PreFilter skipped it: a skipped plugin does not see nominated pods."""
    if "InterPodAffinity" in profile.filters and skips_inter_pod_affinity(incoming, view):
        return tuple(name for name in profile.filters if name != "InterPodAffinity")
    return profile.filters


def _replace(found: Feasibility, refusals: Iterable[Refusal], node: int) -> Feasibility:
    """Let a node be refused only for these reasons."""
    only = np.arange(len(found.fits)) == node
    kept = (refusal._replace(nodes=refusal.nodes & ~only) for refusal in found.refusals)
    more = (refusal._replace(nodes=only) for refusal in refusals)
    return Feasibility(found.fits & ~only, (*kept, *more))
