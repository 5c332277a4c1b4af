"""The policy file: one document of kind ReschedulerPolicy.

    apiVersion: reberth.dev/v1alpha1
    kind: ReschedulerPolicy
    level: 2

Every field has a default. The defaults are the cautious choice.
"""

from typing import Annotated

import msgspec

from reberth.config.settings import Section
from reberth.values.duration import Percentage
from reberth.values.refusal import Refused
from rescheduler.model.guardrails import BrakeSettings, LimitSettings, ProtectionSettings
from rescheduler.model.plan import (
    BETTER_PREFERENCES,
    BROKEN_RULES,
    OFF,
    RECOMMEND,
    UNDER_UTILISED_NODES,
    WantedMode,
)
from rescheduler.planning.cooldown import RestSettings
from rescheduler.planning.worth import LevelNumber, Points, PriceSettings, find_buffer
from rescheduler.policies.better_preferences import PreferenceSettings
from rescheduler.policies.broken_rules import RuleSettings
from rescheduler.policies.proposal import Confirmation, PolicySection
from rescheduler.policies.under_utilised_nodes import UtilisationSettings
from rescheduler.protections import ApplyByAnnotation

SWITCHED_OFF = Refused("Off", "the mode of the policy file is off: nothing is planned and no move is begun")


class PolicySettings(Section, frozen=True):
    """The policies: the reasons to move pods."""

    broken_rules: RuleSettings = RuleSettings()
    """Move pods that violate a scheduling rule on their node."""
    better_preferences: PreferenceSettings = PreferenceSettings()
    """Move pods to nodes that meet more of their preferences."""
    under_utilised_nodes: UtilisationSettings = msgspec.field(default_factory=UtilisationSettings)
    """Move pods from over-utilised nodes to under-utilised ones."""

    def by_name(self) -> dict[str, PolicySection]:
        return {
            BROKEN_RULES: self.broken_rules,
            BETTER_PREFERENCES: self.better_preferences,
            UNDER_UTILISED_NODES: self.under_utilised_nodes,
        }


class ReschedulerPolicy(Section, frozen=True):
    """Which moves are planned, and which of them are made."""

    mode: WantedMode = RECOMMEND
    """off: plan nothing; recommend: only show moves; apply: make them.

    Unless it is off, a policy may override it, and an annotation may lower it.
    """
    apply_by_annotation: ApplyByAnnotation = "none"
    """Which annotations reberth.dev/automation: apply may raise recommend to apply.

    none; namespaces: those of Namespace objects; all: also those of workloads and pods.
    """
    confirm: Confirmation = "template"
    """How a replacement is foretold: from its owner's template; dryRun: also by the API server, as a dry run.

    A policy may override it. It needs manifests/rescheduler/dry-runs.
    """
    level: LevelNumber = 2
    """How much is moved: 1 only for broken rules, 2 for a significant gain, 3 good, 4 moderate, 5 slight."""
    worth: Points | None = None
    """The least worth, in points, of a move without a broken rule; null: set by the level (30, 20, 10, 2)."""
    buffer: Percentage | None = None
    """The share of every budget and rate left to others; null: set by the level (50, 50, 25, 10, 0 %)."""
    forecasts: Annotated[int, msgspec.Meta(ge=1)] | None = 500
    """How many pods one plan forecasts; the others are refused, and the next plan starts with them."""
    policies: PolicySettings = msgspec.field(default_factory=PolicySettings)
    """The policies: the reasons to move pods."""
    prices: PriceSettings = PriceSettings()
    """The cost and the risk of moves."""
    rest: RestSettings = RestSettings()
    """How long moved pods stay on their new node."""
    protections: ProtectionSettings = ProtectionSettings()
    """Which pods no policy moves."""
    limits: LimitSettings = LimitSettings()
    """How much is moved in one cycle, at the same time, and over time."""
    brakes: BrakeSettings = BrakeSettings()
    """The brakes: when all moves stop."""

    def modes(self) -> dict[str, WantedMode]:
        """Give the mode of each policy."""
        return {
            name: (section.mode or self.mode) if section.is_on and self.mode != OFF else OFF
            for name, section in self.policies.by_name().items()
        }

    def confirms(self, policy: str) -> bool:
        """Tell whether replacements are created as a dry run for this policy, or for a person's moves."""
        section = self.policies.by_name().get(policy)
        return ((section.confirm if section else None) or self.confirm) == "dryRun"

    def stop_reason(self) -> Refused | None:
        """Tell why no move may be begun: the mode of the file is off."""
        return SWITCHED_OFF if self.mode == OFF else None

    def limits_with_buffer(self) -> LimitSettings:
        """Give the limits with the reserve of the level, or with their own reserve if that is larger."""
        part = find_buffer(self.level, self.buffer)
        return msgspec.structs.replace(
            self.limits,
            budget_reserve=Percentage(max(part, self.limits.budget_reserve)),
            rate_reserve=Percentage(max(part, self.limits.rate_reserve)),
        )
