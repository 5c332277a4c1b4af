"""Everybody's word on one pod: what policies see in it, what rules have against it, what the plan does."""

from collections.abc import Iterator

import msgspec
import numpy as np

from reberth.cluster.snapshot import Snapshot
from reberth.values.refusal import Refused
from rescheduler.budgets.brakes import NOT_WATCHED, ClusterHealth
from rescheduler.budgets.limits import Spending, begin_limits
from rescheduler.model.plan import APPLY, RECOMMEND, Plan
from rescheduler.model.plan_memory import PlanMemory
from rescheduler.observe.scheduler_model import SchedulerModel
from rescheduler.planning.cycle import Cycle, begin_cycle
from rescheduler.planning.planner import write_plan
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.policies.proposal import Policy, Proposal
from rescheduler.protections import explain

_MOVED = {APPLY: "is moved to", RECOMMEND: "is recommended to be moved to"}


class Word(msgspec.Struct, frozen=True):
    """What one policy or rule says; nothing is against the pod where `against` is not set."""

    who: str
    says: str
    against: bool = False


class Why(msgspec.Struct, frozen=True):
    """All that is said of a pod."""

    pod: str
    node: str | None
    verdict: str
    policies: tuple[Word, ...]
    rules: tuple[Word, ...]
    plan: tuple[Word, ...]


def explain_pod(
    place: int,
    snapshot: Snapshot,
    settings: ReschedulerPolicy,
    memory: PlanMemory | None,
    *,
    model: SchedulerModel,
    health: ClusterHealth = NOT_WATCHED,
) -> Why:
    """Ask everybody about a pod, and look up what becomes of it in the plan of all pods."""
    cycle = begin_cycle(snapshot, settings, memory, model, health)
    made, _ = write_plan(cycle)
    row = snapshot.pods.rows[place]
    name = f"{row.namespace}/{row.name}"
    words = tuple(_list_words(name, made))
    return Why(
        pod=name,
        node=row.node,
        verdict=words[0].says if words else "no policy wants it moved",
        policies=tuple(_ask(policy, place, cycle) for policy in cycle.policies),
        rules=tuple(_list_rules(place, cycle)),
        plan=words,
    )


def _ask(policy: Policy, place: int, cycle: Cycle) -> Word:
    found = [
        each.pick(number)
        for each in policy.propose(cycle.seen)
        for number in np.flatnonzero(each.pods == place).tolist()
    ]
    return Word(policy.name, "; ".join(map(_say, found)) if found else "sees no need, or no better place")


def _say(proposal: Proposal) -> str:
    return f"would move it: {proposal.reason}"


def _list_rules(place: int, cycle: Cycle) -> Iterator[Word]:
    for rule, refused in explain(place, cycle.context):
        yield _word(rule, refused)
    node = int(cycle.context.snapshot.pods.node[place])
    if node >= 0:
        limits = begin_limits(cycle.context)
        for policy in cycle.policies:
            yield _word(f"limits of {policy.name}", limits.refuse(Spending(place, node, policy.name)))
    for stop in cycle.list_stops():
        yield _word(stop.rule, stop)


def _word(who: str, refused: Refused | None) -> Word:
    if refused is None:
        return Word(who, "allows it")
    rule = "" if refused.rule == who else f"{refused.rule}: "
    return Word(who, f"{rule}{refused.reason}", against=True)


def _list_words(name: str, plan: Plan) -> Iterator[Word]:
    for move in plan.moves:
        if move.pod == name:
            yield Word(move.policy, f"{_MOVED[move.mode]} {move.destinations[0].node}: {move.reason}")
    for refused in plan.refused:
        if refused.pod == name:
            yield Word(refused.policy, f"is not moved: {refused.rule}: {refused.reason}", against=True)
