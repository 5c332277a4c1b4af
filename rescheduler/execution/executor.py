"""One move, from its plan to its outcome: does what `moving` says, step after step.

Nothing that matters stands in this process alone. It may be cancelled or killed at any point: whoever leads
next finds the move in its workload's history and takes it on (`resuming`).
"""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from msgspec.structs import replace

from reberth.cluster.kinds import POD
from reberth.memory.history import Ending, advance_move, close_move, draft_move, open_move
from reberth.memory.ledger import Disruption, add_debit, mark_spent, return_debit
from reberth.memory.notes import Notes, add_note, compose_note, remove_move
from reberth.records import Debit, EvictionHistory, MoveLedger, OpenMove, Outcome, Phase
from reberth.values.refusal import Refused
from rescheduler.execution.context import ExecutionContext, MoveHandle, make_handle
from rescheduler.execution.eviction import Evictor
from rescheduler.execution.replacement import ReplacementWatcher
from rescheduler.execution.store import HISTORY_GONE
from rescheduler.moves.lifecycle import MoveState, MoveStep, PodState, next_step, undo_reason
from rescheduler.moves.order import MoveOrder
from rescheduler.moves.outcome import MoveReport

_BIRTH = 1.05  # births are cut to the second; and a little for clocks that are not read at one instant
_LONGEST_WAIT_FOR_BIRTHS = 2.0  # where the API server's clock is ahead of ours
MOVE_UNDER_WAY = Refused("MoveUnderWay", "another move of the workload has not come to its end")


