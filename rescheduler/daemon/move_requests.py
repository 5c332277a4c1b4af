"""The leader's side of a move request: it is checked as the command would check it, answered, then begun.

The answer is written before the move begins. If the leader dies between the two, the request is never begun:
no history has its move. In the other order, the next leader would find the request and begin it a second
time.
"""

import asyncio
from functools import partial
from typing import NoReturn

from msgspec.structs import replace

from reberth.client.lease import LeaseLost, LeaseSettings
from reberth.cluster.pods.identity import name_history
from reberth.records import Lease
from reberth.runtime.faults import FAULTS, handling
from reberth.runtime.logs import Log
from reberth.values.errors import ReberthError
from reberth.values.refusal import Refused, describe_fault, refuse_fault
from rescheduler.execution.context import ExecutionContext
from rescheduler.execution.dispatcher import MoveDispatcher
from rescheduler.execution.orders import NO_SUCH_POD, compose_order
from rescheduler.moves.lifecycle import MANUAL
from rescheduler.moves.move_request import (
    EXPIRED,
    MoveAnswer,
    MoveRequest,
    amend_answer,
    answer_request,
    read_request,
    refuse_request,
)
from rescheduler.moves.order import MoveOrder
from rescheduler.moves.outcome import MoveReport
from rescheduler.moves.workload_moves import MOVE_UNDER_WAY
from rescheduler.telemetry.recording import count_refusal

log = Log(__name__)


class MoveRequestReceiver:
    """Takes one request after the other while this process leads."""

    def __init__(
        self, context: ExecutionContext, dispatcher: MoveDispatcher, lease: LeaseSettings, *, identity: str
    ) -> None:
        self._context = context
        self._dispatcher = dispatcher
        self._lease = lease
        self._identity = identity
        self._waiting: MoveRequest | None = None
        self._arrived = asyncio.Event()

    def take_lease(self, lease: Lease) -> None:
        """Take a version of the Lease. It is renewed again and again, so a failed request is seen again."""
        self._waiting = read_request(lease.metadata.annotations)
        if self._waiting:
            self._arrived.set()

    async def run(self) -> NoReturn:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            if self._waiting:
                await self._receive_safely(self._waiting)

    async def _receive_safely(self, request: MoveRequest) -> None:
        """An error in one request must not prevent the next one."""
        try:
            with handling("request", f"{request.namespace}/{request.pod}"):
                await self.receive(request)
        except LeaseLost:
            raise
        except ReberthError as error:
            log.warning("move request not answered", request=request.id, reason=str(error))

    async def receive(self, request: MoveRequest) -> None:
        """Answer the request, and begin the move if it is accepted and no other answer exists."""
        order = await self._compose_safely(request)
        answer = self._compose_answer(request, order)
        now = self._context.clock()
        taken = await self._context.store.change_lease(
            self._lease, partial(answer_request, answer=answer, now=now)
        )
        fields = {"request": request.id, "pod": f"{request.namespace}/{request.pod}"}
        if isinstance(taken, Refused):
            log.info("move request dropped", refused=taken.rule, **fields)
        elif isinstance(order, Refused):
            count_refusal(MANUAL, order)
            log.info("move request refused", refused=order.rule, refusal=order.reason, **fields)
        else:
            log.info("move request accepted", move=order.move, **fields)
            await self._begin(order, answer)

    async def _compose_safely(self, request: MoveRequest) -> MoveOrder | Refused:
        """A fault is an answer, too: without one the same request would be looked at again and again."""
        try:
            return await self._compose(request)
        except ReberthError:
            raise
        except Exception as error:  # noqa: BLE001 - it is about this request, and is logged
            subject = f"{request.namespace}/{request.pod}"
            FAULTS.note("request", subject, describe_fault(error), error=error)
            return refuse_fault(error)

    async def _compose(self, request: MoveRequest) -> MoveOrder | Refused:
        """Refuse what the command itself would refuse, and a pod that is already being moved."""
        if request.is_over(self._context.clock()):
            return EXPIRED
        refused = self._context.stop_reason(MANUAL)
        if refused or self._dispatcher.is_moving(request.uid):
            return refused or MOVE_UNDER_WAY
        namespace, name = request.namespace, request.pod
        order = await compose_order(self._context, namespace, name, to=request.to, reason=request.reason)
        if isinstance(order, Refused):
            return order
        if order.pod.metadata.uid != request.uid:
            return replace(NO_SUCH_POD, reason=f"{namespace}/{name} is another pod now")
        return replace(order, move=request.move)

    def _compose_answer(self, request: MoveRequest, order: MoveOrder | Refused) -> MoveAnswer:
        answer = MoveAnswer(request.id, self._identity)
        if isinstance(order, Refused):
            return refuse_request(answer, order)
        return replace(answer, move=order.move, history=name_history(order.signature.root))

    async def _begin(self, order: MoveOrder, answer: MoveAnswer) -> None:
        if not self._dispatcher.begin_order(order, partial(self._report_refusal, answer)):
            await self._amend(refuse_request(answer, MOVE_UNDER_WAY))

    async def _report_refusal(self, answer: MoveAnswer, report: MoveReport) -> None:
        """Say why: not every refusal is remembered in the history."""
        if report.refused:
            await self._amend(refuse_request(answer, report.refused))

    async def _amend(self, answer: MoveAnswer) -> None:
        try:
            await self._context.store.change_lease(self._lease, partial(amend_answer, answer=answer))
        except LeaseLost:
            raise
        except ReberthError as error:
            log.warning("refusal not written to the answer", request=answer.id, reason=str(error))
