"""Recovery: open moves that nobody is working on are settled before anything new is planned.

Otherwise a plan would count neither the pods that are already being moved nor the budget that they use.

Moves in phase Planned are undone. For moves whose eviction may have been sent, the pod is read. Evicted moves
wait for their replacement. A tentative debit without a move, because the workload was deleted together with
its history, is committed: it cannot be proved any more that no pod was evicted for it.

Moves of this process begin and end while the histories are listed, and a list may be delayed. So the list
only tells which moves to look at. Whether one is left behind is asked when it is about to be resumed: first
whether this process is working on it, then its history is read again.
"""

from collections.abc import AsyncIterator, Iterable
from functools import partial
from typing import NamedTuple

from reberth.client.lease import LeaseLost
from reberth.cluster.kinds import HISTORIES, NODES
from reberth.memory.ledger import correct_debits, mark_spent
from reberth.memory.notes import ANNOTATION, read_notes
from reberth.records import DebitState, EvictionHistory, MoveLedger, Node, OpenMove
from reberth.values.errors import NotFound, ReberthError
from reberth.values.refusal import Refused
from rescheduler.execution.context import ExecutionContext, MoveHandle, make_handle
from rescheduler.execution.executor import Executor, find_debit, find_open
from rescheduler.moves.lifecycle import MoveState, judge_pod
from rescheduler.moves.outcome import MoveReport
from rescheduler.telemetry import metrics


class ResumedMove(NamedTuple):
    """A move that was left behind: its report if it has ended, else what to finish it from."""

    handle: MoveHandle
    settled: MoveReport | MoveState


async def resume_moves(context: ExecutionContext, executor: Executor) -> AsyncIterator[ResumedMove]:
    """Settle all open moves that this process is not working on.

    Those that have not ended are finished by the caller, who says with `executor.holding` that it does. A
    move that cannot be settled does not keep the others from it; its error is raised at the end.
    """
    # The ledger first: a move is recorded before its debit, so a list made later has every move of a debit.
    ledger = await context.store.read_ledger()
    pages = context.api.list_pages(HISTORIES)
    histories = [history async for page in pages for history in page.objects]
    await _commit_orphaned_debits(context, executor, histories, ledger)
    left = [
        (history, move.id)
        for history in histories
        for move in history.status.open or ()
        if move.id not in executor.held
    ]
    executor.open.update(move for _, move in left)  # keep the notes of all while the first are settled
    failure: ReberthError | None = None
    for history, move in left:
        try:
            resumed = await _resume(context, executor, history, move)
        except LeaseLost:
            raise
        except ReberthError as error:
            context.tell(f"{move} not resumed: {error}")
            failure = failure or error
        else:
            if resumed:
                yield resumed
    if failure:
        raise failure


async def _resume(
    context: ExecutionContext, executor: Executor, listed: EvictionHistory, move: str
) -> ResumedMove | None:
    """Settle one move, unless this process works on it or it has ended since it was listed."""
    if move in executor.held:
        return None
    with executor.holding(move):
        history = await _read_history(context, listed)
        entry = find_open(history, move) if history else None
        if history is None or entry is None:
            executor.open.discard(move)
            return None
        metrics.MOVES_RESUMED.inc()
        context.tell(f"resuming {entry.id}: {entry.pod} off {entry.from_}, {entry.phase}")
        handle = make_handle(context, history)
        state = await _read_state(context, executor, history, entry)
        return ResumedMove(handle, await executor.settle(handle, state))


async def _commit_orphaned_debits(
    context: ExecutionContext,
    executor: Executor,
    histories: Iterable[EvictionHistory],
    ledger: MoveLedger,
) -> None:
    recorded = {move.id for history in histories for move in history.status.open or ()}
    limits = context.policy().limits.rates
    if correct_debits(ledger, limits, now=context.clock()) is not ledger:
        await context.store.change_ledger(partial(correct_debits, limits=limits, now=context.clock()))
    for debit in ledger.status.debits or ():
        left = debit.move not in recorded and debit.move not in executor.held
        if debit.state == DebitState.TENTATIVE and left:
            spend = partial(mark_spent, move=debit.move, limits=limits, now=context.clock())
            await context.store.change_ledger(spend)


async def _read_history(context: ExecutionContext, listed: EvictionHistory) -> EvictionHistory | None:
    meta = listed.metadata
    try:
        return await context.api.get(HISTORIES, meta.name, namespace=meta.namespace)
    except NotFound:
        return None


async def _read_state(
    context: ExecutionContext, executor: Executor, history: EvictionHistory, entry: OpenMove
) -> MoveState:
    ledger = await context.store.read_ledger()
    pod = await context.read_pod(history.metadata.namespace, entry.pod)
    node = await _find_node(context, entry.from_)
    return MoveState(
        entry,
        find_debit(ledger, entry.id),
        noted=node is not None and _carries_note(node, entry.id),
        pod=judge_pod(pod, entry.pod_uid),
        resumed=True,
        in_doubt=executor.is_in_doubt(entry.id),
        node_version=node.metadata.resource_version if node else "",
        history_version=history.metadata.resource_version,
    )


async def _find_node(context: ExecutionContext, name: str) -> Node | None:
    try:
        return await context.api.get(NODES, name)
    except NotFound:
        return None


def _carries_note(node: Node, move: str) -> bool:
    notes = read_notes((node.metadata.annotations or {}).get(ANNOTATION))
    return not isinstance(notes, Refused) and any(note.mark and note.mark.id == move for note in notes.ours)
