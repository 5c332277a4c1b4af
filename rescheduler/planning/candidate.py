"""One proposal: accepted as a move, or refused by the first rule that forbids it.

The cheap rules are checked first: those about the pod, then those that need only columns. The forecast of the
landing, which takes longest, comes last.
"""

from collections.abc import Iterator
from itertools import repeat
from typing import NamedTuple

import numpy as np

from reberth.cluster.columns import Bools, Indices
from reberth.values.refusal import Refused
from rescheduler.budgets.limits import CandidateMove
from rescheduler.model.plan import Destination, PlannedMove
from rescheduler.model.plan_memory import RememberedMove
from rescheduler.observe.kubelet_rejections import shape_of
from rescheduler.observe.node_eligibility import ONLY_LEAVING
from rescheduler.observe.prospects import Prospect, draw, find_avoided, forecast_move, list_destinations
from rescheduler.planning.cooldown import find_left, find_rest, refuse_resting
from rescheduler.planning.cycle import Cycle
from rescheduler.planning.draft import AcceptedMove, PlanDraft
from rescheduler.planning.worth import SAME, Worth, appraise, collect_move_facts, find_threshold, grade
from rescheduler.policies.proposal import Policy, Promises, Proposal
from rescheduler.protections import refuse_protected

# A landing counts as expected if it is more likely than all others together.
_MOST_LIKELY = 0.5

_NO_BETTER = "NoBetterNode"
_OVER_LIMIT = "Limit"
_ARRIVED = Refused("Undoes", "the plan has moved a pod of the same controller to this node")
_MAY_REJECT = Refused(
    "MayBeRejected", "the kubelets of all nodes that fit have rejected such pods in the last hour"
)
_NOWHERE = np.zeros(0, np.int32)


class _AppraisedMove(NamedTuple):
    """A proposal that only limits or the cluster's score may still refuse."""

    proposal: Proposal
    drawn: Prospect
    destinations: Indices
    worth: Worth


def try_move(proposal: Proposal, policy: Policy, cycle: Cycle, draft: PlanDraft) -> AcceptedMove | Refused:
    """Accept a proposal as a move, or refuse it."""
    refused = next(_list_objections(proposal, cycle, draft), None) or policy.refuse(proposal, draft.view)
    if refused:
        return refused
    if draft.has_looked_enough(cycle):
        return Refused(_OVER_LIMIT, f"no more than {cycle.settings.forecasts} forecasts in one plan")
    draft.forecast.append(cycle.context.row(proposal.pod).uid)
    prospect = forecast_move(proposal.pod, draft.view, cycle.advised)
    if isinstance(prospect, Refused):
        return prospect
    chosen = _choose(proposal, policy, prospect, cycle, draft)
    if isinstance(chosen, Refused):
        return chosen
    preferred = policy.prefer(proposal, prospect)
    return _appraise(proposal, prospect, chosen, cycle, draft, preferred=preferred)


def refuse_over_limit(cycle: Cycle) -> Refused:
    """Refuse all proposals after the last move that a plan may have."""
    return Refused(
        _OVER_LIMIT, f"no more than perCycle {cycle.context.limits_of().per_cycle} moves in one plan"
    )


def _list_objections(proposal: Proposal, cycle: Cycle, draft: PlanDraft) -> Iterator[Refused]:
    """List the rules that forbid the move for any destination."""
    pod, context = proposal.pod, cycle.context
    braked = cycle.brakes.refuse(pod, context)
    if braked:
        yield braked
    if proposal.demand is None:
        paused = cycle.pauses.refuse(int(draft.view.node[pod]))
        if paused:
            yield paused
        if find_threshold(cycle.settings.level, cycle.settings.worth) is None:
            yield Refused("Level", f"level {cycle.settings.level} moves only pods that break a rule")
    found = (
        refuse_protected(pod, context)
        or refuse_resting(
            context.row(pod),
            context.history(context.template_of(pod)),
            cycle.memory,
            cycle.settings.rest,
            now=cycle.now,
        )
        or _refuse_undoing(pod, cycle, draft)
        or draft.limits.refuse(CandidateMove(pod, int(draft.view.node[pod]), proposal.policy))
    )
    if found:
        yield found


