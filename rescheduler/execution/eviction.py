"""The eviction of a move: sent only after the extenders have seen the move and it has been validated again.

If no PodDisruptionBudget selects the pod, the eviction carries the version of the pod that was validated, as
the cache has it: the API server refuses it if the pod has changed since, and nothing needs to be read before.

A precondition that fails on a real eviction uses up a PodDisruptionBudget all the same; on a dry run it does
not. So where another pod may have the name by now, a dry run comes first, which carries the version, and only
the uid is a precondition of the eviction. A name that the API server has generated does not return: such a
pod is read instead.

If the answer leaves it uncertain whether the pod is evicted, the pod is read; a second eviction is never
sent. After a refusal nothing is uncertain: it was the answer to the only eviction of this move.
"""

import asyncio

from msgspec.structs import replace

from reberth.cluster.kinds import HISTORIES, JOB, NODES, REPLICA_SET, REPLICATION_CONTROLLER
from reberth.cluster.pods.identity import find_controller, group_of
from reberth.memory.notes import NOTE_LOST
from reberth.records import Pod
from reberth.runtime.metrics import bounded
from reberth.values.errors import ApiError
from reberth.values.refusal import Refused
from rescheduler.execution.context import ExecutionContext, MoveHandle
from rescheduler.execution.dry_runs.confirmation import ReplacementConfirmation
from rescheduler.execution.extenders import ObjectVersion
from rescheduler.execution.store import HISTORY_GONE, carries_note
from rescheduler.execution.validation import MoveValidator
from rescheduler.moves.eviction_response import UncertainAnswer, read_answer
from rescheduler.moves.lifecycle import (
    DEBIT_LOST,
    MoveState,
    PodState,
    record_eviction,
    take_sighting,
)
from rescheduler.telemetry import metrics

STILL_THERE = Refused("Unanswered", "the eviction was not answered, and the pod is still alive")
DRY_RUN_FAILED = "DryRunFailed"
_READ_EVERY = 1.0
# The API server generates the names of their pods. It does not for a StatefulSet, though those have a prefix.
_GENERATED = {(kind.group, kind.name) for kind in (REPLICA_SET, REPLICATION_CONTROLLER, JOB)}


