"""Recovery: open moves that nobody is working on are settled before anything new is planned.

Otherwise a plan would count neither the pods that are already being moved nor the budget that they use.

What is recorded is read from the API server, not from the cache: what an earlier leader sent last may not
have reached it. Noted moves whose pods are alive are validated and made, or undone; the others are waited
for.

A tentative debit without an open move is what an interruption has left, or the request of an earlier leader
that arrived late. If its pod is alive, it is returned, but only when no eviction can be on its way any more.
Otherwise it is marked as Spent: it cannot be proved that no pod was evicted for it.

Moves of this process begin and end while the histories are listed, and a list may be delayed. So the list
only tells which moves to look at. Whether one is left behind is asked when it is about to be resumed: first
whether this process is working on it, then its history is read again.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from functools import partial
from typing import NamedTuple, TypeVar

from reberth.client.lease import LeaseLost
from reberth.cluster.kinds import HISTORIES
from reberth.memory.backoff import instant
from reberth.memory.ledger import Disruption, correct_debits
from reberth.records import Debit, DebitState, EvictionHistory, MoveLedger, OpenMove
from reberth.runtime.faults import handling
from reberth.values.errors import ReberthError
from rescheduler.execution.context import ExecutionContext, MoveHandle, make_handle
from rescheduler.execution.executor import Executor
from rescheduler.execution.store import carries_note
from rescheduler.moves.lifecycle import MoveState, PodState, find_termination, judge_pod, take_sighting
from rescheduler.moves.outcome import MoveReport
from rescheduler.moves.workload_moves import find_open
from rescheduler.telemetry import metrics

T = TypeVar("T")

_FIRST_PAUSE, _LONGEST_PAUSE = 10.0, 600.0


class UnsettledMoves:
    """Moves and debits that could not be settled: each is left alone for a pause that doubles.

    They stand in the objects meanwhile, so they count for every limit.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._pauses: dict[str, tuple[float, float]] = {}  # how long, and until when

    def __len__(self) -> int:
        return len(self._pauses)

    def is_resting(self, move: str) -> bool:
        """Tell whether a move is left alone now."""
        return move in self._pauses and self._clock() < self._pauses[move][1]

    def note(self, move: str) -> None:
        pause = min(2 * self._pauses[move][0], _LONGEST_PAUSE) if move in self._pauses else _FIRST_PAUSE
        self._pauses[move] = pause, self._clock() + pause

    def keep(self, moves: Collection[str]) -> None:
        """Forget all other moves: they have ended."""
        self._pauses = {move: rest for move, rest in self._pauses.items() if move in moves}


class ResumedMove(NamedTuple):
    """A move that was left behind: its report if it has ended, else what to finish it from."""

    handle: MoveHandle
    settled: MoveReport | MoveState


async def resume_moves(
    context: ExecutionContext, executor: Executor, unsettled: UnsettledMoves
) -> AsyncIterator[ResumedMove]:
    """Settle all open moves that this process is not working on.

    Those that have not ended are finished by the caller, who says with `moves.holding` that it does. A
    move that cannot be settled does not keep the others from it: it is told, and left alone for a while.
    """
    given_up = executor.moves.list_left()
    # The ledger first: a move is recorded before its debit, so a list made later has every move of a debit.
    ledger = await context.store.read_ledger()
    pages = context.api.list_pages(HISTORIES)
    histories = [history async for page in pages for history in page.objects]
    recorded = {move.id for history in histories for move in history.status.open or ()}
    unsettled.keep(recorded | {debit.move for debit in ledger.status.debits or ()})
    await _settle_orphaned_debits(context, executor, recorded, ledger, unsettled)
    executor.moves.forget_unrecorded(given_up, recorded)
    left = [
        (history, move.id)
        for history in histories
        for move in history.status.open or ()
        if not executor.moves.is_held(move.id)
    ]
    for _, move in left:  # keep the notes of all while the first are settled
        executor.moves.track(move).keeps_note = True
    for history, move in left:
        name = f"{history.metadata.namespace}/{history.metadata.name}"
        settling = partial(_resume, context, executor, history, move)
        resumed = await _settle_safely(context, unsettled, move, settling, subject=name)
        if resumed:
            yield resumed
    await _write_spent(context, [move for _, move in left])