def _refuse_undoing(pod: int, cycle: Cycle, draft: PlanDraft) -> Refused | None:
    """Refuse a move off a node to which the plan moves a pod of the same controller."""
    controller, node = cycle.context.row(pod).template.controller, cycle.context.row(pod).node
    planned = draft.planned.get(controller.uid, ()) if controller else ()
    return _ARRIVED if any(each.destinations[0] == node for each in planned) else None


def _choose(
    proposal: Proposal, policy: Policy, prospect: Prospect, cycle: Cycle, draft: PlanDraft
) -> Bools | Refused:
    """Choose the destinations: feasible, of use to the policy, forbidden by no rule, and better."""
    fit = prospect.feasible & (prospect.nodes != prospect.source) & policy.choose(proposal, prospect)
    if not fit.any():
        return Refused(_NO_BETTER, "no better node has room")
    for allowed, refused in _list_rules(proposal, prospect, cycle, draft):
        fit &= allowed
        if not fit.any():
            return refused
    better: Bools = fit if proposal.demand is not None else fit & (prospect.gains > SAME)
    if not better.any():
        most = int(prospect.gains[fit].max())
        return Refused(
            _NO_BETTER, f"the best node gains {most} points, and a gain up to {SAME} does not count"
        )
    return better


def _list_rules(
    proposal: Proposal, prospect: Prospect, cycle: Cycle, draft: PlanDraft
) -> Iterator[tuple[Bools, Refused]]:
    """List the rules about destinations: the nodes that each allows, and its refusal if none is left."""
    yield cycle.may_enter[prospect.nodes], ONLY_LEAVING
    paused = next(cycle.pauses.list_rules(), None) if proposal.demand is None else None
    if paused:
        reason = f"the pools of all nodes that fit are paused: {paused.reason}"
        yield cycle.pauses.may_change[prospect.nodes], Refused(paused.rule, reason, paused.until)
    rejecting = cycle.rejections.get(shape_of(prospect.forecast.incoming.template), _NOWHERE)
    yield ~np.isin(prospect.nodes, rejecting), _MAY_REJECT
    avoided = find_avoided(prospect, cycle.advised.extenders)
    yield ~avoided, Refused("Avoided", "the workload is to avoid every node that fits")
    left = _find_left(proposal.pod, prospect, cycle, draft)
    yield ~left, Refused("Undoes", "a pod of the same controller was moved off every node that fits")
    full = prospect.are_among(draft.limits.list_full())
    most = cycle.settings.limits.per_node
    yield ~full, Refused("NodeInFlight", f"no more than perNode {most} onto every node that fits")


def _find_left(pod: int, prospect: Prospect, cycle: Cycle, draft: PlanDraft) -> Bools:
    """Find the nodes that pods of the same controller were moved off."""
    controller = prospect.forecast.incoming.controller
    uid = controller.uid if controller else ""
    index, history = prospect.view.nodes.index, cycle.context.history(cycle.context.template_of(pod))
    left = {each.left for each in draft.planned.get(uid, ())}
    left.update(find_left(uid, history, cycle.memory, cycle.settings.rest, now=cycle.now))
    return prospect.are_among([index[name] for name in sorted(left) if name in index])


def _appraise(
    proposal: Proposal,
    prospect: Prospect,
    chosen: Bools,
    cycle: Cycle,
    draft: PlanDraft,
    *,
    preferred: Promises | None,
) -> AcceptedMove | Refused:
    staying = chosen & ~cycle.emptying[prospect.nodes]
    destinations = list_destinations(prospect, staying if staying.any() else chosen, preferred=preferred)
    drawn = draw(prospect, destinations, cycle.advised.extenders)
    chance = drawn.chance_among(prospect.nodes[chosen])
    refused = _refuse_landing(drawn, chance)
    if refused:
        return refused
    gain = drawn.expect(drawn.gains) if proposal.demand is None else proposal.demand * chance
    keeps_node = drawn.chance_among(np.flatnonzero(cycle.emptying).astype(np.int32))
    facts = collect_move_facts(proposal.pod, draft.view, cycle.context, chance=chance, keeps_node=keeps_node)
    worth = appraise(gain, facts, cycle.settings.prices, demanded=proposal.demand is not None)
    cheap = _refuse_cheap(proposal, worth, cycle, keeps_node=keeps_node)
    return cheap or _accept(_AppraisedMove(proposal, drawn, destinations, worth), cycle, draft)


