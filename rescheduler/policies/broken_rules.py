"""Policy brokenRules: moves pods off nodes where they break a rule that kube-scheduler enforces.

* `taints`: the node has a taint, NoSchedule or NoExecute, that the pod does not tolerate. It counts only
  after it has lasted for a time.
* `nodeAffinity`: the node no longer matches the pod's nodeSelector or required node affinity, and has not for
  a time.
* `antiAffinity`: the required anti-affinity of the pod, or of another pod in its domain, keeps the two apart.
  After one of them has moved, the other stays.
* `topologySpread`: the domain has more than `maxSkew` pods more than the smallest one, as kube-scheduler
  counts them: protected pods count like all others, terminating pods do not.
* `duplicates` (off by default): the node has more pods of the controller than an even distribution over all
  nodes would give it.

The policy states the gain, since kube-scheduler has no score for a node that it would not choose. A pod moves
only if a node is feasible for it, so it breaks no rule there. The pod that breaks a rule most moves first: of
three pods, the one that conflicts with both others.
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
from reberth.forecast.state.view import View
from reberth.values.refusal import Refused
from rescheduler.model.plan import BROKEN_RULES
from rescheduler.observe.prospects import Prospect
from rescheduler.policies.lasting_mismatches import NodeAffinitySettings
from rescheduler.policies.lasting_taints import TaintSettings
from rescheduler.policies.proposal import PolicySection, Proposal, Proposals
from rescheduler.policies.rule_checks import RuleInputs, count_replicas
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
    ANTI_AFFINITY: "required anti-affinity forbids another pod in its domain",
    SPREAD: "its domain exceeds maxSkew of a topology spread constraint",
    DUPLICATES: "its node has more than its share of the controller's pods",
}


class RuleSettings(PolicySection, frozen=True):
    """Which rules are enforced, and the gain of a move that does it."""

    taints: TaintSettings = TaintSettings()
    """Move pods off nodes whose taints they do not tolerate."""
    node_affinity: NodeAffinitySettings = NodeAffinitySettings()
    """Move pods off nodes that their required node affinity or nodeSelector does not match."""
    anti_affinity: bool = True
    """Move pods that violate required anti-affinity."""
    topology_spread: bool = True
    """Move pods that violate a topology spread constraint with DoNotSchedule."""
    duplicates: bool = False
    """Move pods off nodes that have more than their share of the pods of one controller."""
    gain: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 200
    """The gain of fixing a violated rule, in points of kube-scheduler's total score."""


@dataclass(frozen=True, eq=False)
class BrokenRules:
    """The policy on one snapshot."""

    settings: RuleSettings
    rules: SchedulingRules
    name: str = BROKEN_RULES

    @property
    def causes(self) -> tuple[str, ...]:
        return self.rules.names

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
        """The promise of a broken rule does not change."""

    def prefer(self, _proposal: Proposal, _prospect: Prospect) -> None:
        """kube-scheduler's points decide."""

    def refuse(self, _proposal: Proposal, _seen: View) -> Refused | None:
        """Only the forecast knows which nodes keep the rules."""
        return None

    def choose(self, proposal: Proposal, prospect: Prospect) -> Bools:
        """Any feasible node keeps the rules; for duplicates it must also have fewer of the pods."""
        everywhere = np.ones(len(prospect.nodes), np.bool_)
        controller = prospect.forecast.incoming.controller
        if proposal.cause != DUPLICATES or controller is None:
            return everywhere
        counts = count_replicas(prospect.view, controller.uid)
        fewer: Bools = counts[prospect.nodes] + 1 < counts[prospect.source]
        return fewer


def _describe(rule: str, _pod: int) -> str:
    return _REASONS[rule]


def set_rules(settings: RuleSettings, inputs: RuleInputs) -> SchedulingRules:
    """Give the rules that the settings enable."""
    switches = {
        TAINTS: settings.taints.enabled,
        NODE_AFFINITY: settings.node_affinity.enabled,
        ANTI_AFFINITY: settings.anti_affinity,
        SPREAD: settings.topology_spread,
        DUPLICATES: settings.duplicates,
    }
    return SchedulingRules(tuple(rule for rule, on in switches.items() if on), inputs)
