"""A planning cycle: the snapshot, the settings, the memory, and all that is derived from them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from reberth.cluster.columns import Bools
from reberth.cluster.snapshot import Snapshot
from reberth.forecast.extender import list_other_extenders
from reberth.forecast.state.proven_versions import describe_unproven
from reberth.forecast.state.view import View
from reberth.memory.ledger import list_gaps
from reberth.values.refusal import Refused
from rescheduler.budgets.brakes import NOT_WATCHED, Brakes, ClusterHealth, find_brakes
from rescheduler.budgets.consolidation import find_emptying
from rescheduler.budgets.pauses import Pauses, find_pauses
from rescheduler.model.plan import APPLY, OFF, RECOMMEND, Mode, WantedMode
from rescheduler.model.plan_memory import PlanMemory
from rescheduler.observe.kubelet_rejections import Rejections, find_rejections, list_rejecting
from rescheduler.observe.node_eligibility import find_rivals
from rescheduler.observe.pending_pods import place_pending_pods
from rescheduler.observe.rule_context import RuleContext
from rescheduler.observe.scheduler_model import AdvisedScheduler, CachedAdvice, SchedulerModel
from rescheduler.observe.utilisation import find_usable_nodes
from rescheduler.planning.agenda import Agenda
from rescheduler.planning.cluster_score import ClusterScorer
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.policies import under_utilised_nodes
from rescheduler.policies.better_preferences import BetterPreferences
from rescheduler.policies.broken_rules import BrokenRules, set_rules
from rescheduler.policies.lasting_mismatches import watch_mismatches
from rescheduler.policies.lasting_taints import watch_taints
from rescheduler.policies.proposal import Policy
from rescheduler.policies.rule_checks import RuleInputs
from rescheduler.protections import Automation, list_marked, may_apply


@dataclass(frozen=True, eq=False)
class Cycle:
    """All that does not change while a plan is made; `memory` is passed on to the next plan.

    `view` is the snapshot with pending pods on the nodes where they are about to land.
    """

    settings: ReschedulerPolicy
    context: RuleContext
    model: SchedulerModel
    health: ClusterHealth
    view: View
    advised: AdvisedScheduler
    scorer: ClusterScorer
    policies: tuple[Policy, ...]
    made: Mapping[str, Bools]  # by policy: for which templates the mode is apply
    memory: PlanMemory
    may_enter: Bools
    emptying: Bools
    looked_at: frozenset[str]
    brakes: Brakes
    pauses: Pauses

    @property
    def now(self) -> float:
        return self.context.now

    @property
    def rejections(self) -> Rejections:
        """Give the nodes whose kubelets have rejected pods a short time ago, by the shape of these."""
        return self.context.once("kubelet rejections", partial(find_rejections, self.context.snapshot))

    def find_mode(self, pod: int, policy: str) -> Mode:
        """Give the mode of a policy's moves of a pod: of its annotation, else of the settings."""
        return APPLY if self.made[policy][self.context.template_of(pod)] else RECOMMEND

    def list_unheeded(self, pod: int) -> Iterator[str]:
        """Tell that a pod's annotation asks for moves to be made, and that its moves are only recommended."""
        template = self.context.template_of(pod)
        said = list_marked(self.context).get(template)
        if said and said.automation is Automation.APPLY:
            policies = ", ".join(name for name, made in self.made.items() if not made[template])
            if policies:
                given = self.settings.apply_by_annotation
                yield (
                    f"the {said.where}'s annotation apply does not turn recommend of {policies} into apply: "
                    f"applyByAnnotation is {given}"
                )

    def list_modes(self) -> Iterator[Mode]:
        """List the modes that moves may have: apply comes before recommend."""
        if any(made.any() for made in self.made.values()):
            yield APPLY
        if not all(made.all() for made in self.made.values()):
            yield RECOMMEND

    def find_those_of(self, mode: Mode, agenda: Agenda) -> Bools:
        """Tell which proposals have a mode; pending pods are not moved."""
        pods, made = self.context.snapshot.pods, np.zeros(len(agenda), np.bool_)
        templates = pods.template[agenda.pods]
        for policy, places in agenda.list_by_policy():
            made[places] = self.made[policy][templates[places]]
        return (made if mode == APPLY else ~made) & (pods.node[agenda.pods] >= 0)

    def list_stops(self) -> tuple[Refused, ...]:
        """List all brakes and pauses that are on, and the mode off."""
        return (*self._list_brakes(), *self.pauses.list_rules())

    def list_stops_of(self, pod: int) -> tuple[Refused, ...]:
        """List what of these stops the moves of a pod."""
        held = self.brakes.results.refuse(pod, self.context)
        paused = self.pauses.refuse(int(self.context.snapshot.pods.node[pod]))
        return (*self._list_brakes(), *filter(None, (held, paused)))

    def _list_brakes(self) -> tuple[Refused, ...]:
        stop = self.settings.stop_reason()
        return (*((stop,) if stop else ()), *self.brakes.everywhere)

    def _list_unheeded_annotations(self) -> Iterator[str]:
        """Warn of annotations that ask for more than the mode, and are not allowed to."""
        marked = list_marked(self.context).items()
        asking = [template for template, said in marked if said.automation is Automation.APPLY]
        unheeded = [each for each in asking if not all(made[each] for made in self.made.values())]
        if unheeded:
            namespaces = sorted({self.context.template(each).namespace for each in unheeded})
            more = f" and {len(namespaces) - 1} more" if len(namespaces) > 1 else ""
            yield (
                f"annotations apply in namespace {namespaces[0]}{more} do not turn recommend into apply: "
                f"applyByAnnotation is {self.settings.apply_by_annotation}"
            )

    def list_warnings(self) -> list[str]:
        """List what a reader of the plan should know."""
        stopped = [f"{each.rule}: {each.reason}" for each in self.list_stops()]
        stopped += filter(None, (describe_unproven(self.model.version),))
        rival = find_rivals(self.view.nodes.records)
        scheduler = self.model.scheduler
        foreign = [f"extender {each} is unknown and ignored" for each in list_other_extenders(scheduler)]
        if rival:
            stopped.append(f"another rescheduler is active: taint {rival}")
        stopped += self._list_unheeded_annotations()
        if not self.advised.extenders:
            stopped.append(
                "the scheduler does not call Reberth's extender: replacements are not drawn to destinations"
            )
        stopped += list_rejecting(self.rejections, self.view.nodes.names)
        stopped += list_gaps(self.context.ledger, self.context.limits.rates, now=self.context.now)
        return [*stopped, *self.brakes.results.list_held(), *foreign]