class Executor:
    """Carries out moves, any number at once, one of a workload at a time."""

    def __init__(self, context: ExecutionContext) -> None:
        self.open: set[str] = set()
        """The moves that hold their notes; `resuming` adds those that are found."""
        self.held: set[str] = set()
        """The moves that somebody works on here."""
        self._context = context

    async def move(self, order: MoveOrder, *, on_landing: Callable[[], None] = lambda: None) -> MoveReport:
        """Carry a new move out, to its outcome; `on_landing` hears that the replacement has a node."""
        await self._outlive_births(order)
        entry = self._draft(order)
        with self.holding(entry.id):
            return await self._move(order, entry, on_landing)

    @contextmanager
    def holding(self, move: str) -> Iterator[None]:
        """Work on a move: nobody else here takes it for one that was left."""
        self.held.add(move)
        try:
            yield
        finally:
            self.held.discard(move)

    async def _move(self, order: MoveOrder, entry: OpenMove, on_landing: Callable[[], None]) -> MoveReport:
        most = self._context.policy().limits.per_workload
        start = partial(_open_one, entry=entry, most=most)
        history = await self._context.store.start_history(order.signature, start)
        if isinstance(history, Refused):
            report = MoveReport(entry, Ending(Outcome.REFUSED), history)
            self._context.tell(f"{entry.id}: {report}")
            return report
        handle = dataclasses.replace(self._make_handle(order, entry, history), on_landing=on_landing)
        handle.reporter.tell(f"{entry.id}: {entry.pod} off {entry.from_} to {', '.join(order.destinations)}")
        settled = await self.settle(handle, MoveState(entry, None, noted=False, pod=PodState.ALIVE))
        return settled if isinstance(settled, MoveReport) else await self.follow(handle, settled)

    async def settle(self, handle: MoveHandle, seen: MoveState) -> MoveReport | OpenMove:
        """Take a move on until its pod is evicted and the debit spent, or it is closed."""
        self.open.add(seen.entry.id)
        doings = self._doings()
        while True:
            step = next_step(seen, now=self._context.clock())
            if step is MoveStep.VERIFY:
                return seen.entry
            if step is MoveStep.FORGET:
                return self._forget(handle, seen)
            if step is MoveStep.CLOSE:
                refused = undo_reason(seen, now=self._context.clock())
                return await self._close(handle, seen.entry, Ending(Outcome.REFUSED), refused)
            handle.reporter.tell(step.value)
            seen = await doings[step](handle, seen)

    async def follow(self, handle: MoveHandle, entry: OpenMove) -> MoveReport:
        """Wait for the outcome of a move whose pod is evicted, and write it down."""
        handle.reporter.tell("waiting for the replacement")
        ending = await ReplacementWatcher(self._context, handle).follow(entry)
        return await self._close(handle, entry, ending, None)

    async def _outlive_births(self, order: MoveOrder) -> None:
        """Wait until none of the pods that are there can be taken for the replacement."""
        pods = self._context.mirror.cache.of(POD).within(order.signature.namespace)
        births = [pod.created for pod in pods if pod.template.controller == order.signature.controller]
        left = max(births, default=0.0) + _BIRTH - self._context.clock()
        await asyncio.sleep(min(max(left, 0.0), _LONGEST_WAIT_FOR_BIRTHS))

    def _draft(self, order: MoveOrder) -> OpenMove:
        return draft_move(
            order.pod,
            order.signature,
            move=order.move,
            destinations=order.destinations,
            policy=order.policy,
            reason=order.reason,
            now=self._context.clock(),
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

    def _doings(self) -> Mapping[MoveStep, Callable[[MoveHandle, MoveState], Awaitable[MoveState]]]:
        return {
            MoveStep.RESERVE_BUDGET: self._enter_debit,
            MoveStep.WRITE_NOTE: self._write_note,
            MoveStep.ADVANCE_TO_NOTED: partial(self._advance, phase=Phase.NOTED),
            MoveStep.EVICT: self._evict,
            MoveStep.ADVANCE_TO_EVICTED: partial(self._advance, phase=Phase.EVICTED),
            MoveStep.COMMIT_BUDGET: self._spend_debit,
            MoveStep.REMOVE_NOTE: self._remove_note,
            MoveStep.RELEASE_BUDGET: self._return_debit,
        }

    async def _enter_debit(self, handle: MoveHandle, seen: MoveState) -> MoveState:
        disruption = Disruption(seen.entry.id, handle.namespace, handle.workload.uid)
        limits, now = self._context.policy().limits.rates, self._context.clock()
        return await self._change_ledger(
            seen, partial(add_debit, limits=limits, disruption=disruption, now=now)
        )

    async def _spend_debit(self, _handle: MoveHandle, seen: MoveState) -> MoveState:
        return await self._change_ledger(
            seen, partial(mark_spent, move=seen.entry.id, now=self._context.clock())
        )

    async def _return_debit(self, _handle: MoveHandle, seen: MoveState) -> MoveState:
        return await self._change_ledger(seen, partial(return_debit, move=seen.entry.id))

    async def _change_ledger(
        self, seen: MoveState, change: Callable[[MoveLedger], MoveLedger | Refused]
    ) -> MoveState:
        ledger = await self._context.store.change_ledger(change)
        if isinstance(ledger, Refused):
            return replace(seen, debit=None, refused=seen.refused or ledger)
        return replace(seen, debit=find_debit(ledger, seen.entry.id))

    async def _write_note(self, handle: MoveHandle, seen: MoveState) -> MoveState:
        now = self._context.clock()

        def add(notes: Notes) -> Notes | Refused:
            return (
                notes if handle.note is None else add_note(notes, handle.note, now=now, open_moves=self.open)
            )

        node = await self._context.store.change_notes(seen.entry.from_, add)
        if isinstance(node, Refused):
            return replace(seen, refused=node)
        return replace(seen, noted=True, node_version=node.metadata.resource_version)

    async def _remove_note(self, _handle: MoveHandle, seen: MoveState) -> MoveState:
        """Remove the note. Where the node is gone, or somebody has spoilt its annotation, there is none."""
        remove = partial(remove_move, move=seen.entry.id)
        await self._context.store.change_notes(seen.entry.from_, remove)
        return replace(seen, noted=False, refused=undo_reason(seen, now=self._context.clock()))

    async def _evict(self, handle: MoveHandle, seen: MoveState) -> MoveState:
        return await Evictor(self._context, handle).evict(seen)

    async def _advance(self, handle: MoveHandle, seen: MoveState, *, phase: Phase) -> MoveState:
        change = partial(advance_move, move_id=seen.entry.id, phase=phase, now=self._context.clock())
        history = await self._context.store.change_history(handle.namespace, handle.history, change)
        entry = None if isinstance(history, Refused) else find_open(history, seen.entry.id)
        if isinstance(history, Refused) or entry is None:
            return replace(seen, history_gone=True)
        if phase == Phase.EVICTED:
            handle.reporter.evicted(entry)
        return replace(seen, entry=entry, history_version=history.metadata.resource_version)

    async def _close(
        self, handle: MoveHandle, entry: OpenMove, ending: Ending, refused: Refused | None
    ) -> MoveReport:
        """Write the outcome down. A history that is gone has nothing to remember any more."""
        back_off, before = self._context.policy().limits.back_off, ""

        def close(history: EvictionHistory) -> EvictionHistory | Refused:
            nonlocal before
            before = history.status.given_up_until or ""
            return close_move(history, entry.id, ending, now=self._context.clock(), back_off=back_off)

        history = await self._context.store.change_history(handle.namespace, handle.history, close)
        given_up = "" if isinstance(history, Refused) else history.status.given_up_until or ""
        if given_up > before:
            handle.reporter.given_up(given_up)
        return self._finish(handle, MoveReport(entry, ending, refused))

    def _forget(self, handle: MoveHandle, seen: MoveState) -> MoveReport:
        """End a move that nobody remembers: its workload is gone."""
        if seen.pod == PodState.ALIVE:
            return self._finish(handle, MoveReport(seen.entry, Ending(Outcome.REFUSED), HISTORY_GONE))
        return self._finish(handle, MoveReport(seen.entry, Ending(Outcome.GONE)))

    def _finish(self, handle: MoveHandle, report: MoveReport) -> MoveReport:
        self.open.discard(report.move)
        handle.reporter.ended(report)
        handle.reporter.tell(f"{report.move}: {report}")
        return report


def find_open(history: EvictionHistory, move: str) -> OpenMove | None:
    return next((one for one in history.status.open or () if one.id == move), None)


def find_debit(ledger: MoveLedger, move: str) -> Debit | None:
    return next((one for one in ledger.status.debits or () if one.move == move), None)


def _open_one(history: EvictionHistory, *, entry: OpenMove, most: int | None) -> EvictionHistory | Refused:
    """Open a move if no others of the workload are under way, or fewer than may be."""
    others = [one for one in history.status.open or () if one.id != entry.id]
    if most is not None and len(others) >= max(most, 1):
        return MOVE_UNDER_WAY
    return open_move(history, entry)
