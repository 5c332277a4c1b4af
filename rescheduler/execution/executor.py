"""Executes one move, step by step, as `moves/lifecycle.py` decides.

Everything that matters is stored in the cluster. The process may be cancelled or killed at any point: the
next leader finds the move in its workload's eviction history and continues it (`recovery.py`).
"""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TypeVar, cast

from msgspec.structs import replace

from reberth.cluster.kinds import HISTORY, POD
from reberth.memory.history import (
    Ending,
    await_ready,
    close_move,
    draft_move,
)
from reberth.memory.ledger import Disruption
from reberth.memory.notes import Notes, add_note, compose_note, remove_move, renew_note
from reberth.memory.refusals import note_refusal
from reberth.memory.replacements import list_known
from reberth.records import (
    Debit,
    DebitState,
    EvictionHistory,
    Node,
    OpenMove,
    Outcome,
    Phase,
    RememberedRefusal,
)
from reberth.values.refusal import Refused
from rescheduler.budgets.node_pools import find_pool, write_pool
from rescheduler.budgets.refused_before import collect_refusals
from rescheduler.execution.context import NO_HOOKS, ExecutionContext, MoveHandle, MoveHooks, make_handle
from rescheduler.execution.eviction import Evictor, watch_pod
from rescheduler.execution.replacement import ReplacementWatcher
from rescheduler.execution.store import carries_note
from rescheduler.execution.validation import MoveValidator
from rescheduler.model.refusal_memory import KnownRefusal, RefusalMemory
from rescheduler.model.refusal_scopes import Scope, find_key, find_scope
from rescheduler.moves.lifecycle import (
    MoveState,
    MoveStep,
    PodState,
    count_from,
    next_step,
    undo_reason,
)
from rescheduler.moves.move_tracker import MoveTracker
from rescheduler.moves.order import MoveOrder
from rescheduler.moves.outcome import UNDRAWN, MoveReport, judge_landing
from rescheduler.moves.workload_moves import find_open, list_disproved, list_remarks, open_another

A = TypeVar("A")
B = TypeVar("B")


