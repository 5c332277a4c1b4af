"""The leader's side of a move that is handed over: looked at as the command would, answered, then begun.

It is answered before it begins. Whoever dies between the two leaves a request that was never begun: no
history holds its move. Nobody begins it twice.
"""

import asyncio
from functools import partial
from typing import NoReturn

from msgspec.structs import replace

from reberth.client.lease import LeaseLost, LeaseSettings
from reberth.cluster.pods.identity import name_history
from reberth.records import Lease
from reberth.runtime.logs import Log
from reberth.values.errors import ReberthError
from reberth.values.refusal import Refused
from rescheduler.execution.context import ExecutionContext
from rescheduler.execution.dispatcher import MoveDispatcher
from rescheduler.execution.executor import MOVE_UNDER_WAY
from rescheduler.execution.orders import NO_SUCH_POD, compose_order
from rescheduler.moves.handover_request import (
    EXPIRED,
    HandoverAnswer,
    HandoverRequest,
    amend_answer,
    answer_request,
    read_request,
    refuse_request,
)
from rescheduler.moves.lifecycle import MANUAL
from rescheduler.moves.order import MoveOrder
from rescheduler.moves.outcome import MoveReport
from rescheduler.telemetry.recording import count_refusal

log = Log(__name__)


class HandoverReceiver:
    """Takes one request after the other for as long as we lead."""

    def __init__(
        self, context: ExecutionContext, dispatcher: MoveDispatcher, lease: LeaseSettings, *, identity: str
    ) -> None:
        self._context = context
        self._dispatcher = dispatcher
        self._lease = lease
        self._identity = identity
        self._waiting: HandoverRequest | None = None
        self._news = asyncio.Event()

    def look(self, lease: Lease) -> None:
        """See the lease; it is renewed again and again, so what failed once is seen again."""
        self._waiting = read_request(lease.metadata.annotations)
        if self._waiting:
            self._news.set()

    async def receive_for_ever(self) -> NoReturn:
        while True:
            await self._news.wait()
            self._news.clear()
            if self._waiting:
                await self._survive(self._waiting)

    async def _survive(self, request: HandoverRequest) -> None:
        """Whatever goes wrong with one request, the next one is looked at."""
        try:
            await self.receive(request)
        except LeaseLost:
            raise
        except ReberthError as error:
            log.warning("request not answered", request=request.id, reason=str(error))
        except Exception:
            log.exception("request not answered", request=request.id)

    async def receive(self, request: HandoverRequest) -> None:
        """Answer, and begin the move if the answer is a yes and is the only one."""
        order = await self._compose(request)
        answer = self._compose_answer(request, order)
        now = self._context.clock()
        taken = await self._context.store.change_lease(
            self._lease, partial(answer_request, answer=answer, now=now)
        )
        said = {"request": request.id, "pod": f"{request.namespace}/{request.pod}"}
        if isinstance(taken, Refused):
            log.info("request dropped", refused=taken.rule, **said)
        elif isinstance(order, Refused):
            count_refusal(MANUAL, order)
            log.info("request refused", refused=order.rule, refusal=order.reason, **said)
        else:
            log.info("request taken", move=order.move, **said)
            await self._begin(order, answer)

    async def _compose(self, request: HandoverRequest) -> MoveOrder | Refused:
        """Refuse what the command itself would refuse, and what would meet another move of the pod."""
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
            return replace(NO_SUCH_POD, reason=f"another pod has the name {namespace}/{name} by now")
        return replace(order, move=request.move)

    def _compose_answer(self, request: HandoverRequest, order: MoveOrder | Refused) -> HandoverAnswer:
        answer = HandoverAnswer(request.id, self._identity)
        if isinstance(order, Refused):
            return refuse_request(answer, order)
        return replace(answer, move=order.move, history=name_history(order.signature.root))

    async def _begin(self, order: MoveOrder, answer: HandoverAnswer) -> None:
        if not self._dispatcher.begin_order(order, partial(self._hear, answer)):
            await self._amend(refuse_request(answer, MOVE_UNDER_WAY))

    async def _hear(self, answer: HandoverAnswer, report: MoveReport) -> None:
        """A history does not say why a move was dropped: so the answer does."""
        if report.refused:
            await self._amend(refuse_request(answer, report.refused))

    async def _amend(self, answer: HandoverAnswer) -> None:
        try:
            await self._context.store.change_lease(self._lease, partial(amend_answer, answer=answer))
        except LeaseLost:
            raise
        except ReberthError as error:
            log.warning("refusal not told", request=answer.id, reason=str(error))
