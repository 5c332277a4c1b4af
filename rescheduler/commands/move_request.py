"""The command's side of a move request: ask the daemon that leads for a move, and wait for its outcome.

Until the request is answered, it can be withdrawn. From then on the daemon makes the move, even if the
command exits.
"""

import asyncio
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from msgspec.structs import replace

from reberth.client.access import Access
from reberth.client.api import Api
from reberth.client.lease import LEASES, LeaseSettings
from reberth.cluster.kinds import PODS
from reberth.memory.history import MOST_DESTINATIONS, Ending
from reberth.values.errors import NotFound, ReberthError
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_time
from rescheduler.commands.progress import MoveProgress
from rescheduler.execution.orders import NO_SUCH_POD
from rescheduler.execution.store import rewrite_lease
from rescheduler.moves.move_request import (
    LIFE,
    MoveAnswer,
    MoveRequest,
    find_answer,
    place_request,
    prolong_request,
    withdraw_request,
)
from rescheduler.settings import ReschedulerSettings

_POLL_EVERY = 0.25
_LONGEST_WAIT = 10.0  # for another request that is waiting
_WITHDRAWAL_TIME = 2.0


async def request_move(
    access: Access,
    settings: ReschedulerSettings,
    pod: tuple[str, str],
    *,
    held: Refused,
    to: tuple[str, ...],
    reason: str,
    tell: Callable[[str], None],
) -> Ending | Refused:
    """Have a pod (namespace, name) moved by the holder of the lease, and give the outcome.

    `held` names that holder; it is returned if the holder does not accept requests. Raises ReberthError.
    """
    async with Api(access, settings.api) as api:
        uid = await _find_uid(api, pod)
        if uid is None:
            return replace(NO_SUCH_POD, reason=f"there is no pod {'/'.join(pod)}")
        request = _draft(pod, uid, to, reason, now=api.clock.now())
        return await MoveRequestClient(api, settings.lease, request, tell=tell).run(held)


def _draft(pod: tuple[str, str], uid: str, to: tuple[str, ...], reason: str, *, now: float) -> MoveRequest:
    made = uuid.uuid4().hex[:12]
    return MoveRequest(made, *pod, uid, to[:MOST_DESTINATIONS], reason, write_time(now))


async def _find_uid(api: Api, pod: tuple[str, str]) -> str | None:
    try:
        found = await api.get(PODS, pod[1], namespace=pod[0])
    except NotFound:
        return None
    return found.metadata.uid


class MoveRequestClient:
    """Requests one move, and follows it to its outcome."""

    def __init__(
        self,
        api: Api,
        lease: LeaseSettings,
        request: MoveRequest,
        *,
        tell: Callable[[str], None],
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._api = api
        self._lease = lease
        self._request = request
        self._tell = tell
        self._clock = clock or api.clock.now

    async def run(self, held: Refused) -> Ending | Refused:
        try:
            answer = await self._place() or await self._wait_for_answer()
            if answer is None:
                return replace(
                    held, reason=f"{held.reason}, and it did not accept the request within {LIFE:g} s"
                )
            if isinstance(answer, Refused) or answer.refused:
                return answer if isinstance(answer, Refused) else answer.refused or held
            self._tell(f"requested from {answer.by}")
            return await self._follow(answer)
        except asyncio.CancelledError:
            await self._exit_early()
            raise

    async def _place(self) -> Refused | None:
        """Write the request to the Lease; wait for a while if another request is there."""
        until = self._clock() + _LONGEST_WAIT
        while True:
            now = self._clock()
            self._request = prolong_request(self._request, now)
            change = partial(place_request, request=self._request, now=now)
            placed = await rewrite_lease(self._api, self._lease, change)
            if not isinstance(placed, Refused):
                return None
            if now >= until:
                return placed
            await asyncio.sleep(_POLL_EVERY)

    async def _wait_for_answer(self) -> MoveAnswer | None:
        while not self._request.is_over(self._clock()):
            answer = await self._find_answer()
            if answer:
                return answer
            await asyncio.sleep(_POLL_EVERY)
        return await self._withdraw()

    async def _find_answer(self) -> MoveAnswer | None:
        lease = await self._api.get(LEASES, self._lease.name, namespace=self._lease.namespace)
        return find_answer(lease.metadata.annotations, self._request.id)

    async def _withdraw(self) -> MoveAnswer | None:
        """Withdraw the request, or give its answer if it was answered first."""
        change = partial(withdraw_request, request=self._request.id)
        lease = await rewrite_lease(self._api, self._lease, change)
        return (
            None if isinstance(lease, Refused) else find_answer(lease.metadata.annotations, self._request.id)
        )

    async def _follow(self, answer: MoveAnswer) -> Ending | Refused:
        progress = MoveProgress(
            self._api,
            self._request.namespace,
            answer,
            tell=self._tell,
            clock=self._clock,
            find_refusal=self._find_refusal,
        )
        return await progress.follow()

    async def _find_refusal(self) -> Refused | None:
        answer = await self._find_answer()
        return answer.refused if answer else None

    async def _exit_early(self) -> None:
        """Withdraw a request that still waits; leave an accepted move to the daemon."""
        answer, left = None, f"the request could not be withdrawn: it is valid until {self._request.until}"
        with suppress(ReberthError, TimeoutError):
            async with asyncio.timeout(_WITHDRAWAL_TIME):
                answer, left = await self._withdraw(), "the request was withdrawn"
        self._tell(f"{answer.move} continues: {answer.by} executes it" if answer else left)
