"""Progress of a move that the daemon executes: read from its eviction history until it has an outcome.

The history does not say when the pod is evicted: the pod does.
"""

import asyncio
from collections.abc import Awaitable, Callable

from reberth.client.api import Api
from reberth.cluster.kinds import HISTORIES, PODS
from reberth.memory.history import Ending, end_readiness
from reberth.records import EvictionHistory, OpenMove, Outcome, PastMove
from reberth.values.errors import NotFound
from reberth.values.refusal import Refused
from rescheduler.moves.lifecycle import PodState, judge_pod
from rescheduler.moves.move_request import MoveAnswer
from rescheduler.moves.workload_moves import find_open, list_remarks

_POLL_EVERY = 0.25
_BEGINNING_TIME = 60.0  # from the answer until the history has the move
_ENDING_TIME = 60.0  # from the expiry of the move until the history has its outcome
_REASON_TIME = 5.0  # the history records a refusal a moment before the lease gives its reason

_EVICTED = "evicted: waiting for the replacement"


class MoveProgress:
    """Reports one move until its end."""

    def __init__(
        self,
        api: Api,
        namespace: str,
        answer: MoveAnswer,
        *,
        tell: Callable[[str], None],
        clock: Callable[[], float],
        find_refusal: Callable[[], Awaitable[Refused | None]],
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._answer = answer
        self._tell = tell
        self._clock = clock
        self._find_refusal = find_refusal
        self._last: OpenMove | None = None
        self._is_evicted = False
        self._until = clock() + _BEGINNING_TIME

    async def follow(self) -> Ending | Refused:
        """Read the history until the move has ended, or should have ended long ago."""
        while True:
            refused = await self._find_refusal()
            if refused:
                return refused
            ended = self._judge(await self._read())
            await self._report_eviction()
            if isinstance(ended, Ending) and ended.outcome is Outcome.REFUSED:
                return await self._wait_for_reason()
            if ended:
                return ended
            await asyncio.sleep(_POLL_EVERY)

    async def _read(self) -> EvictionHistory | None:
        try:
            return await self._api.get(HISTORIES, self._answer.history, namespace=self._namespace)
        except NotFound:
            return None

    async def _report_eviction(self) -> None:
        """Tell once that the pod is evicted."""
        move = self._last
        if move is None or self._is_evicted:
            return
        try:
            pod = await self._api.get(PODS, move.pod, namespace=self._namespace)
        except NotFound:
            pod = None
        if judge_pod(pod, move.pod_uid) is not PodState.ALIVE:
            self._is_evicted = True
            self._tell(_EVICTED)

    def _judge(self, history: EvictionHistory | None) -> Ending | Refused | None:
        past = find_past(history, self._answer.move) if history else None
        if past:
            return self._end(past)
        if history is None and self._last:
            return Ending(Outcome.GONE)
        move = find_open(history, self._answer.move) if history else None
        if history and move:
            remarks = [] if self._last else list_remarks(history, self._clock())
            self._report(move)
            for remark in remarks:
                self._tell(remark)
        return self._give_up() if self._clock() >= self._until else None

    def _end(self, past: PastMove) -> Ending:
        """Report the end; a quick move may end before it was seen open."""
        ending = read_ending(past)
        if self._last is None:
            self._tell(f"{past.id}: {past.pod} off {past.from_}")
        self._tell(f"{past.id}: {ending}")
        return ending

    def _report(self, move: OpenMove) -> None:
        if self._last is None:
            self._tell(f"{move.id}: {move.pod} off {move.from_} to {', '.join(move.destinations or ())}")
        self._last, self._until = move, end_readiness(move) + _ENDING_TIME

    def _give_up(self) -> Refused:
        move, by = self._answer.move, self._answer.by
        if self._last:
            return Refused("Unended", f"{move} has expired without an outcome; {by} began it")
        return Refused("NotBegun", f"{by} accepted the request, but no eviction history has {move}")

    async def _wait_for_reason(self) -> Refused:
        until = self._clock() + _REASON_TIME
        while self._clock() < until:
            refused = await self._find_refusal()
            if refused:
                return refused
            await asyncio.sleep(_POLL_EVERY)
        return Refused(
            "MoveDropped", f"{self._answer.move} was refused; the pod's Event MoveRefused says why"
        )


def find_past(history: EvictionHistory, move: str) -> PastMove | None:
    return next((one for one in history.status.past or () if one.id == move), None)


def read_ending(move: PastMove) -> Ending:
    return Ending(move.outcome, move.landed_on, move.score_before, move.score_after, move.time_to_ready)
