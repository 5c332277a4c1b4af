"""Off nodes where pods break rules today that they could not break when they were placed.

* `taints`: the node has a taint, NoSchedule or NoExecute, that the pod does not tolerate.
* `nodeAffinity`: the node no longer matches the pod's nodeSelector or required node affinity.
* `antiAffinity`: another pod in the domain is one that it keeps away, or that keeps it away. Names do not
  matter: two pods of one name in two namespaces are two. Once one of them moves the other stays.
* `topologySpread`: its domain has more than `maxSkew` pods more than the emptiest one, as kube-scheduler
  counts them: pods that may not be moved count like all others, leaving ones do not.
* `duplicates` (off by default): its node has more pods of its owner than if they stood on all nodes alike.

A rule states the gain, since kube-scheduler cannot score a node that it would refuse. A pod leaves only if
some node is feasible for it, so that no rule is broken there. Who breaks a rule most goes first, so that
of three pods the one moves that cannot be with the other two.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Annotated

import msgspec
import numpy as np

from reberth.cluster.columns import Bools, Indices
from reberth.forecast.state.profile import KubeScheduler
from reberth.forecast.state.view import View
from reberth.values.refusal import Refused
from rescheduler.model.plan import BROKEN_RULES
from rescheduler.observe.prospects import Prospect
from rescheduler.policies.proposal import PolicySection, Proposal, Proposals
from rescheduler.policies.rule_checks import count_replicas
from rescheduler.policies.rules import (
    ANTI_AFFINITY,
    DUPLICATES,
    NODE_AFFINITY,
    SPREAD,
    TAINTS,
    SchedulingRules,
)

_REASONS = {
    TAINTS: "its node has a taint that it does not tolerate",
    NODE_AFFINITY: "its node no longer matches its node affinity or nodeSelector",
    ANTI_AFFINITY: "a pod in its domain is to be kept apart from it",
    SPREAD: "its domain has too many more pods than the emptiest one",
    DUPLICATES: "its node has more than its share of the owner's pods",
}


class RuleSettings(PolicySection, frozen=True):
    """Which rules are enforced, and how much that is worth."""

    taints: bool = True
    """Move pods off nodes whose taints they do not tolerate."""
    node_affinity: bool = True
    """Move pods off nodes that their required node affinity or nodeSelector does not match."""
    anti_affinity: bool = True
    """Move pods that violate required anti-affinity."""
    topology_spread: bool = True
    """Move pods that violate a topology spread constraint with DoNotSchedule."""
    duplicates: bool = False
    """Move pods off nodes that have more than their share of one owner's pods."""
    gain: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 200
    """The gain of fixing a violated rule, in points of kube-scheduler's total score."""


@dataclass(frozen=True, eq=False)
class BrokenRules:
    """The policy, at work on one snapshot."""

    settings: RuleSettings
    rules: SchedulingRules
    name: str = BROKEN_RULES

    def propose(self, view: View) -> Iterator[Proposals]:
        gain = self.settings.gain
        for rule, found in groupby(self.rules.find_broken(view), key=itemgetter(0)):
            _, pods, how_badly = zip(*found, strict=True)
            promises = gain * np.concatenate(how_badly).astype(np.float64)
            describe = partial(_describe, rule)
            yield Proposals(BROKEN_RULES, rule, np.concatenate(pods), promises, describe, demand=gain)

    def find_due(self, cause: str, pods: Indices, view: View) -> Bools:
        return self.rules.find_breaking(cause, pods, view)

    def weigh(self, _pods: Indices, _seen: View) -> None:
        """What it promises stays."""

    def prefer(self, _proposal: Proposal, _prospect: Prospect) -> None:
        """kube-scheduler's points say it."""

    def refuse(self, _proposal: Proposal, _seen: View) -> Refused | None:
        """Leave it to the forecast: nobody else knows where the rules are kept."""
        return None

    def choose(self, proposal: Proposal, prospect: Prospect) -> Bools:
        """Any feasible node breaks no rule; of duplicates fewer must be there than where the pod is."""
        everywhere = np.ones(len(prospect.nodes), np.bool_)
        controller = prospect.forecast.incoming.controller
        if proposal.cause != DUPLICATES or controller is None:
            return everywhere
        counts = count_replicas(prospect.view, controller.uid)
        fewer: Bools = counts[prospect.nodes] + 1 < counts[prospect.source]
        return fewer


def _describe(rule: str, _pod: int) -> str:
    return _REASONS[rule]


def set_rules(settings: RuleSettings, scheduler: KubeScheduler) -> SchedulingRules:
    """Give the rules that are enforced."""
    switches = {
        TAINTS: settings.taints,
        NODE_AFFINITY: settings.node_affinity,
        ANTI_AFFINITY: settings.anti_affinity,
        SPREAD: settings.topology_spread,
        DUPLICATES: settings.duplicates,
    }
    return SchedulingRules(tuple(rule for rule, on in switches.items() if on), scheduler)
