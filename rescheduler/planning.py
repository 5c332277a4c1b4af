"""The plan: what all policies propose, the most promising first, each made a move or refused with a reason.

A move that is accepted is made at once in the view that the next proposal is looked at in: its destination is
reserved, its source has room, its budgets are spent. So every move is feasible in the order of the plan, and
no two of them count on the same room. Proposals are made again on what the moves have left, until nothing is
gained any more.
"""

from collections.abc import Iterator

from reberth.snapshot import Snapshot
from reberth.times import write_time
from rescheduler.configuration import ReschedulerPolicy
from rescheduler.limits import begin_limits
from rescheduler.planning_cycle import Cycle, World, begin_cycle
from rescheduler.planning_draft import Draft
from rescheduler.planning_memory import PlanMemory
from rescheduler.planning_moves import refuse_over_limit, try_move
from rescheduler.plans import BeforeAndAfter, ClusterScore, Plan, Scores
from rescheduler.policies.proposals import Policy, Proposal
from rescheduler.utilisation import list_shares

# What was refused may be possible after others have moved; more rounds than this have never brought anything.
_MOST_ROUNDS = 3


def plan(
    snapshot: Snapshot, settings: ReschedulerPolicy, memory: PlanMemory | None, *, world: World
) -> tuple[Plan, PlanMemory]:
    """Plan the moves of one cycle.

    Without a memory every over-utilised node counts as one that has been so for long enough.
    """
    return write_plan(begin_cycle(snapshot, settings, memory, world))


def write_plan(cycle: Cycle) -> tuple[Plan, PlanMemory]:
    """Make the plan of a cycle that was set up."""
    before = cycle.judge.measure(cycle.seen)
    draft = Draft(cycle.seen, begin_limits(cycle.context), cycle.memory)
    for _ in range(_MOST_ROUNDS):
        if not _run_round(cycle, draft):
            break
    return _write(cycle, draft, before), draft.remember(cycle)


def list_proposals(cycle: Cycle, draft: Draft) -> list[tuple[Proposal, Policy]]:
    """Give what all policies propose: what rules demand first, then the most promising."""
    priority = cycle.context.snapshot.pods.priority
    found = [(each, policy) for policy in cycle.policies for each in policy.propose(draft.seen)]

    def rank(pair: tuple[Proposal, Policy]) -> tuple[bool, bool, float, int, int, str, str]:
        each, pod = pair[0], pair[0].pod  # pods stand by their names
        again = bool(cycle.looked_at) and cycle.context.row(pod).uid in cycle.looked_at
        best = (each.demand is None, again, -round(each.promise, 6))
        return *best, int(priority[pod]), pod, each.policy, each.cause

    return sorted(found, key=rank)


def _run_round(cycle: Cycle, draft: Draft) -> bool:
    """Look at every proposal once; tells whether another round may bring more."""
    before = len(draft.moves)
    draft.begin_round()
    over_limit = refuse_over_limit(cycle, draft)
    for proposal, policy in list_proposals(cycle, draft):
        if proposal.pod in draft.moved or not policy.is_due(proposal, draft.seen):
            continue
        draft.enter(proposal, over_limit or try_move(proposal, policy, cycle, draft), cycle)
        over_limit = over_limit or refuse_over_limit(cycle, draft)
    return before < len(draft.moves) and not draft.is_full(cycle)


def _write(cycle: Cycle, draft: Draft, before: ClusterScore) -> Plan:
    after = cycle.judge.measure_uses(draft.seen, broken=before.broken_rules - draft.mended)
    return Plan(
        kind="Plan",
        now=write_time(cycle.now),
        moves=tuple(draft.moves),
        refused=draft.list_refused(),
        nodes=dict(_compare_nodes(cycle, draft)),
        score=Scores(before, after),
        warnings=tuple(cycle.list_warnings()),
    )


def _compare_nodes(cycle: Cycle, draft: Draft) -> Iterator[tuple[str, BeforeAndAfter]]:
    """Give what the moves change on the nodes that they touch."""
    resources = cycle.judge.bounds.resources
    for node in sorted(draft.seen.changed):
        shares = [list_shares(seen, node, resources) for seen in (cycle.seen, draft.seen)]
        yield cycle.seen.nodes.names[node], BeforeAndAfter(*shares)
