"""One cycle of kube-scheduler for one pod: which nodes are feasible, and what each of them scores.

All filters look at all nodes at once. A node's reasons are those of the first plugin that refuses it, since
kube-scheduler asks no further; a pod that a plugin turns away beforehand is turned away everywhere.
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

# The only plugin that cares which of the pods are leaving.
_SEES_LEAVING = "PodTopologySpread"
# To these a pod that is leaving is as good as gone, and these see it on its own node alone.
_SEES_NO_END = frozenset({"TaintToleration", "NodeAffinity", "ImageLocality", _SEES_LEAVING})
_SEES_ONE_NODE = frozenset({"NodeResourcesFit", "NodeResourcesBalancedAllocation"})


class Feasibility(NamedTuple):
    """Which nodes the filters leave, and who refuses each of the others for which reasons."""

    fits: Bools
    refusals: tuple[Refusal, ...]


class NodeScores(NamedTuple):
    """The weighted scores of some nodes, plugin by plugin; a plugin that has nothing to say is absent."""

    nodes: Indices
    plugins: Mapping[str, Ints]
    totals: Ints


class PluginScorer(NamedTuple):
    """Asks plugins, which stand with their weights, for weighted scores."""

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
        """Ask only for what the end of a pod on this node may change."""
        known = before.plugins.get(plugin[0])
        if plugin[0] in _SEES_NO_END and nodes is before.nodes:
            return known
        if plugin[0] not in _SEES_ONE_NODE or known is None:
            return self(plugin, nodes)
        there = self(plugin, np.array([node], np.int32))
        return _put(known, nodes, node, there) if isinstance(there, np.ndarray) else there


def run_filters(
    incoming: IncomingPod, view: View, profile: Profile, *, among: Container[str]
) -> Feasibility | Rejected | Unforeseeable:
    """Ask all filters. `among` are the names of the schedulers whose nominated pods count, too."""
    verdicts = _share(incoming, view, profile, partial(_ask_filters, incoming, view, profile), "filters")
    if _SEES_LEAVING in verdicts:
        verdicts = {**verdicts, _SEES_LEAVING: FILTERS[_SEES_LEAVING](incoming, view, profile)}
    for name in (*profile.checks, *profile.filters):
        verdict = verdicts[name]
        if isinstance(verdict, Rejected | Unforeseeable):
            return verdict
    begun = _look_at(incoming, view, profile)
    found = _sift(begun, [verdicts[name] for name in profile.filters])
    for node in filter(begun.fits.__getitem__, view.nominated):
        refusals = tuple(_refuse_beside(incoming, view, profile, node, among))
        found = _replace(found, refusals, node) if refusals else found
    return found


def run_scores(incoming: IncomingPod, view: View, profile: Profile, nodes: Indices) -> NodeScores | Rejected:
    """Score these nodes against one another."""
    ask = PluginScorer(incoming, view, profile)
    shared = _share(incoming, view, profile, partial(_ask_scores, ask, nodes), nodes)
    said = {
        plugin: ask(plugin, nodes) if plugin[0] == _SEES_LEAVING else shared[plugin]
        for plugin in profile.scores
    }
    return _gather(nodes, said)


def rerun_scores(ask: PluginScorer, before: NodeScores, nodes: Indices, node: int) -> NodeScores | Rejected:
    """Score nodes once more when the pod that was leaving one of them is gone; that one may be new."""
    return _gather(nodes, {plugin: ask.again(plugin, before, nodes, node) for plugin in ask.profile.scores})


def _put(known: Ints, nodes: Indices, node: int, there: Ints) -> Ints:
    """Put in what holds of one of the nodes, in the place of what was known of it, if it was."""
    place = int(np.searchsorted(nodes, node))
    after = place + len(known) - len(nodes) + 1
    return np.concatenate((known[:place], there, known[after:]))


def _gather(nodes: Indices, said: Mapping[_Weighted, Ints | Rejected | None]) -> NodeScores | Rejected:
    """Add up what was said, unless one of the plugins turns the pod away."""
    plugins: dict[str, Ints] = {}
    for (name, _), scores in said.items():
        if isinstance(scores, Rejected):
            return scores
        if scores is not None:
            plugins[name] = scores
    return NodeScores(nodes, plugins, sum(plugins.values(), np.zeros(len(nodes), np.int64)))


def _share(
    incoming: IncomingPod, view: View, profile: Profile, ask: Callable[[], T], about: str | Indices
) -> T:
    """Ask once for all replicas of an owner where nothing has moved: they differ in who is leaving alone."""
    if not view.is_unmoved:
        return ask()
    what = about if isinstance(about, str) else about.tobytes()
    return view.facts.lately((what, incoming.template, incoming.own, profile.name), ask)


def _ask_filters(incoming: IncomingPod, view: View, profile: Profile) -> dict[str, FilterVerdict]:
    names = dict.fromkeys((*profile.checks, *profile.filters))
    return {name: FITS if name == _SEES_LEAVING else FILTERS[name](incoming, view, profile) for name in names}


def _ask_scores(ask: PluginScorer, nodes: Indices) -> dict[_Weighted, Ints | Rejected | None]:
    return {plugin: ask(plugin, nodes) for plugin in ask.profile.scores if plugin[0] != _SEES_LEAVING}


def _look_at(incoming: IncomingPod, view: View, profile: Profile) -> Feasibility:
    """Begin with all nodes, or with those that the pod names."""
    narrowed = prefilter_node_affinity(incoming, view) if "NodeAffinity" in profile.checks else None
    if narrowed is None:
        return Feasibility(np.ones(view.facts.size, np.bool_), ())
    reason = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
    return Feasibility(narrowed, (Refusal(reason, ~narrowed, final=True),))


def _sift(begun: Feasibility, verdicts: Iterable[FilterVerdict]) -> Feasibility:
    """Let each plugin refuse from what those before it have left."""
    fits, refusals = begun.fits, list(begun.refusals)
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


def _is_rival(incoming: IncomingPod, view: View, pod: int, among: Container[str]) -> bool:
    row = view.facts.snapshot.pods.rows[pod]
    is_another = row.uid != incoming.uid or incoming.is_next
    scheduler = row.template.spec.scheduler_name or "default-scheduler"
    return is_another and scheduler in among and row.template.priority >= incoming.priority


def _refuse_beside(
    incoming: IncomingPod, view: View, profile: Profile, node: int, among: Container[str]
) -> Iterator[Refusal]:
    """Give the reasons why a node would be refused if the pods that are nominated for it were on it already.

    Those that are no less important count. kube-scheduler filters with them first: then these reasons hold,
    and no others.
    """
    rivals = [pod for pod in view.nominated[node] if _is_rival(incoming, view, pod, among)]
    fuller = view
    for pod in rivals:
        fuller = fuller.with_pod_on(pod, node)
    for name in _filters_beside(incoming, view, profile) if rivals else ():
        verdict = FILTERS[name](incoming, fuller, profile)
        if isinstance(verdict, Rejected):
            yield Refusal(verdict.reason, np.ones(view.facts.size, np.bool_))
        refused = [refusal for refusal in _refusals_of(verdict) if refusal.nodes[node]]
        yield from refused
        if refused:
            return


def _filters_beside(incoming: IncomingPod, view: View, profile: Profile) -> tuple[str, ...]:
    """What had nothing to say of the cluster without the rivals is not asked again."""
    if "InterPodAffinity" in profile.filters and skips_inter_pod_affinity(incoming, view):
        return tuple(name for name in profile.filters if name != "InterPodAffinity")
    return profile.filters


def _replace(found: Feasibility, refusals: Iterable[Refusal], node: int) -> Feasibility:
    """Let a node be refused for these reasons, and for no others."""
    only = np.arange(len(found.fits)) == node
    kept = (refusal._replace(nodes=refusal.nodes & ~only) for refusal in found.refusals)
    more = (refusal._replace(nodes=only) for refusal in refusals)
    return Feasibility(found.fits & ~only, (*kept, *more))
