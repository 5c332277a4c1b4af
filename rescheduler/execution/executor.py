"""Executes one move, step by step, as `moves/lifecycle.py` decides.

Everything that matters is stored in the cluster. The process may be cancelled or killed at any point: the
next leader finds the move in its workload's eviction history and continues it (`recovery.py`).
"""

import asyncio
import dataclasses
import math
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from msgspec.structs import replace

from reberth.cluster.kinds import HISTORY, POD
from reberth.memory.backoff import instant
from reberth.memory.history import (
    Ending,
    advance_move,
    await_ready,
    close_move,
    draft_move,
    open_move,
)
from reberth.memory.ledger import Disruption, add_debit, mark_spent, return_debit
from reberth.memory.notes import Notes, add_note, compose_note, remove_move
from reberth.memory.refusals import note_refusal
from reberth.memory.replacements import list_known
from reberth.records import Debit, EvictionHistory, MoveLedger, OpenMove, Outcome, Phase, RememberedRefusal
from reberth.values.refusal import Refused
from rescheduler.budgets.refused_before import collect_refusals
from rescheduler.execution.context import NO_HOOKS, ExecutionContext, MoveHandle, MoveHooks, make_handle
from rescheduler.execution.eviction import Evictor, watch_pod
from rescheduler.execution.replacement import ReplacementWatcher
from rescheduler.execution.store import HISTORY_GONE
from rescheduler.execution.validation import MoveValidator
from rescheduler.model.refusal_memory import KnownRefusal, RefusalMemory
from rescheduler.model.refusal_scopes import Scope, find_key, find_scope, is_disproved
from rescheduler.moves.lifecycle import MoveState, MoveStep, PodState, next_step, undo_reason
from rescheduler.moves.order import MoveOrder
from rescheduler.moves.outcome import UNDRAWN, MoveReport, judge_landing
from rescheduler.settings import LONGEST_REQUEST

MOVE_UNDER_WAY = Refused("MoveUnderWay", "another move of the workload has not ended")