class Executor:
    """Executes moves: any number at once, and of one workload as many as the policy allows."""

    def __init__(self, context: ExecutionContext) -> None:
        self.moves = MoveTracker(_loop_time, patience=lambda: context.settings().eviction_timeout)
        self._context = context
        self._validator = MoveValidator(context)

    async def move(self, order: MoveOrder, hooks: MoveHooks = NO_HOOKS) -> MoveReport:
        """Execute a new move to its outcome."""
        entry = self._draft(order)
        self.moves.track(entry.id).is_begun = True
        with self.moves.holding(entry.id):
            return await self._move(order, entry, hooks)

    async def _move(self, order: MoveOrder, entry: OpenMove, hooks: MoveHooks) -> MoveReport:
        # The first write: a move that no history records could not be found and undone after a crash.
        start = partial(
            open_another,
            entry=entry,
            most=self._context.count_most_moves(order.signature),
            settled=self.moves.settled,
            give_time=self._give_time(order),
        )
        history = await self._context.store.start_history(order.signature, start)
        if isinstance(history, Refused):
            self.moves.forget(entry.id)
            report = MoveReport(entry, Ending(Outcome.REFUSED), history)
            self._context.tell(f"{entry.id}: {report}")
            return report
        entry = find_open(history, entry.id) or entry
        handle = dataclasses.replace(self._make_handle(order, entry, history), hooks=hooks)
        handle.reporter.tell(f"{entry.id}: {entry.pod} off {entry.from_} to {', '.join(order.destinations)}")
        for remark in list_remarks(history, self._context.clock()):
            handle.reporter.tell(remark)
        version = history.metadata.resource_version
        begun = MoveState(entry, None, noted=False, pod=PodState.ALIVE, history_version=version)
        at_rest = await self.settle(handle, begun)
        return at_rest if isinstance(at_rest, MoveReport) else await self.finish(handle, at_rest)

    async def settle(self, handle: MoveHandle, state: MoveState) -> MoveReport | MoveState:
        """Execute steps until the move is closed or has to wait: `finish` waits."""
        self.moves.track(state.entry.id).keeps_note = True
        actions = self._actions()
        while True:
            step = next_step(state, now=self._context.clock())
            if step is MoveStep.VERIFY:
                self.moves.track(state.entry.id).is_evicted = True
            if step in (MoveStep.VERIFY, MoveStep.AWAIT_EVICTION):
                return state
            if step is MoveStep.CLOSE:
                refused = undo_reason(state, now=self._context.clock())
                return await self._close(handle, state, Ending(Outcome.REFUSED), refused)
            handle.reporter.tell(step.value)
            state = await actions[step](handle, state)

    async def finish(self, handle: MoveHandle, state: MoveState) -> MoveReport:
        """Wait for the outcome of a settled move, and record it."""
        settled: MoveReport | MoveState = state
        while isinstance(settled, MoveState) and settled.entry.phase is not Phase.EVICTED:
            settled = await self.settle(handle, await self._await_eviction(handle, settled))
        return settled if isinstance(settled, MoveReport) else await self._follow(handle, settled)

    async def _await_eviction(self, handle: MoveHandle, state: MoveState) -> MoveState:
        """Wait until an eviction that was sent before has taken effect, or cannot do so any more."""
        handle.reporter.tell(MoveStep.AWAIT_EVICTION.value)
        until = self.moves.find_end_of_doubt(state.entry.id)
        state = await watch_pod(self._context, handle.namespace, state, until=until)
        node = await self._context.store.read_node(state.entry.from_)
        return replace(
            state,
            debit=await self._context.ledger.read(state.entry, handle.namespace),
            noted=carries_note(node, state.entry, handle.namespace),
            in_doubt=False,
        )

    async def _follow(self, handle: MoveHandle, state: MoveState) -> MoveReport:
        handle.reporter.tell("waiting for the replacement")
        context, entry = self._context, state.entry
        watcher = ReplacementWatcher(context, handle, self._validator, evicted_at=state.evicted_at)
        ending = await watcher.follow(entry)
        landing = judge_landing(entry, ending, extender=context.settings().extender, find=context.find_node)
        if landing and landing.cause != UNDRAWN:
            ending = replace(ending, as_forecast=landing.as_forecast)
        return replace(await self._close(handle, state, ending, None), landing=landing)

    def _give_time(self, order: MoveOrder) -> Callable[[OpenMove, EvictionHistory], OpenMove]:
        return partial(
            await_ready,
            least=self._context.settings().replacement_timeout,
            progress_deadline=self._context.find_progress_deadline(order.signature),
            stays=self._context.find_min_ready(order.signature.controller.uid),
        )

    def _draft(self, order: MoveOrder) -> OpenMove:
        now, pods = self._context.clock(), self._context.mirror.cache.of(POD)
        siblings = pods.group(order.signature.namespace, order.signature.controller.uid).values()
        return draft_move(
            order.pod,
            order.signature,
            move=order.move,
            destinations=order.destinations,
            policy=order.policy,
            reason=order.reason,
            known_pods=list_known(siblings, order.signature.controller.uid, now=now),
            now=now,
        )

    def _make_handle(self, order: MoveOrder, entry: OpenMove, history: EvictionHistory) -> MoveHandle:
        note = compose_note(
            order.signature,
            entry.id,
            policy=order.policy,
            reason=order.reason,
            now=self._context.clock(),
            life=self._context.settings().note_life,
        )
        return dataclasses.replace(make_handle(self._context, history), note=note)

    def _actions(self) -> Mapping[MoveStep, Callable[[MoveHandle, MoveState], Awaitable[MoveState]]]:
        return {
            MoveStep.PREPARE: self._prepare,
            MoveStep.RENEW: self._renew,
            MoveStep.EVICT: self._evict,
            MoveStep.COUNT: self._count,
            MoveStep.UNDO: self._undo,
        }

    async def _prepare(self, handle: MoveHandle, state: MoveState) -> MoveState:
        """Reserve a disruption and write the note on the source node, side by side.

        Without the debit, moves could exceed the rates after a restart; without the note, the replacement
        could return to its node.
        """
        return await self._take_answers(
            state,
            self._context.ledger.reserve(
                self._describe_disruption(handle, state.entry),
                self._context.find_rates(handle.namespace, handle.workload),
            ),
            self._write_note(handle, state.entry),
        )

    async def _renew(self, handle: MoveHandle, state: MoveState) -> MoveState:
        """Write debit and note of an earlier leader's move again, before its pod is evicted.

        That leader may have sent requests to return the debit and to remove the note: they meet a conflict.
        """
        now = self._context.clock()
        renew = partial(renew_note, move=state.entry, namespace=handle.namespace, now=now)
        return await self._take_answers(
            replace(state, renewed=True),
            self._context.ledger.renew(
                self._describe_disruption(handle, state.entry),
                self._context.find_rates(handle.namespace, handle.workload),
            ),
            self._context.store.change_notes(state.entry.from_, renew),
        )

    async def _take_answers(
        self,
        state: MoveState,
        reserving: Awaitable[Debit | Refused | None],
        noting: Awaitable[Node | Refused],
    ) -> MoveState:
        """Take what was written; where a write was refused, the move keeps what it had, and returns it."""
        debit, node = await _side_by_side(reserving, noting)
        refusals = [each for each in (debit, node) if isinstance(each, Refused)]
        return replace(
            state,
            debit=state.debit if isinstance(debit, Refused) else debit,
            noted=state.noted or isinstance(node, Node),
            refused=next(iter(refusals), None),
            node_version=node.metadata.resource_version if isinstance(node, Node) else "",
        )

    def _describe_disruption(self, handle: MoveHandle, entry: OpenMove) -> Disruption:
        context = self._context
        node = context.find_node(entry.from_)
        workload = context.mirror.cache.with_uid(handle.namespace, handle.workload)
        pool = find_pool(node, context.policy().brakes.node_pool_labels) if node else ("", "")
        return Disruption(
            entry.id,
            handle.namespace,
            workload.uid,
            pod=entry.pod,
            pod_uid=entry.pod_uid,
            policy=entry.policy,
            pool=write_pool(pool),
        )

    async def _write_note(self, handle: MoveHandle, entry: OpenMove) -> Node | Refused:
        now = self._context.clock()

        def add(notes: Notes) -> Notes | Refused:
            if handle.note is None:
                return notes
            return add_note(notes, handle.note, now=now, open_moves=self.moves.noted)

        return await self._context.store.change_notes(entry.from_, add)

    async def _undo(self, handle: MoveHandle, state: MoveState) -> MoveState:
        """Remove the note and return the debit of a disruption that did not happen, side by side.

        The note would keep the workload away from a node that it may use again; the debit would be counted
        forever. If the node is gone or its annotation is unreadable, there is no note to remove.
        """
        refused = undo_reason(state, now=self._context.clock())
        await _side_by_side(
            self._remove_note(handle, state) if state.noted else _do_nothing(),
            self._context.ledger.give_back(state.entry.id) if state.debit else _do_nothing(),
        )
        return replace(state, noted=False, debit=None, refused=refused)

    async def _remove_note(self, handle: MoveHandle, state: MoveState) -> None:
        remove = partial(remove_move, move=state.entry, namespace=handle.namespace)
        await self._context.store.change_notes(state.entry.from_, remove)

    async def _evict(self, handle: MoveHandle, state: MoveState) -> MoveState:
        """Evict the pod, after the checks of `eviction.py`: the plan is seconds old by now."""
        self.moves.track(state.entry.id).may_evict = True
        evicted = await Evictor(self._context, handle, self._validator).evict(state)
        if evicted.granted:
            history = self._context.store.find_history(handle.namespace, handle.history)
            evicted = replace(evicted, disproved=list_disproved(history, evicted.entry))
            handle.hooks.on_grant(handle.name, evicted.disproved)
        return evicted

    async def _count(self, handle: MoveHandle, state: MoveState) -> MoveState:
        """Start the period of the rate. It is written a moment later; a new leader finds what was not."""
        self._context.ledger.spend(self._describe_disruption(handle, state.entry), count_from(state))
        handle.hooks.on_eviction()
        return replace(state, debit=state.debit and replace(state.debit, state=DebitState.SPENT))

    async def _close(
        self, handle: MoveHandle, state: MoveState, ending: Ending, refused: Refused | None
    ) -> MoveReport:
        """Record the outcome: without it the back-off would not know that the move brought nothing.

        Likewise what refused it, or the next plan would propose it again. If the history is gone, its
        workload is gone, and there is nothing to remember.
        """
        back_off, before, entry = self._context.policy().limits.back_off, "", state.entry
        remembered: RememberedRefusal | None = None

        def close(history: EvictionHistory) -> EvictionHistory | Refused:
            nonlocal before, remembered
            now = self._context.clock()
            if find_open(history, entry.id):  # else an answer was lost, and the first one counts
                before = history.status.given_up_until or ""
                remembered = self._note_refusal(history, entry, refused, now) if refused else None
            return close_move(
                history,
                entry.id,
                ending,
                now=now,
                back_off=back_off,
                evicted_at=entry.evicted_at,
                refusal=remembered,
                disproved=state.disproved,
            )

        history = await self._context.store.change_history(handle.namespace, handle.history, close)
        given_up = "" if isinstance(history, Refused) else history.status.given_up_until or ""
        if given_up > before:
            handle.reporter.given_up(given_up)
        known = KnownRefusal(handle.name, remembered) if remembered else None
        return self._finish(handle, MoveReport(entry, ending, refused, remembered=known))

    def _note_refusal(
        self, history: EvictionHistory, entry: OpenMove, refused: Refused, now: float
    ) -> RememberedRefusal | None:
        """Describe a refusal that the next plan cannot foresee: the nth in a row, of whatever workload."""
        if find_scope(refused.rule) is Scope.NOTHING:
            return None
        key = find_key(refused, history.metadata.namespace, uid=entry.pod_uid, node=entry.from_)
        others = self._context.mirror.cache.of(HISTORY).rows()
        shared = collect_refusals(others, RefusalMemory(), now).shared.values()
        before = (*(history.status.refused or ()), *(replace(one.last, count=one.times) for one in shared))
        return note_refusal(refused, key=key, before=before, now=now)

    def _finish(self, handle: MoveHandle, report: MoveReport) -> MoveReport:
        self.moves.forget(report.move)
        handle.reporter.ended(report)
        handle.reporter.tell(f"{report.move}: {report}")
        return report


async def _side_by_side(first: Awaitable[A], second: Awaitable[B]) -> tuple[A, B]:
    """Wait for both, also if one fails: what it has done must be known before anything else is done."""
    done = await asyncio.gather(first, second, return_exceptions=True)
    for each in done:
        if isinstance(each, BaseException):
            raise each
    return cast("tuple[A, B]", tuple(done))


async def _do_nothing() -> None:
    pass


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