class AskedPolicies(NamedTuple):
    """The policies that are asked about a snapshot, and what they remember of it for the next one."""

    as_read: View
    advised: AdvisedScheduler
    view: View
    asked: tuple[Policy, ...]
    scorer: ClusterScorer
    hot_since: dict[str, float]
    tainted_since: dict[str, dict[str, float]]
    mismatched_since: dict[str, dict[str, float]]


def begin_policies(
    snapshot: Snapshot, settings: ReschedulerPolicy, memory: PlanMemory | None, model: SchedulerModel
) -> AskedPolicies:
    """Derive what the policies need to propose moves, and no more: one may be asked about a single pod."""
    as_read = model.look_at(snapshot)
    advised = model.advise(CachedAdvice(as_read.facts, model.extender))
    view, policies = place_pending_pods(as_read, advised), settings.policies
    taints = watch_taints(
        view.nodes, policies.broken_rules.taints, memory.tainted_since if memory else None, now=snapshot.now
    )
    mismatches = watch_mismatches(
        view,
        policies.broken_rules.node_affinity,
        memory.mismatched_since if memory else None,
        now=snapshot.now,
    )
    inputs = RuleInputs(model.scheduler, taints.lasting, mismatches.lasting)
    rules = set_rules(policies.broken_rules, inputs)
    utilisation, hot = under_utilised_nodes.begin(view, policies.under_utilised_nodes, memory)
    known: tuple[Policy, ...] = (
        BrokenRules(policies.broken_rules, rules),
        BetterPreferences(policies.better_preferences, model.scheduler),
        utilisation,
    )
    modes = settings.modes()
    return AskedPolicies(
        as_read,
        advised,
        view,
        tuple(policy for policy in known if modes[policy.name] != OFF),
        ClusterScorer(rules, utilisation.bounds),
        hot,
        taints.since,
        mismatches.since,
    )


def begin_cycle(
    snapshot: Snapshot,
    settings: ReschedulerPolicy,
    memory: PlanMemory | None,
    model: SchedulerModel,
    health: ClusterHealth = NOT_WATCHED,
) -> Cycle:
    """Derive all that one plan needs."""
    policies = begin_policies(snapshot, settings, memory, model)
    before = (memory or PlanMemory()).expire(snapshot.now)
    context = RuleContext(
        snapshot,
        settings.protections,
        settings.limits_with_buffer(),
        settings.brakes,
        model.scheduler_names,
        before.refusals,
    )
    modes = settings.modes()
    return Cycle(
        settings=settings,
        context=context,
        model=model,
        health=health,
        view=policies.view,
        advised=policies.advised,
        scorer=policies.scorer,
        policies=policies.asked,
        made={policy.name: _find_made(modes[policy.name], context, settings) for policy in policies.asked},
        memory=PlanMemory(
            policies.hot_since,
            policies.tainted_since,
            policies.mismatched_since,
            before.moved,
            refusals=before.refusals,
        ),
        looked_at=before.looked_at,
        may_enter=find_usable_nodes(policies.as_read.facts).usable,
        emptying=find_emptying(policies.as_read, context),
        brakes=find_brakes(context, health),
        pauses=find_pauses(context, policies.tainted_since if memory else {}),
    )


def _find_made(mode: WantedMode, context: RuleContext, settings: ReschedulerPolicy) -> Bools:
    """Tell for which templates moves are made: by their annotation, else by the mode.

    An annotation exceeds the mode only as far as the settings allow it.
    """
    made = np.full(len(context.snapshot.templates.all), mode == APPLY)
    given = settings.apply_by_annotation
    for template, said in list_marked(context).items():
        asks = said.automation is Automation.APPLY
        made[template] = asks and (mode == APPLY or may_apply(template, context, given))
    return made
