"""Recovery: open moves of an earlier leader are settled before anything new is planned.

Otherwise a plan would count neither the pods that are already being moved nor the budget that they use.

Moves in phase Planned are undone. For moves whose eviction may have been sent, the pod is read. Evicted moves
wait for their replacement. A tentative debit without a move, because the workload was deleted together with
its history, is committed: it cannot be proved any more that no pod was evicted for it.
"""

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from reberth.cluster.kinds import HISTORIES, NODES
from reberth.memory.ledger import mark_spent
from reberth.memory.notes import ANNOTATION, read_notes
from reberth.records import DebitState, EvictionHistory, MoveLedger, Node, OpenMove
from reberth.values.errors import NotFound
from reberth.values.refusal import Refused
from rescheduler.execution.context import ExecutionContext, MoveHandle, make_handle
from rescheduler.execution.executor import Executor, find_debit
from rescheduler.moves.lifecycle import MoveState, judge_pod
from rescheduler.moves.outcome import MoveReport
from rescheduler.telemetry import metrics


class AwaitedMove(NamedTuple):
    """A move whose pod is evicted and whose replacement is awaited."""

    handle: MoveHandle
    entry: OpenMove


class ResumedMoves(NamedTuple):
    """The moves that were found: those that have ended, and those that still wait."""

    reports: list[MoveReport]
    awaited: list[AwaitedMove]


async def resume_moves(context: ExecutionContext, executor: Executor) -> ResumedMoves:
    """Settle all open moves that this process is not working on.

    Evicted ones are returned, and the caller follows them to their outcome.
    """
    held = frozenset(executor.held)  # read before the list: a move that ends meanwhile is not left behind
    pages = context.api.list_pages(HISTORIES)
    histories = [history async for page in pages for history in page.objects]
    ledger = await context.store.read_ledger()
    await _commit_orphaned_debits(context, histories, ledger, held=held)
    executor.open.update(move.id for history in histories for move in history.status.open or ())
    resumed = ResumedMoves([], [])
    for history in histories:
        handle = make_handle(context, history)
        for entry in history.status.open or ():
            if entry.id in held:
                continue
            metrics.MOVES_RESUMED.inc()
            context.tell(f"resuming {entry.id}: {entry.pod} off {entry.from_}, {entry.phase}")
            seen = await _read_state(context, history, entry, ledger)
            with executor.holding(entry.id):
                settled = await executor.settle(handle, seen)
            if isinstance(settled, MoveReport):
                resumed.reports.append(settled)
            else:
                resumed.awaited.append(AwaitedMove(handle, settled))
    return resumed


async def _commit_orphaned_debits(
    context: ExecutionContext,
    histories: Iterable[EvictionHistory],
    ledger: MoveLedger,
    *,
    held: frozenset[str],
) -> None:
    recorded = {move.id for history in histories for move in history.status.open or ()}
    for debit in ledger.status.debits or ():
        if debit.state == DebitState.TENTATIVE and debit.move not in recorded | held:
            await context.store.change_ledger(partial(mark_spent, move=debit.move, now=context.clock()))


async def _read_state(
    context: ExecutionContext, history: EvictionHistory, entry: OpenMove, ledger: MoveLedger
) -> MoveState:
    pod = await context.read_pod(history.metadata.namespace, entry.pod)
    node = await _find_node(context, entry.from_)
    return MoveState(
        entry,
        find_debit(ledger, entry.id),
        noted=node is not None and _carries_note(node, entry.id),
        pod=judge_pod(pod, entry.pod_uid),
        resumed=True,
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