def _refuse_landing(drawn: Prospect, chance: float) -> Refused | None:
    back = drawn.chance_of(drawn.source)
    if back >= _MOST_LIKELY:
        return Refused("LandsOnItsNode", f"the chance that the replacement returns to its node is {back:.0%}")
    if chance < _MOST_LIKELY:
        return Refused(
            "UncertainLanding", f"the chance that the replacement lands on a better node is only {chance:.0%}"
        )
    return None


def _refuse_cheap(proposal: Proposal, worth: Worth, cycle: Cycle, *, keeps_node: float) -> Refused | None:
    level = cycle.settings.level
    least = find_threshold(level, cycle.settings.worth) if proposal.demand is None else 0.0
    if least is not None and worth.total >= least:
        return None
    reason = f"the move is worth {worth.total:.1f} points, less than {least:g} of level {level}"
    kept = f"; with a chance of {keeps_node:.0%} it keeps a node that Karpenter would remove"
    return Refused("NotWorthIt", reason + (kept if keeps_node else ""))


def _accept(candidate: _AppraisedMove, cycle: Cycle, draft: PlanDraft) -> AcceptedMove | Refused:
    """Reserve the first destination, unless a limit or the cluster's score refuses the move."""
    proposal, drawn, destinations, _ = candidate
    first = int(destinations[0])
    limits = draft.limits.spend(CandidateMove(proposal.pod, drawn.source, proposal.policy, first))
    if isinstance(limits, Refused):
        return limits
    after = draft.view.with_pod_on(proposal.pod, first, drawn.forecast.incoming.template)
    mended = cycle.scorer.count_mended(proposal.pod, draft.view, after)
    worse = cycle.scorer.refuse_worse(proposal, draft.view, after, mended=mended)
    if worse:
        return worse
    return AcceptedMove(_describe(candidate, cycle), after, limits, _remember(candidate, cycle), mended)


def _remember(candidate: _AppraisedMove, cycle: Cycle) -> RememberedMove:
    drawn, rest, now = candidate.drawn, cycle.settings.rest, cycle.now
    controller, names = drawn.forecast.incoming.controller, drawn.view.nodes.names
    paid_back = now + find_rest(candidate.worth, rest)
    return RememberedMove(
        controller.uid if controller else "",
        names[drawn.source],
        tuple(names[node] for node in candidate.destinations.tolist()),
        since=now,
        paid_back=paid_back,
        forgotten=max(paid_back, now + rest.no_return),
    )


def _describe(candidate: _AppraisedMove, cycle: Cycle) -> PlannedMove:
    proposal, drawn, destinations, worth = candidate
    row, names = cycle.context.row(proposal.pod), drawn.view.nodes.names
    root = cycle.context.identify(proposal.pod)
    return PlannedMove(
        pod=f"{row.namespace}/{row.name}",
        uid=row.uid,
        workload=f"{root.kind}/{root.name}",
        from_=names[drawn.source],
        destinations=_list_chances(drawn, destinations),
        policy=proposal.policy,
        mode=cycle.find_mode(proposal.pod, proposal.policy),
        level=grade(worth, demanded=proposal.demand is not None) or 5,
        gain=round(worth.gain, 1),
        cost=round(worth.cost, 1),
        risk=round(worth.risk, 1),
        worth=round(worth.total, 1),
        reason=proposal.reason,
    )


def _list_chances(drawn: Prospect, destinations: Indices) -> tuple[Destination, ...]:
    chances = drawn.chances[np.searchsorted(drawn.forecast.feasible, destinations)]
    names = map(drawn.view.nodes.names.__getitem__, destinations.tolist())
    return tuple(map(Destination, names, map(round, chances.tolist(), repeat(4))))
