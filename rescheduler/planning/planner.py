"""The planner: takes the proposals of all policies in their order, and accepts or refuses each one.

The next proposal is checked on a view that already contains the accepted move: its destination is reserved,
its source node has more room, and its budgets are charged. So every move is feasible in the order of the
plan, and no two moves use the same room. Then the policies propose again on the new view, until no move is
added.

Moves in mode apply are planned first. Recommended moves come after them and get what is left of room and
budgets, so they never change what is made.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from reberth.cluster.snapshot import Snapshot
from reberth.forecast.state.view import View
from reberth.values.refusal import FAULT, Refused, refuse_fault
from reberth.values.timestamp import write_time
from rescheduler.budgets.brakes import NOT_WATCHED, ClusterHealth
from rescheduler.budgets.limits import begin_limits
from rescheduler.model.plan import BeforeAndAfter, ClusterScore, Mode, Plan, Scores
from rescheduler.model.plan_memory import PlanMemory
from rescheduler.observe.scheduler_model import SchedulerModel
from rescheduler.observe.utilisation import list_shares
from rescheduler.planning.agenda import Agenda, AgendaEntry
from rescheduler.planning.candidate import refuse_over_limit, try_move
from rescheduler.planning.cycle import Cycle, begin_cycle
from rescheduler.planning.draft import AcceptedMove, PlanDraft
from rescheduler.planning.policy_file import ReschedulerPolicy

# A refused move may become possible after others. More rounds than this have never added one.
_MOST_ROUNDS = 3


def plan(
    snapshot: Snapshot,
    settings: ReschedulerPolicy,
    memory: PlanMemory | None,
    *,
    model: SchedulerModel,
    health: ClusterHealth = NOT_WATCHED,
) -> tuple[Plan, PlanMemory]:
    """Plan the moves of one cycle.

    Without a memory every over-utilised node counts as one that has been so for long enough.
    """
    return write_plan(begin_cycle(snapshot, settings, memory, model, health))


def write_plan(cycle: Cycle) -> tuple[Plan, PlanMemory]:
    """Make the plan of a cycle."""
    before = cycle.scorer.measure(cycle.view)
    draft = PlanDraft(cycle.view, begin_limits(cycle.context))
    for mode in cycle.list_modes():
        _plan_moves(cycle, draft, mode)
    return _write(cycle, draft, before), draft.remember(cycle)


def _plan_moves(cycle: Cycle, draft: PlanDraft, mode: Mode) -> None:
    for _ in range(_MOST_ROUNDS):
        if not _run_round(cycle, draft, mode):
            break


def _run_round(cycle: Cycle, draft: PlanDraft, mode: Mode) -> bool:
    """Take every proposal of a mode once; tell whether another round may add moves."""
    before = len(draft.moves)
    agenda = draft.begin_round(cycle, mode)
    while len(agenda) and not draft.is_full(cycle):
        agenda = _make_next_move(agenda, cycle, draft)
    if draft.is_full(cycle):
        draft.refuse_all(agenda, refuse_over_limit(cycle))
    return before < len(draft.moves) and not draft.is_full(cycle)


def _make_next_move(agenda: Agenda, cycle: Cycle, draft: PlanDraft) -> Agenda:
    """Take the next proposals until one is accepted; give the rest, ordered for the new view."""
    for place, entry in enumerate(agenda.near(), 1):
        verdict = None if entry.pod in draft.moved else _judge(entry, cycle, draft)
        if verdict is None:
            continue
        draft.enter(entry, verdict)
        if isinstance(verdict, AcceptedMove):
            return agenda.since(place).weigh_again(draft.view)
    return agenda.since(len(agenda.near())).weigh_again(draft.view)


def _judge(entry: AgendaEntry, cycle: Cycle, draft: PlanDraft) -> AcceptedMove | Refused | None:
    """Accept or refuse a proposal; None if it holds no more. A fault about one pod refuses that pod alone."""
    try:
        if not _is_due(entry, draft.view):
            return None
        return try_move(entry.write(), entry.policy, cycle, draft)
    except Exception as error:  # noqa: BLE001 - the refusal says it
        return refuse_fault(error)


def _is_due(entry: AgendaEntry, view: View) -> bool:
    pods = np.array([entry.pod], np.int32)
    return bool(entry.policy.find_due(entry.proposals.cause, pods, view)[0])


def _write(cycle: Cycle, draft: PlanDraft, before: ClusterScore) -> Plan:
    after = cycle.scorer.measure_uses(draft.view, broken=before.broken_rules - draft.mended)
    return Plan(
        kind="Plan",
        now=write_time(cycle.now),
        moves=tuple(draft.moves),
        refused=draft.list_refused(cycle),
        nodes=dict(_compare_nodes(cycle, draft)),
        score=Scores(before, after),
        warnings=(*_list_faults(draft.faults), *cycle.list_warnings()),
    )


def _list_faults(faults: Mapping[str, str]) -> Iterator[str]:
    """Warn of policies that propose nothing because of a defect of ours."""
    for policy, reason in faults.items():
        yield f"{FAULT}: {policy} proposes nothing: {reason}"


def _compare_nodes(cycle: Cycle, draft: PlanDraft) -> Iterator[tuple[str, BeforeAndAfter]]:
    """Compare the utilisation of the touched nodes before and after the moves."""
    resources, names = cycle.scorer.bounds.resources, cycle.view.nodes.names
    touched = {name for move in draft.moves for name in (move.from_, move.destinations[0].node)}
    nodes = np.array(sorted(cycle.view.nodes.index[name] for name in touched), np.int32)
    before, after = (list_shares(view, nodes, resources) for view in (cycle.view, draft.view))
    for node, *shares in zip(nodes.tolist(), before, after, strict=True):
        yield names[node], BeforeAndAfter(*shares)