class Executor:
    """Executes moves: any number at once, and of one workload as many as the policy allows."""

    def __init__(self, context: ExecutionContext) -> None:
        self.open: set[str] = set()
        """Moves whose notes must be kept; recovery adds those that it finds."""
        self.held: set[str] = set()
        """Moves that this process is working on."""
        self._begun: set[str] = set()  # those of them that it has begun itself
        self._doubted: dict[str, float] = {}  # when moves were interrupted, by the clock of the event loop
        self._took_over = _loop_time()
        self._context = context
        self._validator = MoveValidator(context)

    async def move(self, order: MoveOrder, hooks: MoveHooks = NO_HOOKS) -> MoveReport:
        """Execute a new move to its outcome."""
        entry = self._draft(order)
        self._begun.add(entry.id)
        try:
            with self.holding(entry.id):
                return await self._move(order, entry, hooks)
        finally:
            self._begun.discard(entry.id)

    @contextmanager
    def holding(self, move: str) -> Iterator[None]:
        """Mark a move as being worked on; otherwise recovery would take it for one that was left behind."""
        self.held.add(move)
        try:
            yield
        except BaseException:
            self._remember_doubt(move)
            raise
        finally:
            self.held.discard(move)

    def is_in_doubt(self, move: str) -> bool:
        """Tell whether an eviction may be on its way that an earlier leader, or an interrupted try, sent."""
        return _loop_time() < self._end_doubt(move)

    async def _move(self, order: MoveOrder, entry: OpenMove, hooks: MoveHooks) -> MoveReport:
        most = self._context.policy().limits.per_workload
        # The first write: a move that no history records could not be found and undone after a crash.
        start = partial(
            _open_one,
            entry=entry,
            most=most,
            begun=self._begun,
            least=self._context.settings().replacement_timeout,
            progress_deadline=self._context.find_progress_deadline(order.signature),
        )
        history = await self._context.store.start_history(order.signature, start)
        if isinstance(history, Refused):
            report = MoveReport(entry, Ending(Outcome.REFUSED), history)
            self._context.tell(f"{entry.id}: {report}")
            return report
        entry = find_open(history, entry.id) or entry
        handle = dataclasses.replace(self._make_handle(order, entry, history), hooks=hooks)
        handle.reporter.tell(f"{entry.id}: {entry.pod} off {entry.from_} to {', '.join(order.destinations)}")
        for remark in list_remarks(history, self._context.clock()):
            handle.reporter.tell(remark)
        settled = await self.settle(handle, MoveState(entry, None, noted=False, pod=PodState.ALIVE))
        return settled if isinstance(settled, MoveReport) else await self.finish(handle, settled)

    async def settle(self, handle: MoveHandle, state: MoveState) -> MoveReport | MoveState:
        """Execute steps until the move is closed or has to wait: `finish` waits."""
        self.open.add(state.entry.id)
        actions = self._actions()
        while True:
            step = next_step(state, now=self._context.clock())
            if step in (MoveStep.VERIFY, MoveStep.AWAIT_EVICTION):
                return state
            if step is MoveStep.FORGET:
                return self._end_without_history(handle, state)
            if step is MoveStep.CLOSE:
                refused = undo_reason(state, now=self._context.clock())
                return await self._close(handle, state.entry, Ending(Outcome.REFUSED), refused)
            handle.reporter.tell(step.value)
            state = await actions[step](handle, state)

    async def finish(self, handle: MoveHandle, state: MoveState) -> MoveReport:
        """Wait for the outcome of a settled move, and record it."""
        settled: MoveReport | MoveState = state
        while isinstance(settled, MoveState) and settled.entry.phase is not Phase.EVICTED:
            settled = await self.settle(handle, await self._await_eviction(handle, settled))
        return settled if isinstance(settled, MoveReport) else await self._follow(handle, settled.entry)

    async def _await_eviction(self, handle: MoveHandle, state: MoveState) -> MoveState:
        """Wait until an eviction that was sent before has taken effect, or cannot do so any more."""
        entry = state.entry
        handle.reporter.tell(MoveStep.AWAIT_EVICTION.value)
        until = self._end_doubt(entry.id)
        pod = await watch_pod(self._context, handle.namespace, entry, until=until)
        return replace(state, pod=pod, in_doubt=False)

    def _remember_doubt(self, move: str) -> None:
        now = _loop_time()
        living = {each: since for each, since in self._doubted.items() if now < since + LONGEST_REQUEST}
        self._doubted = {**living, move: now}

    def _end_doubt(self, move: str) -> float:
        return max(self._took_over, self._doubted.get(move, -math.inf)) + LONGEST_REQUEST

    async def _follow(self, handle: MoveHandle, entry: OpenMove) -> MoveReport:
        handle.reporter.tell("waiting for the replacement")
        context = self._context
        ending = await ReplacementWatcher(context, handle, self._validator).follow(entry)
        landing = judge_landing(entry, ending, extender=context.settings().extender, find=context.find_node)
        if landing and landing.cause != UNDRAWN:
            ending = replace(ending, as_forecast=landing.as_forecast)
        return replace(await self._close(handle, entry, ending, None), landing=landing)

    def _draft(self, order: MoveOrder) -> OpenMove:
        now, pods = self._context.clock(), self._context.mirror.cache.of(POD)
        siblings = pods.within(order.signature.namespace)
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
            MoveStep.RESERVE_BUDGET: self._reserve_budget,
            MoveStep.WRITE_NOTE: self._write_note,
            MoveStep.ADVANCE_TO_NOTED: partial(self._advance, phase=Phase.NOTED),
            MoveStep.EVICT: self._evict,
            MoveStep.ADVANCE_TO_EVICTED: partial(self._advance, phase=Phase.EVICTED),
            MoveStep.COMMIT_BUDGET: self._commit_budget,
            MoveStep.REMOVE_NOTE: self._remove_note,
            MoveStep.RELEASE_BUDGET: self._release_budget,
        }

    async def _reserve_budget(self, handle: MoveHandle, state: MoveState) -> MoveState:
        """Reserve a disruption in the ledger. Without it, moves could exceed the rates after a restart."""
        disruption = Disruption(state.entry.id, handle.namespace, handle.workload.uid)
        limits, now = self._context.policy().limits.rates, self._context.clock()
        return await self._change_ledger(
            state, partial(add_debit, limits=limits, disruption=disruption, now=now)
        )

    async def _commit_budget(self, _handle: MoveHandle, state: MoveState) -> MoveState:
        """Start the period of the rate. A debit that is never committed would be counted forever."""
        limits, now = self._context.policy().limits.rates, self._context.clock()
        return await self._change_ledger(
            state, partial(mark_spent, move=state.entry.id, limits=limits, now=now)
        )

    async def _release_budget(self, _handle: MoveHandle, state: MoveState) -> MoveState:
        """Give back a disruption that did not happen: it would be counted forever."""
        return await self._change_ledger(state, partial(return_debit, move=state.entry.id))

    async def _change_ledger(
        self, state: MoveState, change: Callable[[MoveLedger], MoveLedger | Refused]
    ) -> MoveState:
        ledger = await self._context.store.change_ledger(change)
        if isinstance(ledger, Refused):
            return replace(state, debit=None, refused=state.refused or ledger)
        return replace(state, debit=find_debit(ledger, state.entry.id))

    async def _write_note(self, handle: MoveHandle, state: MoveState) -> MoveState:
        """Write the note on the source node. Without it, the replacement could return there."""
        now = self._context.clock()

        def add(notes: Notes) -> Notes | Refused:
            return (
                notes if handle.note is None else add_note(notes, handle.note, now=now, open_moves=self.open)
            )

        node = await self._context.store.change_notes(state.entry.from_, add)
        if isinstance(node, Refused):
            return replace(state, refused=node)
        return replace(state, noted=True, node_version=node.metadata.resource_version)

    async def _remove_note(self, _handle: MoveHandle, state: MoveState) -> MoveState:
        """Remove the note: it would keep the workload away from a node that it may use again.

        If the node is gone or its annotation is unreadable, there is no note to remove.
        """
        remove = partial(remove_move, move=state.entry.id)
        await self._context.store.change_notes(state.entry.from_, remove)
        return replace(state, noted=False, refused=undo_reason(state, now=self._context.clock()))

    async def _evict(self, handle: MoveHandle, state: MoveState) -> MoveState:
        """Evict the pod, after the checks of `eviction.py`: the plan is seconds old by now."""
        return await Evictor(self._context, handle, self._validator).evict(state)

    async def _advance(self, handle: MoveHandle, state: MoveState, *, phase: Phase) -> MoveState:
        """Record the phase: by it the next leader decides whether to undo the move or to continue it."""
        entry, disproved = state.entry, list[RememberedRefusal]()

        def advance(history: EvictionHistory) -> EvictionHistory | Refused:
            disproved[:] = _list_disproved(history, state) if phase == Phase.EVICTED else []
            return advance_move(
                history, entry.id, phase, now=self._context.clock(), disproves=disproved.__contains__
            )

        history = await self._context.store.change_history(handle.namespace, handle.history, advance)
        if state.granted and phase == Phase.EVICTED:
            handle.hooks.on_grant(handle.name, tuple(disproved))
        found = None if isinstance(history, Refused) else find_open(history, entry.id)
        if isinstance(history, Refused) or found is None:
            return replace(state, history_gone=True)
        if phase == Phase.EVICTED:
            handle.reporter.evicted(found)
            handle.hooks.on_eviction()
        return replace(state, entry=found, history_version=history.metadata.resource_version)

    async def _close(
        self, handle: MoveHandle, entry: OpenMove, ending: Ending, refused: Refused | None
    ) -> MoveReport:
        """Record the outcome: without it the back-off would not know that the move brought nothing.

        Likewise what refused it, or the next plan would propose it again. If the history is gone, its
        workload is gone, and there is nothing to remember.
        """
        back_off, before = self._context.policy().limits.back_off, ""
        remembered: RememberedRefusal | None = None

        def close(history: EvictionHistory) -> EvictionHistory | Refused:
            nonlocal before, remembered
            before, now = history.status.given_up_until or "", self._context.clock()
            remembered = self._note_refusal(history, entry, refused, now) if refused else None
            return close_move(history, entry.id, ending, now=now, back_off=back_off, refusal=remembered)

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

    def _end_without_history(self, handle: MoveHandle, state: MoveState) -> MoveReport:
        """End a move whose history is gone, because its workload was deleted."""
        if state.pod == PodState.ALIVE:
            return self._finish(handle, MoveReport(state.entry, Ending(Outcome.REFUSED), HISTORY_GONE))
        return self._finish(handle, MoveReport(state.entry, Ending(Outcome.GONE)))

    def _finish(self, handle: MoveHandle, report: MoveReport) -> MoveReport:
        self.open.discard(report.move)
        self._doubted.pop(report.move, None)
        handle.reporter.ended(report)
        handle.reporter.tell(f"{report.move}: {report}")
        return report


