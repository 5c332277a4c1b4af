"""Revalidation: whether a move is still allowed, checked on the newest state right before the eviction.

Between the plan and the eviction seconds pass, in which budgets, nodes and pods change. Without this check a
move could exceed a limit that others have used up meanwhile, or send the pod to a node that is leaving.

A planned move is checked against all rules of the plan again, and its policy is asked whether it still has a
reason for it: a taint may have gone, or a node may not be over-utilised any more. A move that a person
requested is checked against fewer: who owns the pod, whether it is terminating, what its budgets allow, and
which destinations can take it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from reberth.cluster.kinds import HISTORY
from reberth.cluster.node_lifecycle import LeavingNode, judge_node
from reberth.cluster.pods.identity import Signature
from reberth.cluster.snapshot import Snapshot
from reberth.cluster.tables import NamespaceRows, Rows, identify
from reberth.memory.history import start_history
from reberth.memory.notes import ANNOTATION, matches, read_notes
from reberth.records import EvictionHistory, Node, OpenMove
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_time
from rescheduler.budgets.allowances import Charge, charge_budget
from rescheduler.budgets.brakes import NOT_WATCHED, Brakes, ClusterHealth, find_brakes
from rescheduler.budgets.limits import CandidateMove, Limits, begin_limits
from rescheduler.model.plan_memory import PlanMemory
from rescheduler.observe.rule_context import RuleContext
from rescheduler.observe.scheduler_model import SchedulerModel
from rescheduler.planning.cycle import AskedPolicies, begin_policies
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


class Revalidation:
    """Checks open moves again, one after the other, on one snapshot: what they share is found once.

    A move does not count against itself. Those that were checked before it count as open even if the cache
    has not seen their eviction histories yet: so moves that are checked together get the answers that they
    would get one by one.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        policy: ReschedulerPolicy,
        schedulers: frozenset[str],
        health: ClusterHealth = NOT_WATCHED,
    ) -> None:
        self._health = health
        context = RuleContext(
            snapshot, policy.protections, policy.limits_with_buffer(), policy.brakes, schedulers
        )
        self._state = _SharedState(context, health)

    @property
    def snapshot(self) -> Snapshot:
        return self._state.context.snapshot

    def refuse(self, move: OpenMove, destination: str) -> Refused | None:
        """Check a move against the rules of the plan again, without its own debit and history entry."""
        place, nodes = self.snapshot.pods.by_uid(move.pod_uid), self.snapshot.nodes.index
        if place is None or move.from_ not in nodes or destination not in nodes:
            return NOT_MIRRORED
        state = self._state
        context, limits = state.context.leave_out(move.id), state.limits
        known = state.opened.get(move.id)
        candidate = CandidateMove(place, nodes[move.from_], move.policy, nodes[destination])
        return (
            self._find_brakes(known, context).refuse(place, context)
            or refuse_protected(place, context)
            or limits.leave_out(move, known).refuse(candidate)
        )

    def count_open(self, move: OpenMove) -> None:
        """Count a move as open for all that are checked after it."""
        place, context = self.snapshot.pods.by_uid(move.pod_uid), self._state.context
        if place is None or move.id in self._state.opened:
            return
        signature = context.sign(context.template_of(place))
        if isinstance(signature, Signature):
            self._state = self._state.open(move, signature)

    def _find_brakes(self, history: EvictionHistory | None, context: RuleContext) -> Brakes:
        """Find the brakes without a move; alone in its history it has no part in them before its eviction."""
        opened = (history.status.open or ()) if history else ()
        is_alone = len(opened) <= 1 and not any(map(context.is_evicted, opened))
        return self._state.brakes if is_alone else find_brakes(context, self._health)


@dataclass(frozen=True, eq=False)
class _SharedState:
    """What the checks of all moves on one snapshot share; each is found when it is needed.

    When one more move is open, limits are counted on from the state `before`: otherwise each move would cost
    as much as all that are open.
    """

    context: RuleContext
    health: ClusterHealth
    before: "_SharedState | None" = None
    newest: "_UnseenMove | None" = None

    def open(self, move: OpenMove, signature: Signature) -> "_SharedState":
        """Give the state with one more open move, which the cache has not seen yet."""
        histories, new = self.context.snapshot.of(HISTORY), start_history(signature)
        namespace, name = signature.namespace, new.metadata.name
        unseen = replace(new, metadata=replace(new.metadata, resource_version="0"))
        found = histories.named(namespace, name) or unseen
        opened = replace(found, status=replace(found.status, open=(*(found.status.open or ()), move)))
        context = self.context.with_histories(_put(histories, opened))
        return _SharedState(context, self.health, self, _UnseenMove(move, opened))

    @cached_property
    def brakes(self) -> Brakes:
        return find_brakes(self.context, self.health)

    @cached_property
    def limits(self) -> Limits:
        if self.before is None or self.newest is None:
            return begin_limits(self.context)
        return self.before.limits.open(*self.newest, self.context)

    @cached_property
    def opened(self) -> Mapping[str, EvictionHistory]:
        """Give by open move the history that records it."""
        if self.before is None or self.newest is None:
            return _index_open(self.context.snapshot.of(HISTORY))
        return {**self.before.opened, **_index_open([self.newest.history])}


class _UnseenMove(NamedTuple):
    """An open move that the cache has not seen yet, and its workload's history with it."""

    move: OpenMove
    history: EvictionHistory


class Reasons:
    """Asks the policies of moves, on one snapshot, whether they still have a reason for them.

    A move that an earlier leader began is asked about without a memory: what a policy must see for some time
    then counts as seen for so long, because the earlier leader has judged it.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        memory: PlanMemory | None,
        *,
        policy: ReschedulerPolicy,
        model: SchedulerModel,
    ) -> None:
        self._snapshot = snapshot
        self._begin = partial(begin_policies, snapshot, policy, model=model)
        self._memory = memory
        self._known: dict[bool, AskedPolicies] = {}

    def refuse(self, move: OpenMove, *, resumed: bool) -> Refused | None:
        """Refuse a move whose policy would not propose its pod any more, for whichever cause."""
        place = self._snapshot.pods.by_uid(move.pod_uid)
        if place is None:
            return NOT_MIRRORED
        if resumed not in self._known:
            self._known[resumed] = self._begin(None if resumed else self._memory)
        policies, pod = self._known[resumed], np.array([place], np.int32)
        asked = (each for each in policies.asked if each.name == move.policy)
        due = (each.find_due(cause, pod, policies.view)[0] for each in asked for cause in each.causes)
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


def _index_open(histories: Iterable[EvictionHistory]) -> dict[str, EvictionHistory]:
    return {move.id: history for history in histories for move in history.status.open or ()}


def _put(histories: Rows[EvictionHistory], changed: EvictionHistory) -> Rows[EvictionHistory]:
    namespace = changed.metadata.namespace
    known = {one.metadata.name: one for one in histories.within(namespace)}
    part = NamespaceRows(namespace, {**known, changed.metadata.name: changed})
    parts = [one for one in histories.parts if one.namespace != namespace]
    return Rows(sorted((*parts, part), key=lambda one: one.namespace), identify)


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