class Evictor:
    """Takes one move from phase Noted to its eviction, or to a refusal."""

    def __init__(self, context: ExecutionContext, handle: MoveHandle, validator: MoveValidator) -> None:
        self._context = context
        self._handle = handle
        self._validator = validator
        self._confirmation = ReplacementConfirmation(context, validator)

    async def evict(self, state: MoveState) -> MoveState:
        """Give the state afterwards: the pod is terminating or gone, or the move is refused.

        What may take long, because webhooks are called, comes first: acknowledgement and validation are new.
        """
        refused = await self._confirmation.refuse(state.entry, self._handle.namespace)
        refused = refused or await self._refuse_unseen(state)
        pod = None if refused or state.resumed else self._find_comparable(state)
        left = await self._evict_version(state, pod) if pod else None
        # What the cache says was not true, or is not of this process: it is not believed a second time.
        is_doubted = pod is not None or state.resumed
        return left or await self._evict_newest(state, refused, is_doubted=is_doubted)

    def _find_comparable(self, state: MoveState) -> Pod | None:
        """Give the cached pod if the API server can be asked for that version without charging a budget."""
        pod = self._context.find_pod(self._handle.namespace, state.entry.pod)
        return pod if pod and (may_return(pod) or not self._context.is_budgeted(pod)) else None

    async def _evict_version(self, state: MoveState, pod: Pod) -> MoveState | None:
        """Evict the pod if it still is as it is cached; None: the newest one has to be looked at."""
        refused = self._refuse_lost(state) or await self._validator.refuse(
            state.entry, pod, resumed=state.resumed
        )
        if refused:
            return await self._confirm(state, pod, refused)
        seen = take_sighting(state, pod, now=self._context.clock())
        version = pod.metadata.resource_version
        if not self._context.is_budgeted(pod):
            answer = await self._ask(state, version=version)
            return None if answer is UncertainAnswer.PODS_STATE else await self._conclude(seen, answer)
        tried = await self._send(state, dry_run=True, version=version)
        if tried is UncertainAnswer.PODS_STATE:
            return None
        refused = read_dry_run(tried)
        if refused:
            return replace(seen, refused=refused)
        return await self._conclude(seen, await self._ask(state, version=None))

    async def _confirm(self, state: MoveState, pod: Pod, refused: Refused) -> MoveState | None:
        """Refuse the move if the pod still is as it was validated; None: it is not."""
        newest = await self._read_pod(state)
        if newest is None or newest.metadata.resource_version != pod.metadata.resource_version:
            return None
        return replace(take_sighting(state, newest, now=self._context.clock()), refused=refused)

    async def _evict_newest(
        self, state: MoveState, refused: Refused | None, *, is_doubted: bool
    ) -> MoveState:
        look = self._context.read_pod if is_doubted else self._context.look_at_pod
        pod = await look(self._handle.namespace, state.entry.pod)
        state = take_sighting(state, pod, now=self._context.clock())
        if pod is None or state.pod != PodState.ALIVE:
            return state
        refused = refused or self._refuse_lost(state) or await self._refuse(state, pod)
        if refused is None:
            return await self._conclude(state, await self._ask(state, version=None))
        left = replace(state, refused=refused)
        return await self._sight_again(left) if refused.rule == DRY_RUN_FAILED else left

    async def _sight_again(self, state: MoveState) -> MoveState:
        return take_sighting(state, await self._read_pod(state), now=self._context.clock())

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
        refused = await self._validator.refuse(state.entry, pod, resumed=state.resumed)
        if refused or not may_return(pod):
            return refused
        return read_dry_run(await self._send(state, dry_run=True, version=None))

    def _refuse_lost(self, state: MoveState) -> Refused | None:
        """Refuse a move of which something has been removed since it was answered."""
        store, entry, handle = self._context.store, state.entry, self._handle
        history = store.find_history(handle.namespace, handle.history)
        if history is None or all(one.id != entry.id for one in history.status.open or ()):
            return HISTORY_GONE
        if self._context.ledger.find(entry, handle.namespace) is None:
            return DEBIT_LOST
        return None if carries_note(store.find_node(entry.from_), entry, handle.namespace) else NOTE_LOST

    async def _ask(self, state: MoveState, *, version: str | None) -> Refused | UncertainAnswer | None:
        # A pause or a brake may have begun since the move was started.
        stopped = self._context.stop_reason(state.entry.policy)
        return stopped or await self._send(state, dry_run=False, version=version)

    async def _conclude(self, state: MoveState, answer: Refused | UncertainAnswer | None) -> MoveState:
        if answer is None:
            now = self._context.clock()
            granted = replace(state, pod=PodState.TERMINATING, granted=True)
            return record_eviction(granted, now, now=now)
        if answer is UncertainAnswer.IN_DOUBT:
            return await self._settle_doubt(state)
        if answer is UncertainAnswer.PODS_STATE:
            conflict = Refused("Conflict", "the API server found another pod than the one of the move")
            return await self._sight_again(replace(state, refused=conflict))
        return replace(state, refused=answer)  # it was decided: no pod was evicted for this move

    async def _send(
        self, state: MoveState, *, dry_run: bool, version: str | None
    ) -> Refused | UncertainAnswer | None:
        context, namespace = self._context, self._handle.namespace
        answer: Refused | UncertainAnswer | None = None
        try:
            await context.store.evict(state.entry, namespace=namespace, dry_run=dry_run, version=version)
        except ApiError as error:
            answer = read_answer(error, now=context.clock())
        if not dry_run:
            metrics.EVICTIONS.labels(_name_answer(answer)).inc()
        return answer

    async def _settle_doubt(self, state: MoveState) -> MoveState:
        """Read the pod until it is terminating, or for so long that the request cannot arrive any more."""
        self._handle.reporter.tell("the eviction was not answered: reading the pod")
        until = asyncio.get_running_loop().time() + self._context.settings().eviction_timeout
        state = await watch_pod(self._context, self._handle.namespace, state, until=until)
        return replace(state, refused=STILL_THERE) if state.pod is PodState.ALIVE else state

    async def _read_pod(self, state: MoveState) -> Pod | None:
        return await self._context.read_pod(self._handle.namespace, state.entry.pod)


async def watch_pod(
    context: ExecutionContext, namespace: str, state: MoveState, *, until: float
) -> MoveState:
    """Read the pod of a move until it is terminating or gone, or until a time of the event loop's clock."""
    while True:
        pod = await context.read_pod(namespace, state.entry.pod)
        state = take_sighting(state, pod, now=context.clock())
        left = until - asyncio.get_running_loop().time()
        if state.pod is not PodState.ALIVE or left <= 0:
            return state
        await asyncio.sleep(min(_READ_EVERY, left))


def may_return(pod: Pod) -> bool:
    """Tell whether another pod may get the name of this one, as that of a StatefulSet does."""
    controller = find_controller(pod.metadata)
    if controller is None:
        return True
    return (group_of(controller.api_version), controller.kind) not in _GENERATED


def read_dry_run(answer: Refused | UncertainAnswer | None) -> Refused | None:
    """Tell why an eviction that was tried would not be granted."""
    if isinstance(answer, UncertainAnswer):
        return Refused(DRY_RUN_FAILED, f"the dry run of the eviction failed: {answer.value}")
    return answer


def _name_answer(answer: Refused | UncertainAnswer | None) -> str:
    if isinstance(answer, Refused):
        return bounded(answer.rule, metrics.REFUSALS)
    return "granted" if answer is None else answer.name.lower()