def _list_disproved(history: EvictionHistory, state: MoveState) -> list[RememberedRefusal]:
    """List the refusals that the eviction disproves, if it was granted to us."""
    uid, node = state.entry.pod_uid, state.entry.from_
    refused = (history.status.refused or ()) if state.granted else ()
    return [one for one in refused if is_disproved(one, uid=uid, node=node)]


def list_remarks(history: EvictionHistory, now: float) -> list[str]:
    """Tell a person what has refused the workload's moves before: their request is tried all the same."""
    waiting = [one for one in history.status.refused or () if instant(one.until) > now]
    return [f"refused before: {one.rule}, for plans until {one.until}: {one.reason}" for one in waiting]


def find_open(history: EvictionHistory, move: str) -> OpenMove | None:
    return next((one for one in history.status.open or () if one.id == move), None)


def find_debit(ledger: MoveLedger, move: str) -> Debit | None:
    return next((one for one in ledger.status.debits or () if one.move == move), None)


def _open_one(
    history: EvictionHistory,
    *,
    entry: OpenMove,
    most: int | None,
    begun: Collection[str],
    least: float,
    progress_deadline: float,
) -> EvictionHistory | Refused:
    """Add the move to the history if fewer than `most` moves of the workload are open.

    This check and the write are one: without it two moves could each find that none is open. A Noted move
    that was not begun here stops every other one: an earlier leader's request may still evict its pod.
    """
    others = [one for one in history.status.open or () if one.id != entry.id]
    left = any(one.phase == Phase.NOTED and one.id not in begun for one in others)
    if left or (most is not None and len(others) >= max(most, 1)):
        return MOVE_UNDER_WAY
    awaited = await_ready(entry, history, least=least, progress_deadline=progress_deadline)
    return open_move(history, awaited)


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
