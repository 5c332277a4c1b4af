"""What one plan is made from: the snapshot and all that is known of it, the settings, what is remembered."""

from dataclasses import dataclass

from reberth.columns import Bools
from reberth.landing.advising import DEFAULTS, ExtenderSettings, find_own, list_foreign
from reberth.landing.ground import Ground
from reberth.landing.profiles import Scheduler
from reberth.landing.viewing import View, view
from reberth.refusals import Refused
from reberth.requests import Version
from reberth.snapshot import Snapshot
from rescheduler.brakes import find_brakes, find_pauses
from rescheduler.configuration import ReschedulerPolicy
from rescheduler.context import Context
from rescheduler.node_standing import find_rivals, list_destinations
from rescheduler.planning_memory import PlanMemory
from rescheduler.planning_score import Judge
from rescheduler.policies import under_utilised_nodes
from rescheduler.policies.better_preferences import BetterPreferences
from rescheduler.policies.broken_rules import BrokenRules, set_rules
from rescheduler.policies.proposals import Policy
from rescheduler.prospects import OpinionOnce, Outlook


@dataclass(frozen=True, eq=False)
class World:
    """Who decides about landings: a version of Kubernetes, its scheduler, and our extender's settings."""

    version: Version
    scheduler: Scheduler
    extender: ExtenderSettings = DEFAULTS


@dataclass(frozen=True, eq=False)
class Cycle:
    """Everything that stays as it is while a plan is made; `memory` is what the next one begins with."""

    settings: ReschedulerPolicy
    context: Context
    seen: View
    outlook: Outlook
    judge: Judge
    policies: tuple[Policy, ...]
    memory: PlanMemory
    may_enter: Bools
    looked_at: frozenset[str]
    brakes: tuple[Refused, ...]
    pauses: tuple[Refused, ...]

    @property
    def now(self) -> float:
        return self.context.now

    def list_warnings(self) -> list[str]:
        """Say what people should know who read the plan."""
        stopped = [f"{each.rule}: {each.reason}" for each in (*self.brakes, *self.pauses)]
        rival = find_rivals(self.seen.nodes.records)
        scheduler = self.outlook.scheduler
        foreign = [
            f"extender {each} is not known here: taken to have no say" for each in list_foreign(scheduler)
        ]
        if rival:
            stopped.append(f"another rescheduler is active: taint {rival}")
        if not self.outlook.advisers:
            stopped.append(
                "the scheduler does not ask Reberth's extender: nothing draws pods to their destinations"
            )
        return [*stopped, *foreign]


def begin_cycle(
    snapshot: Snapshot, settings: ReschedulerPolicy, memory: PlanMemory | None, world: World
) -> Cycle:
    """Set everything up for one plan."""
    ground = Ground(snapshot, world.version)
    seen, policies = view(ground), settings.policies
    rules = set_rules(policies.broken_rules, world.scheduler)
    utilisation, hot = under_utilised_nodes.begin(seen, policies.under_utilised_nodes, memory)
    context = Context(
        snapshot,
        settings.protections,
        settings.limits_with_buffer(),
        settings.brakes,
        frozenset(world.scheduler.profiles),
    )
    known: tuple[tuple[bool, Policy], ...] = (
        (policies.broken_rules.enabled, BrokenRules(policies.broken_rules, rules)),
        (
            policies.better_preferences.enabled,
            BetterPreferences(policies.better_preferences, world.scheduler),
        ),
        (policies.under_utilised_nodes.enabled, utilisation),
    )
    before = (memory or PlanMemory()).expire(snapshot.now)
    return Cycle(
        settings=settings,
        context=context,
        seen=seen,
        outlook=Outlook(world.scheduler, find_own(world.scheduler, OpinionOnce(ground, world.extender))),
        judge=Judge(rules, utilisation.bounds),
        policies=tuple(policy for enabled, policy in known if enabled),
        memory=PlanMemory(hot, before.moved),
        looked_at=before.looked_at,
        may_enter=list_destinations(context),
        brakes=find_brakes(context),
        pauses=find_pauses(context),
    )
