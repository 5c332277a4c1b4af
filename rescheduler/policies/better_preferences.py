"""To a node that meets more of the pod's preferences.

* Preferences are those that the pod itself states: preferred node affinity, preferred pod affinity and
  anti-affinity, and spread constraints with ScheduleAnyway. They count as kube-scheduler's own plugins score
  and weigh them.
* A destination must be feasible, have room, and meet the preferences better than the pod's own node.
* The whole of kube-scheduler's total must be better there, too: a preference that its other points outweigh
  moves nobody, for the pod would not stay.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from reberth.columns import Bools, Ints
from reberth.landing.asking import Asked, ask_next
from reberth.landing.plugins import FILTERS, SCORES
from reberth.landing.profiles import DEFAULT_SCHEDULER, Profile, Scheduler
from reberth.landing.verdicts import Refusal, Rejected
from reberth.landing.viewing import View
from reberth.records import PodSpec
from reberth.refusals import Refused
from reberth.settings import Section
from reberth.templates import Template
from rescheduler.lately import Lately
from rescheduler.policies.proposals import Proposal
from rescheduler.prospects import Prospect
from rescheduler.utilisation import standing

NAME = "betterPreferences"

NODE_AFFINITY, POD_AFFINITY, SPREAD = "NodeAffinity", "InterPodAffinity", "PodTopologySpread"
_WISHES = {
    NODE_AFFINITY: "node affinity",
    POD_AFFINITY: "pod affinity",
    SPREAD: "topology spread",
}
_UNCHANGING = ("NodeUnschedulable", "TaintToleration", "NodeAffinity")
_FULL = Refused("NoBetterNode", "no better node fits")


class PreferenceSettings(Section, frozen=True):
    """Which pods are looked at."""

    enabled: bool = True
    """Whether this policy proposes anything."""
    node_affinity: bool = True
    """Look at preferred node affinity."""
    pod_affinity: bool = True
    """Look at preferred pod affinity and anti-affinity."""
    topology_spread: bool = True
    """Look at the pod's own spread constraints with ScheduleAnyway."""


class _Wishes(NamedTuple):
    """What a template prefers, in points by node; the most that nodes offer, and those that have room."""

    points: Ints
    best: int
    best_now: int


@dataclass(frozen=True, eq=False)
class BetterPreferences:
    """The policy, at work on one snapshot."""

    settings: PreferenceSettings
    scheduler: Scheduler
    name: str = NAME
    _known: Lately[_Wishes | None] = field(default_factory=Lately, repr=False)

    def propose(self, seen: View) -> Iterator[Proposal]:
        ground, pods = seen.ground, seen.ground.snapshot.pods
        for template in ground.templates_where(self._wishes_anything, key=("wishes", self.settings)):
            wishes = self._read(template, seen)
            if wishes is None:
                continue
            alike = seen.counted_among(ground.pods_of([template]))
            better = wishes.best - wishes.points[seen.node[alike]]
            reason = self._say(pods.rows[alike[0]].template) if len(alike) else ""
            for pod, promise in zip(alike[better > 0].tolist(), better[better > 0].tolist(), strict=True):
                yield Proposal(pod, NAME, NAME, reason, float(promise))

    def is_due(self, proposal: Proposal, seen: View) -> bool:
        wishes = self._read(int(seen.ground.snapshot.pods.template[proposal.pod]), seen)
        return wishes is not None and wishes.best > wishes.points[seen.node[proposal.pod]]

    def refuse(self, proposal: Proposal, seen: View) -> Refused | None:
        wishes = self._read(int(seen.ground.snapshot.pods.template[proposal.pod]), seen)
        fits = wishes is not None and wishes.best_now > wishes.points[seen.node[proposal.pod]]
        return None if fits else _FULL

    def choose(self, proposal: Proposal, prospect: Prospect) -> Bools:
        del proposal
        row = prospect.seen.ground.snapshot.pods.rows[prospect.place]
        names = self._list_plugins(row.template.spec)
        rows = [points for name, points in prospect.scores.plugins.items() if name in names]
        points = np.sum([np.zeros(len(prospect.nodes), np.int64), *rows], axis=0)
        chosen: Bools = points > points[np.searchsorted(prospect.nodes, prospect.source)]
        return chosen

    def _read(self, template: int, seen: View) -> _Wishes | None:
        """Give the template's wishes on this view, found once for all its pods."""
        return self._known.once(seen, template, lambda: self._find(template, seen))

    def _find(self, template: int, seen: View) -> _Wishes | None:
        pods = seen.counted_among(seen.ground.pods_of([template]))
        if not len(pods):
            return None
        asked = ask_next(seen.ground, int(pods[0]))
        profile = self.scheduler.profiles.get(asked.template.spec.scheduler_name or DEFAULT_SCHEDULER)
        if profile is None:
            return None
        allowed = standing(seen.ground).usable & ~_refuse(asked, seen, profile, _UNCHANGING)
        fits = allowed & ~_refuse(asked, seen, profile, ("NodeResourcesFit",))
        points = _score(asked, seen, profile, self._list_plugins(asked.template.spec))
        return (
            None if points is None else _Wishes(points, _find_most(points, allowed), _find_most(points, fits))
        )

    def _wishes_anything(self, template: Template) -> bool:
        return bool(self._list_plugins(template.spec))

    def _list_plugins(self, spec: PodSpec) -> tuple[str, ...]:
        """Name the plugins that know of a preference of the pod's own."""
        return tuple(name for name in _prefers(spec) if _is_on(self.settings, name))

    def _say(self, template: Template) -> str:
        wishes = " and ".join(_WISHES[name] for name in self._list_plugins(template.spec))
        return f"other nodes meet more of its preferred {wishes}"


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


def _find_most(points: Ints, nodes: Bools) -> int:
    return int(points[nodes].max(initial=0))


def _refuse(asked: Asked, seen: View, profile: Profile, plugins: tuple[str, ...]) -> Bools:
    refused = np.zeros(seen.ground.size, np.bool_)
    for name in plugins:
        verdict = FILTERS[name](asked, seen, profile) if name in profile.filters else ()
        for refusal in verdict:
            if not isinstance(refusal, Refusal):
                return np.ones(seen.ground.size, np.bool_)
            refused |= refusal.nodes
    return refused


def _score(asked: Asked, seen: View, profile: Profile, plugins: tuple[str, ...]) -> Ints | None:
    everywhere = np.arange(seen.ground.size, dtype=np.int32)
    points = np.zeros(seen.ground.size, np.int64)
    for name, weight in profile.scores:
        found = SCORES[name](asked, seen, everywhere, profile) if name in plugins else None
        if isinstance(found, Rejected):
            return None
        if found is not None:
            points += weight * found
    return points
