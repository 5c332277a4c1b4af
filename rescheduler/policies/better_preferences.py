"""Policy betterPreferences: moves pods to nodes that meet more of their preferences.

* Preferences are those in the pod's spec: preferred node affinity, preferred pod affinity and anti-affinity,
  and topology spread constraints with ScheduleAnyway. They count as kube-scheduler's plugins score them.
* A destination must be feasible, have room, and meet the preferences better than the source node. It must
  not be leaving; if only leaving nodes would be better, the refusal says so.
* kube-scheduler's total must be higher there, too. If its other points outweigh the preference,
  kube-scheduler would not choose the destination.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
import numpy as np

from reberth.cluster.columns import Bools, Indices, Ints, group_codes, seal
from reberth.cluster.templates import Template
from reberth.forecast.plugin_registry import FILTERS, SCORES
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.incoming_pod import IncomingPod, read_bound_pod
from reberth.forecast.state.profile import DEFAULT_SCHEDULER, KubeScheduler, Profile
from reberth.forecast.state.verdict import Refusal, Rejected
from reberth.forecast.state.view import View
from reberth.records import PodSpec
from reberth.values.refusal import Refused
from rescheduler.model.plan import BETTER_PREFERENCES
from rescheduler.observe.node_eligibility import ONLY_LEAVING
from rescheduler.observe.prospects import Prospect
from rescheduler.observe.utilisation import find_usable_nodes
from rescheduler.observe.view_cache import ViewCache
from rescheduler.policies.proposal import PolicySection, Promises, Proposal, Proposals

NODE_AFFINITY, POD_AFFINITY, SPREAD = "NodeAffinity", "InterPodAffinity", "PodTopologySpread"
_PREFERENCES = {
    NODE_AFFINITY: "node affinity",
    POD_AFFINITY: "pod affinity",
    SPREAD: "topology spread",
}
_UNCHANGING = ("NodeUnschedulable", "TaintToleration", "NodeAffinity")
_encode = msgspec.json.Encoder(order="deterministic").encode
_FULL = Refused("NoBetterNode", "no better node has room")


class PreferenceSettings(PolicySection, frozen=True):
    """Which preferences of pods are considered."""

    node_affinity: bool = True
    """Consider preferred node affinity."""
    pod_affinity: bool = True
    """Consider preferred pod affinity and anti-affinity."""
    topology_spread: bool = True
    """Consider the pod's own topology spread constraints with ScheduleAnyway."""


class _Preferences(NamedTuple):
    """The points of a template's preferences for each node, which nodes it may use, and their best points."""

    points: Ints
    allowed: Bools
    best: int


