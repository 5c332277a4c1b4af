"""Why one pod is or is not moved: what each policy proposes, what each rule says, and what the plan does."""

from collections.abc import Iterator

import msgspec
import numpy as np

from reberth.cluster.snapshot import Snapshot
from reberth.values.refusal import Refused
from rescheduler.budgets.brakes import NOT_WATCHED, ClusterHealth
from rescheduler.budgets.limits import CandidateMove, begin_limits
from rescheduler.model.guardrails import list_percentages
from rescheduler.model.plan import APPLY, RECOMMEND, Plan
from rescheduler.model.plan_memory import PlanMemory
from rescheduler.observe.scheduler_model import SchedulerModel
from rescheduler.planning.cycle import Cycle, begin_cycle
from rescheduler.planning.planner import write_plan
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.policies.proposal import Policy, Proposal
from rescheduler.protections import explain

_MOVED = {APPLY: "is moved to", RECOMMEND: "is recommended to be moved to"}


class Statement(msgspec.Struct, frozen=True):
    """What one policy or rule says about a pod; `against` is set if it refuses the move."""

    who: str
    says: str
    against: bool = False


class PodExplanation(msgspec.Struct, frozen=True):
    """Why a pod is or is not moved."""

    pod: str
    node: str | None
    verdict: str
    policies: tuple[Statement, ...]
    rules: tuple[Statement, ...]
    plan: tuple[Statement, ...]


def explain_pod(
    place: int,
    snapshot: Snapshot,
    settings: ReschedulerPolicy,
    memory: PlanMemory | None,
    *,
    model: SchedulerModel,
    health: ClusterHealth = NOT_WATCHED,
) -> PodExplanation:
    """Check a pod against every policy and rule, and find it in the plan of all pods."""
    cycle = begin_cycle(snapshot, settings, memory, model, health)
    made, _ = write_plan(cycle)
    row = snapshot.pods.rows[place]
    name = f"{row.namespace}/{row.name}"
    outcomes = tuple(_list_outcomes(name, made))
    return PodExplanation(
        pod=name,
        node=row.node,
        verdict=outcomes[0].says if outcomes else "no policy proposes to move it",
        policies=tuple(_explain_policy(policy, place, cycle) for policy in cycle.policies),
        rules=tuple(_explain_rules(place, cycle)),
        plan=outcomes,
    )


def _explain_policy(policy: Policy, place: int, cycle: Cycle) -> Statement:
    found = [
        each.pick(number)
        for each in policy.propose(cycle.view)
        for number in np.flatnonzero(each.pods == place).tolist()
    ]
    return Statement(
        policy.name, "; ".join(map(_describe, found)) if found else "does not propose to move it"
    )


def _describe(proposal: Proposal) -> str:
    return f"would move it: {proposal.reason}"


def _explain_rules(place: int, cycle: Cycle) -> Iterator[Statement]:
    for rule, refused in explain(place, cycle.context):
        yield _state(rule, refused)
    node = int(cycle.context.snapshot.pods.node[place])
    if node >= 0:
        limits = begin_limits(cycle.context)
        for policy in cycle.policies:
            yield _state(f"limits of {policy.name}", limits.refuse(CandidateMove(place, node, policy.name)))
    context = cycle.context
    for said in list_percentages(context.limits_of(context.row(place).namespace, context.identify(place))):
        yield Statement("limits in percent", said)
    for said in cycle.list_unheeded(place):
        yield Statement("mode", said)
    for stop in cycle.list_stops_of(place):
        yield _state(stop.rule, stop)


def _state(who: str, refused: Refused | None) -> Statement:
    if refused is None:
        return Statement(who, "allows it")
    rule = "" if refused.rule == who else f"{refused.rule}: "
    return Statement(who, f"{rule}{refused.reason}", against=True)


def _list_outcomes(name: str, plan: Plan) -> Iterator[Statement]:
    for move in plan.moves:
        if move.pod == name:
            yield Statement(move.policy, f"{_MOVED[move.mode]} {move.destinations[0].node}: {move.reason}")
    for refused in plan.refused:
        if refused.pod == name:
            yield Statement(refused.policy, f"is not moved: {refused.rule}: {refused.reason}", against=True)
