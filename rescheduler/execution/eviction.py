"""The eviction of a move: sent only after the extenders have seen the move and it has been validated again.

A dry run comes first: a precondition that fails on a real eviction uses up the PodDisruptionBudget all the
same. If the answer leaves it uncertain whether the pod is evicted, the pod is read; a second eviction is
never sent.
"""

import asyncio

from msgspec.structs import replace

from reberth.cluster.kinds import HISTORIES, NODES
from reberth.records import OpenMove, Pod
from reberth.runtime.metrics import bounded
from reberth.values.errors import ApiError
from reberth.values.refusal import Refused
from rescheduler.execution.context import ExecutionContext, MoveHandle
from rescheduler.execution.extenders import ObjectVersion
from rescheduler.execution.validation import MoveValidator
from rescheduler.moves.eviction_response import UncertainAnswer, read_answer
from rescheduler.moves.lifecycle import DEBIT_LOST, MoveState, PodState, judge_pod
from rescheduler.telemetry import metrics

STILL_THERE = Refused("Unanswered", "the eviction was not answered, and the pod is still alive")
DRY_RUN_FAILED = "DryRunFailed"
_READ_EVERY = 1.0


class Evictor:
    """Takes one move from phase Noted to its eviction, or to a refusal."""

    def __init__(self, context: ExecutionContext, handle: MoveHandle, validator: MoveValidator) -> None:
        self._context = context
        self._handle = handle
        self._validator = validator

    async def evict(self, state: MoveState) -> MoveState:
        """Give the state afterwards: the pod is terminating or gone, or the move is refused."""
        refused = await self._refuse_unseen(state)
        pod = await self._read_pod(state)
        pod_state = judge_pod(pod, state.entry.pod_uid)
        if pod is None or pod_state != PodState.ALIVE:
            return replace(state, pod=pod_state)
        refused = refused or await self._refuse(state, pod) or await self._refuse_dry_run(state)
        if refused is None:
            refused = await self._evict(state)
            if refused is None:
                return replace(state, pod=PodState.TERMINATING, granted=True)
        left = judge_pod(await self._read_pod(state), state.entry.pod_uid)
        return replace(state, pod=left, refused=refused)

    async def _refuse_unseen(self, state: MoveState) -> Refused | None:
        # kube-scheduler asks an extender within milliseconds of the eviction. One that has not seen note and
        # the move would let the replacement land anywhere, also on the source node.
        need, tell = self._context.settings().extender, self._handle.reporter.tell
        if need == "none":
            tell("extender: none: kube-scheduler alone decides where the replacement lands")
            metrics.MOVES_UNACKNOWLEDGED.inc()
            return None
        refused = await self._context.extenders.refuse_unseen(self._list_versions(state))
        if refused is None:
            tell("all extenders have acknowledged the move")
        elif need == "optional":
            tell(f"not acknowledged by all extenders: {refused.reason}")
            metrics.MOVES_UNACKNOWLEDGED.inc()
            return None
        return refused

    def _list_versions(self, state: MoveState) -> tuple[ObjectVersion, ObjectVersion]:
        handle = self._handle
        return (
            ObjectVersion(NODES.name, "", state.entry.from_, state.node_version),
            ObjectVersion(HISTORIES.name, handle.namespace, handle.history, state.history_version),
        )

    async def _refuse(self, state: MoveState, pod: Pod) -> Refused | None:
        return await self._refuse_undebited(state) or await self._validator.refuse(
            state.entry, pod, resumed=state.resumed
        )

    async def _refuse_undebited(self, state: MoveState) -> Refused | None:
        ledger = await self._context.store.read_ledger()
        is_debited = any(one.move == state.entry.id for one in ledger.status.debits or ())
        return None if is_debited else DEBIT_LOST

    async def _refuse_dry_run(self, state: MoveState) -> Refused | None:
        answer = await self._send(state, dry_run=True)
        if isinstance(answer, UncertainAnswer):
            return Refused(DRY_RUN_FAILED, f"the dry run of the eviction failed: {answer.value}")
        return answer

    async def _evict(self, state: MoveState) -> Refused | None:
        # A pause or a brake may have begun since the move was started.
        answer = self._context.stop_reason(state.entry.policy) or await self._send(state, dry_run=False)
        if answer is UncertainAnswer.IN_DOUBT:
            return await self._settle_doubt(state)
        if answer is UncertainAnswer.PODS_STATE:
            return Refused("Conflict", "the API server found another pod than the one of the move")
        return answer

    async def _send(self, state: MoveState, *, dry_run: bool) -> Refused | UncertainAnswer | None:
        context = self._context
        answer: Refused | UncertainAnswer | None = None
        try:
            await context.store.evict(state.entry, namespace=self._handle.namespace, dry_run=dry_run)
        except ApiError as error:
            answer = read_answer(error, now=context.clock())
        if not dry_run:
            metrics.EVICTIONS.labels(_name_answer(answer)).inc()
        return answer

    async def _settle_doubt(self, state: MoveState) -> Refused | None:
        """Read the pod until it is terminating, or for so long that the request cannot arrive any more."""
        self._handle.reporter.tell("the eviction was not answered: reading the pod")
        until = asyncio.get_running_loop().time() + self._context.settings().eviction_timeout
        pod = await watch_pod(self._context, self._handle.namespace, state.entry, until=until)
        return STILL_THERE if pod is PodState.ALIVE else None

    async def _read_pod(self, state: MoveState) -> Pod | None:
        return await self._context.read_pod(self._handle.namespace, state.entry.pod)


async def watch_pod(context: ExecutionContext, namespace: str, entry: OpenMove, *, until: float) -> PodState:
    """Read the pod of a move until it is terminating or gone, or until a time of the event loop's clock."""
    while True:
        pod = judge_pod(await context.read_pod(namespace, entry.pod), entry.pod_uid)
        left = until - asyncio.get_running_loop().time()
        if pod is not PodState.ALIVE or left <= 0:
            return pod
        await asyncio.sleep(min(_READ_EVERY, left))


def _name_answer(answer: Refused | UncertainAnswer | None) -> str:
    if isinstance(answer, Refused):
        return bounded(answer.rule, metrics.REFUSALS)
    return "granted" if answer is None else answer.name.lower()
