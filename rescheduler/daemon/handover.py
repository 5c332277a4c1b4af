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
from rescheduler.execution.context import Equipment
from rescheduler.execution.dispatcher import Carrier
from rescheduler.execution.executor import MOVE_UNDER_WAY
from rescheduler.execution.orders import NO_SUCH_POD, compose_order
from rescheduler.moves.handover_request import EXPIRED, Answer, Request, amend, read_request, refuse, take
from rescheduler.moves.lifecycle import MANUAL
from rescheduler.moves.order import MoveOrder
from rescheduler.moves.outcome import MoveReport
from rescheduler.telemetry.recording import count_refusal

log = Log(__name__)


class Receiver:
    """Takes one request after the other for as long as we lead."""

    def __init__(
        self, equipment: Equipment, carrier: Carrier, lease: LeaseSettings, *, identity: str
    ) -> None:
        self._equipment = equipment
        self._carrier = carrier
        self._lease = lease
        self._identity = identity
        self._waiting: Request | None = None
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

    async def _survive(self, request: Request) -> None:
        """Whatever goes wrong with one request, the next one is looked at."""
        try:
            await self.receive(request)
        except LeaseLost:
            raise
        except ReberthError as error:
            log.warning("request not answered", request=request.id, reason=str(error))
        except Exception:
            log.exception("request not answered", request=request.id)

    async def receive(self, request: Request) -> None:
        """Answer, and begin the move if the answer is a yes and is the only one."""
        order = await self._compose(request)
        answer = self._compose_answer(request, order)
        now = self._equipment.clock()
        taken = await self._equipment.store.change_lease(self._lease, partial(take, answer=answer, now=now))
        said = {"request": request.id, "pod": f"{request.namespace}/{request.pod}"}
        if isinstance(taken, Refused):
            log.info("request dropped", refused=taken.rule, **said)
        elif isinstance(order, Refused):
            count_refusal(MANUAL, order)
            log.info("request refused", refused=order.rule, refusal=order.reason, **said)
        else:
            log.info("request taken", move=order.move, **said)
            await self._begin(order, answer)

    async def _compose(self, request: Request) -> MoveOrder | Refused:
        """Refuse what the command itself would refuse, and what would meet another move of the pod."""
        if request.is_over(self._equipment.clock()):
            return EXPIRED
        refused = self._equipment.halt(MANUAL)
        if refused or self._carrier.is_moving(request.uid):
            return refused or MOVE_UNDER_WAY
        namespace, name = request.namespace, request.pod
        order = await compose_order(self._equipment, namespace, name, to=request.to, reason=request.reason)
        if isinstance(order, Refused):
            return order
        if order.pod.metadata.uid != request.uid:
            return replace(NO_SUCH_POD, reason=f"another pod has the name {namespace}/{name} by now")
        return replace(order, move=request.move)

    def _compose_answer(self, request: Request, order: MoveOrder | Refused) -> Answer:
        answer = Answer(request.id, self._identity)
        if isinstance(order, Refused):
            return refuse(answer, order)
        return replace(answer, move=order.move, history=name_history(order.signature.root))

    async def _begin(self, order: MoveOrder, answer: Answer) -> None:
        if not self._carrier.begin_order(order, partial(self._hear, answer)):
            await self._amend(refuse(answer, MOVE_UNDER_WAY))

    async def _hear(self, answer: Answer, report: MoveReport) -> None:
        """A history does not say why a move was dropped: so the answer does."""
        if report.refused:
            await self._amend(refuse(answer, report.refused))

    async def _amend(self, answer: Answer) -> None:
        try:
            await self._equipment.store.change_lease(self._lease, partial(amend, answer=answer))
        except LeaseLost:
            raise
        except ReberthError as error:
            log.warning("refusal not told", request=answer.id, reason=str(error))
