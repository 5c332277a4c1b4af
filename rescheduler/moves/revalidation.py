"""Revalidation: whether a move is still allowed, checked on the newest state right before the eviction.

Between the plan and the eviction seconds pass, in which budgets, nodes and pods change. Without this check a
move could exceed a limit that others have used up meanwhile, or send the pod to a node that is leaving.

A planned move is checked against all rules of the plan again, and its policy is asked whether it still has a
reason for it: a taint may have gone, or a node may not be over-utilised any more. A move that a person
requested is checked against fewer: who owns the pod, whether it is terminating, what its budgets allow, and
which destinations can take it.
"""

import dataclasses
import operator
from collections.abc import Callable, Iterable

import numpy as np
from msgspec.structs import replace

from reberth.cluster.kinds import HISTORY, LEDGER
from reberth.cluster.node_lifecycle import LeavingNode, judge_node
from reberth.cluster.pods.identity import Signature
from reberth.cluster.snapshot import Snapshot
from reberth.cluster.tables import NamespaceRows, Rows, identify
from reberth.memory.ledger import return_debit
from reberth.memory.notes import ANNOTATION, matches, read_notes
from reberth.records import EvictionHistory, MoveLedger, Node, OpenMove
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_time
from rescheduler.budgets.allowances import Charge, charge_budget
from rescheduler.budgets.brakes import NOT_WATCHED, ClusterHealth, find_brakes
from rescheduler.budgets.limits import CandidateMove, begin_limits
from rescheduler.model.plan_memory import PlanMemory
from rescheduler.observe.rule_context import RuleContext
from rescheduler.observe.scheduler_model import SchedulerModel
from rescheduler.planning.cycle import begin_cycle
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.protections import refuse_protected

NOT_MIRRORED = Refused("NotMirrored", "the pod or a node of the move is not in the cache yet")
POD_MOVED = Refused("PodMoved", "the pod is not on the source node of the move")


def refuse_by_budgets(uid: str, snapshot: Snapshot) -> Refused | None:
    """Refuse an eviction that a person requested if a PodDisruptionBudget forbids it."""
    place = snapshot.pods.by_uid(uid)
    if place is None:
        return NOT_MIRRORED
    asked = charge_budget(place, RuleContext(snapshot))
    return _refuse_exhausted(asked) if isinstance(asked, Charge) else asked


def refuse_by_rules(
    move: OpenMove,
    destination: str,
    snapshot: Snapshot,
    *,
    policy: ReschedulerPolicy,
    schedulers: frozenset[str],
    health: ClusterHealth = NOT_WATCHED,
) -> Refused | None:
    """Check an open move against the rules of the plan again, without its own debit and history entry."""
    place, nodes = snapshot.pods.by_uid(move.pod_uid), snapshot.nodes.index
    if place is None or move.from_ not in nodes or destination not in nodes:
        return NOT_MIRRORED
    limits, seen = policy.limits_with_buffer(), _leave_out(move.id, snapshot)
    context = RuleContext(seen, policy.protections, limits, policy.brakes, schedulers)
    candidate = CandidateMove(place, nodes[move.from_], move.policy, nodes[destination])
    return (
        find_brakes(context, health).refuse(place, context)
        or refuse_protected(place, context)
        or begin_limits(context).refuse(candidate)
    )


def refuse_reasonless(
    move: OpenMove,
    snapshot: Snapshot,
    memory: PlanMemory | None,
    *,
    policy: ReschedulerPolicy,
    model: SchedulerModel,
) -> Refused | None:
    """Refuse a move whose policy would not propose its pod any more, for whichever cause.

    Without a memory, what a policy must see for some time counts as seen for so long.
    """
    place, cycle = snapshot.pods.by_uid(move.pod_uid), begin_cycle(snapshot, policy, memory, model)
    if place is None:
        return NOT_MIRRORED
    pod = np.array([place], np.int32)
    asked = (each for each in cycle.policies if each.name == move.policy)
    due = (each.find_due(cause, pod, cycle.view)[0] for each in asked for cause in each.causes)
    gone = Refused("ReasonGone", f"{move.policy} has no reason to move the pod any more")
    return None if any(due) else gone


def choose_usable(
    names: Iterable[str],
    *,
    source: str,
    who: Signature,
    find: Callable[[str], Node | None],
    now: float,
) -> tuple[str, ...] | Refused:
    """Keep, in their order, the nodes that a pod may be moved to; refused if none is left.

    The extender sends no pod to a node that is leaving or young, or whose note keeps the workload away. With
    only such nodes left, the replacement would land anywhere.
    """
    verdicts = {
        name: "the pod is already there" if name == source else _judge(find(name), who, now) for name in names
    }
    usable = tuple(name for name, verdict in verdicts.items() if verdict is None)
    if usable:
        return usable
    said = "; ".join(f"{name}: {verdict}" for name, verdict in verdicts.items())
    return Refused("NoFeasibleDestination", said or "no destination was given")


def _refuse_exhausted(charge: Charge) -> Refused | None:
    return Refused(charge.rule, charge.reason, charge.until) if charge.left < charge.amount else None


def _leave_out(move: str, snapshot: Snapshot) -> Snapshot:
    """Leave out a move and its debit: it does not count against itself."""
    histories = Rows((_forget_in(part, move) for part in snapshot.of(HISTORY).parts), identify)
    ledgers = Rows((_return_in(part, move) for part in snapshot.of(LEDGER).parts), identify)
    return dataclasses.replace(snapshot, contents={**snapshot.contents, HISTORY: histories, LEDGER: ledgers})


def _forget_in(part: NamespaceRows[EvictionHistory], move: str) -> NamespaceRows[EvictionHistory]:
    """Leave out a move; a namespace without it keeps its part, and what was read from it."""
    left = tuple(_forget_move(history, move) for history in part.rows)
    unchanged = all(map(operator.is_, left, part.rows))
    return part if unchanged else NamespaceRows(part.namespace, left)


def _return_in(part: NamespaceRows[MoveLedger], move: str) -> NamespaceRows[MoveLedger]:
    return NamespaceRows(part.namespace, tuple(_return_debit(ledger, move) for ledger in part.rows))


def _return_debit(ledger: MoveLedger, move: str) -> MoveLedger:
    returned = return_debit(ledger, move)
    return ledger if isinstance(returned, Refused) else returned


def _forget_move(history: EvictionHistory, move: str) -> EvictionHistory:
    opened = history.status.open or ()
    others = tuple(one for one in opened if one.id != move)
    return (
        history
        if len(others) == len(opened)
        else replace(history, status=replace(history.status, open=others))
    )


def _judge(node: Node | None, who: Signature, now: float) -> str | None:
    if node is None:
        return "no such node"
    standing = judge_node(node)
    if standing:
        state = "leaving" if isinstance(standing, LeavingNode) else "young"
        return f"{state} ({standing.sign})"
    until = _find_end_of_notes(node, who, now)
    return f"a note keeps the workload away until {write_time(until)}" if until else None


def _find_end_of_notes(node: Node, who: Signature, now: float) -> float | None:
    """Tell until when the node's notes keep the pod away; an unreadable annotation keeps no pod away."""
    notes = read_notes((node.metadata.annotations or {}).get(ANNOTATION))
    if isinstance(notes, Refused):
        return None
    ends = (note.expires_at for note in notes if note.holds(now) and matches(note, who))
    return max(ends, default=None)