async def _settle_safely(
    context: ExecutionContext,
    unsettled: UnsettledMoves,
    move: str,
    settling: Callable[[], Awaitable[T]],
    *,
    subject: str,
) -> T | None:
    """Settle a move or a debit, unless it rests; an error, expected or not, is about this one alone."""
    if unsettled.is_resting(move):
        return None
    reason = "a fault, see the log"
    try:
        with handling("resume", subject):
            return await settling()
    except LeaseLost:
        raise
    except ReberthError as error:
        reason = str(error)
    unsettled.note(move)
    context.tell(f"{move} of {subject} not settled: {reason}")
    return None


async def _resume(
    context: ExecutionContext, executor: Executor, listed: EvictionHistory, move: str
) -> ResumedMove | None:
    """Settle one move, unless this process works on it or it has ended since it was listed."""
    if executor.moves.is_held(move):
        return None
    with executor.moves.holding(move):
        meta = listed.metadata
        history = await context.store.read_history(meta.namespace, meta.name)
        entry = find_open(history, move) if history else None
        if history is None or entry is None:
            executor.moves.forget(move)
            return None
        metrics.MOVES_RESUMED.inc()
        context.tell(f"resuming {entry.id}: {entry.pod} off {entry.from_}, {entry.phase}")
        handle = make_handle(context, history)
        state = await _read_state(context, executor, history, entry)
        return ResumedMove(handle, await executor.settle(handle, state))


async def _settle_orphaned_debits(
    context: ExecutionContext,
    executor: Executor,
    recorded: Collection[str],
    ledger: MoveLedger,
    unsettled: UnsettledMoves,
) -> None:
    """Settle the debits without an open move; one that cannot be settled counts until it is."""
    limits = context.policy().limits.rates
    if correct_debits(ledger, limits, now=context.clock()) is not ledger:
        await context.ledger.correct(partial(correct_debits, limits=limits, now=context.clock()))
    orphans: list[str] = []
    for debit in ledger.status.debits or ():
        is_left = debit.move not in recorded and not executor.moves.is_held(debit.move)
        if debit.state == DebitState.TENTATIVE and is_left and not context.ledger.is_spending(debit.move):
            settling = partial(_settle_debit, context, executor, debit)
            subject = f"{debit.namespace}/{debit.pod}"
            await _settle_safely(context, unsettled, debit.move, settling, subject=subject)
            orphans.append(debit.move)
    await _write_spent(context, orphans)


async def _write_spent(context: ExecutionContext, moves: Iterable[str]) -> None:
    """Write at once what was found to be spent: leaders that each lead for seconds would never write it.

    A Tentative debit counts until then, so nothing would be moved any more.
    """
    if not any(map(context.ledger.is_spending, moves)):
        return
    try:
        with handling("resume", "ledger"):
            await context.ledger.flush()
    except LeaseLost:
        raise
    except ReberthError as error:  # the ledger writer tries again by itself
        context.tell(f"debits not marked as Spent yet: {error}")


async def _settle_debit(context: ExecutionContext, executor: Executor, debit: Debit) -> None:
    """Settle a debit without an open move; while an eviction may be on its way, a living pod says nothing."""
    pod = await context.read_pod(debit.namespace, debit.pod) if debit.pod else None
    if judge_pod(pod, debit.pod_uid) is not PodState.ALIVE:
        began = find_termination(pod) if pod and pod.metadata.uid == debit.pod_uid else None
        context.ledger.spend(_describe_debit(debit), context.clock() if began is None else began)
    elif not executor.moves.is_in_doubt(debit.move):
        await context.ledger.give_back(debit.move)


def _describe_debit(debit: Debit) -> Disruption:
    return Disruption(
        debit.move,
        debit.namespace,
        debit.workload_uid,
        pod=debit.pod,
        pod_uid=debit.pod_uid,
        policy=debit.policy,
        pool=debit.pool,
    )


async def _read_state(
    context: ExecutionContext, executor: Executor, history: EvictionHistory, entry: OpenMove
) -> MoveState:
    debit = await context.ledger.read(entry, history.metadata.namespace)
    node = await context.store.read_node(entry.from_)
    pod = await context.read_pod(history.metadata.namespace, entry.pod)
    state = MoveState(
        entry,
        debit,
        noted=carries_note(node, entry, history.metadata.namespace),
        pod=PodState.ALIVE,
        evicted_at=instant(entry.evicted_at) if entry.evicted_at else None,
        resumed=True,
        in_doubt=executor.moves.is_in_doubt(entry.id),
        node_version=node.metadata.resource_version if node else "",
        history_version=history.metadata.resource_version,
    )
    return take_sighting(state, pod, now=context.clock())