@dataclass(frozen=True, eq=False)
class BetterPreferences:
    """The policy on one snapshot."""

    settings: PreferenceSettings
    scheduler: KubeScheduler
    name: str = BETTER_PREFERENCES
    causes: tuple[str, ...] = (BETTER_PREFERENCES,)
    _known: ViewCache[_Preferences | None] = field(default_factory=ViewCache, repr=False)

    def propose(self, view: View) -> Iterator[Proposals]:
        facts = view.facts
        alike = view.counted_among(facts.pods_of(self._list_templates(facts)))
        promises = self._find_promises(alike, view)
        better = promises > 0
        rows = facts.snapshot.pods.rows
        yield Proposals(
            BETTER_PREFERENCES,
            BETTER_PREFERENCES,
            alike[better],
            promises[better],
            lambda pod: self._describe_move(rows[pod].template),
        )

    def find_due(self, _cause: str, pods: Indices, view: View) -> Bools:
        return self._find_promises(pods, view) > 0

    def weigh(self, _pods: Indices, _seen: View) -> None:
        """The promise of a preference does not change within a plan."""

    def prefer(self, _proposal: Proposal, _prospect: Prospect) -> None:
        """kube-scheduler's points decide."""

    def refuse(self, proposal: Proposal, view: View) -> Refused | None:
        template = int(view.facts.snapshot.pods.template[proposal.pod])
        preferences = self._look_up(self._number(view.facts)[template], template, view)
        if preferences is None:
            return _FULL
        fits = preferences.allowed & ~self._refuse(template, view, ("NodeResourcesFit",))
        better = fits & (preferences.points > preferences.points[view.node[proposal.pod]])
        if (better & find_usable_nodes(view.facts).usable).any():
            return None
        return ONLY_LEAVING if better.any() else _FULL

    def choose(self, proposal: Proposal, prospect: Prospect) -> Bools:
        del proposal
        row = prospect.view.facts.snapshot.pods.rows[prospect.place]
        names = self._list_plugins(row.template.spec)
        rows = [points for name, points in prospect.scores.plugins.items() if name in names]
        points = np.sum([np.zeros(len(prospect.nodes), np.int64), *rows], axis=0)
        chosen: Bools = points > points[np.searchsorted(prospect.nodes, prospect.source)]
        return chosen

    def _find_promises(self, pods: Indices, view: View) -> Promises:
        """Tell how many points the best node has more than the pod's own, for its preferences."""
        templates, promises = view.facts.snapshot.pods.template[pods], np.zeros(len(pods))
        for number, theirs in group_codes(self._number(view.facts)[templates]):
            preferences = self._look_up(number, int(templates[theirs[0]]), view)
            if preferences is not None:
                promises[theirs] = preferences.best - preferences.points[view.node[pods[theirs]]]
        return promises

    def _number(self, facts: SnapshotFacts) -> Indices:
        """Number the preferences: templates with equal preferences about nodes alone share a number."""
        return facts.once(("preferences by number", self.settings), lambda: self._number_all(facts))

    def _number_all(self, facts: SnapshotFacts) -> Indices:
        numbers: dict[Hashable, int] = {}
        found = np.zeros(len(facts.snapshot.templates.all), np.int32)
        for template in self._list_templates(facts):
            key = self._describe(facts.snapshot.templates.all[template]) or template
            found[template] = numbers.setdefault(key, len(numbers))
        return seal(found)

    def _describe(self, template: Template) -> bytes | None:
        """Write down all that the preferences depend on, if they depend on nodes alone."""
        spec, controller = template.spec, template.controller
        is_pinned = controller is not None and controller.kind == "DaemonSet"
        if is_pinned or self._list_plugins(spec) != (NODE_AFFINITY,):
            return None
        affinity = spec.affinity and spec.affinity.node_affinity
        return _encode((spec.scheduler_name, spec.tolerations, spec.node_selector, affinity))

    def _look_up(self, number: int, template: int, view: View) -> _Preferences | None:
        """Give the preferences with a number, found once for all templates that share it."""
        spec = view.facts.snapshot.templates.all[template].spec
        if self._list_plugins(spec) == (NODE_AFFINITY,):
            key = ("preferences met", number, self.settings)
            return view.facts.once(key, lambda: self._find(template, view))
        return self._known.once(view, number, lambda: self._find(template, view))

    def _find(self, template: int, view: View) -> _Preferences | None:
        incoming = _ask(template, view)
        profile = self._find_profile(incoming)
        points = (
            _score(incoming, view, profile, self._list_plugins(incoming.template.spec)) if profile else None
        )
        if points is None:
            return None
        allowed = ~self._refuse(template, view, _UNCHANGING)
        return _Preferences(points, allowed, _find_most(points, allowed))

    def _find_profile(self, incoming: IncomingPod) -> Profile | None:
        return self.scheduler.profiles.get(incoming.template.spec.scheduler_name or DEFAULT_SCHEDULER)

    def _refuse(self, template: int, view: View, plugins: tuple[str, ...]) -> Bools:
        incoming = _ask(template, view)
        profile = self._find_profile(incoming)
        return (
            np.ones(view.facts.size, np.bool_)
            if profile is None
            else _refuse(incoming, view, profile, plugins)
        )

    def _list_templates(self, facts: SnapshotFacts) -> list[int]:
        """List the templates with a preference that is considered."""
        templates = facts.snapshot.templates.all
        found = facts.templates_where(_prefers_anything)
        return [place for place in found if self._list_plugins(templates[place].spec)]

    def _list_plugins(self, spec: PodSpec) -> tuple[str, ...]:
        """Name the plugins that score a preference of the pod."""
        return tuple(name for name in _prefers(spec) if _is_on(self.settings, name))

    def _describe_move(self, template: Template) -> str:
        preferences = " and ".join(_PREFERENCES[name] for name in self._list_plugins(template.spec))
        return f"other nodes meet more of its preferred {preferences}"


def _prefers_anything(template: Template) -> bool:
    return any(_prefers(template.spec))


def _prefers(spec: PodSpec) -> Iterator[str]:
    affinity = spec.affinity
    nodes = affinity and affinity.node_affinity
    sides = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
    if nodes and nodes.preferred_during_scheduling_ignored_during_execution:
        yield NODE_AFFINITY
    if any(side and side.preferred_during_scheduling_ignored_during_execution for side in sides):
        yield POD_AFFINITY
    if any(each.when_unsatisfiable == "ScheduleAnyway" for each in spec.topology_spread_constraints or ()):
        yield SPREAD


def _is_on(settings: PreferenceSettings, plugin: str) -> bool:
    switches = {
        NODE_AFFINITY: settings.node_affinity,
        POD_AFFINITY: settings.pod_affinity,
        SPREAD: settings.topology_spread,
    }
    return switches[plugin]


def _ask(template: int, view: View) -> IncomingPod:
    """Give the next pod of a template, as if it replaced the first one."""
    return read_bound_pod(view.facts, int(view.counted_among(view.facts.pods_of([template]))[0]))


def _find_most(points: Ints, nodes: Bools) -> int:
    return int(points[nodes].max(initial=0))


def _refuse(incoming: IncomingPod, view: View, profile: Profile, plugins: tuple[str, ...]) -> Bools:
    refused = np.zeros(view.facts.size, np.bool_)
    for name in plugins:
        verdict = FILTERS[name](incoming, view, profile) if name in profile.filters else ()
        for refusal in verdict:
            if not isinstance(refusal, Refusal):
                return np.ones(view.facts.size, np.bool_)
            refused |= refusal.nodes
    return refused


def _score(incoming: IncomingPod, view: View, profile: Profile, plugins: tuple[str, ...]) -> Ints | None:
    everywhere = np.arange(view.facts.size, dtype=np.int32)
    points = np.zeros(view.facts.size, np.int64)
    for name, weight in profile.scores:
        found = SCORES[name](incoming, view, everywhere, profile) if name in plugins else None
        if isinstance(found, Rejected):
            return None
        if found is not None:
            points += weight * found
    return points
