"""A move that somebody else carries out, followed in its workload's history to its outcome."""

import asyncio
from collections.abc import Awaitable, Callable

from reberth.client.api import Api
from reberth.cluster.kinds import HISTORIES
from reberth.memory.backoff import instant
from reberth.memory.history import Ending
from reberth.records import EvictionHistory, OpenMove, Outcome, PastMove, Phase
from reberth.values.errors import NotFound
from reberth.values.refusal import Refused
from rescheduler.execution.executor import find_open
from rescheduler.moves.handover_request import HandoverAnswer

_LOOK_EVERY = 0.25
_BEGINNING_TIME = 60.0
_ENDING_TIME = 60.0
_WORD_TIME = 5.0  # the history says that a move was dropped a moment before the lease says why

_SAID = {
    Phase.PLANNED: "planned",
    Phase.NOTED: "its note is written",
    Phase.EVICTED: "evicted: waiting for the replacement",
}


class MoveProgress:
    """Tells of one move as it goes on."""

    def __init__(
        self,
        api: Api,
        namespace: str,
        answer: HandoverAnswer,
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
        self._seen: OpenMove | None = None
        self._until = clock() + _BEGINNING_TIME

    async def follow(self) -> Ending | Refused:
        """Look until the move has ended, or should have long ago."""
        while True:
            refused = await self._find_refusal()
            if refused:
                return refused
            ended = self._judge(await self._read())
            if isinstance(ended, Ending) and ended.outcome is Outcome.REFUSED:
                return await self._hear_why()
            if ended:
                return ended
            await asyncio.sleep(_LOOK_EVERY)

    async def _read(self) -> EvictionHistory | None:
        try:
            return await self._api.get(HISTORIES, self._answer.history, namespace=self._namespace)
        except NotFound:
            return None

    def _judge(self, history: EvictionHistory | None) -> Ending | Refused | None:
        past = find_past(history, self._answer.move) if history else None
        if past:
            return self._end(past)
        if history is None and self._seen:
            return Ending(Outcome.GONE)
        move = find_open(history, self._answer.move) if history else None
        if move:
            self._tell_of(move)
        return self._give_up() if self._clock() >= self._until else None

    def _end(self, past: PastMove) -> Ending:
        """A quick move may be over before it is looked at."""
        ending = read_ending(past)
        if self._seen is None:
            self._tell(f"{past.id}: {past.pod} off {past.from_}")
        self._tell(f"{past.id}: {ending}")
        return ending

    def _tell_of(self, move: OpenMove) -> None:
        if self._seen is None:
            self._tell(f"{move.id}: {move.pod} off {move.from_} to {', '.join(move.destinations or ())}")
        if self._seen is None or self._seen.phase != move.phase:
            self._tell(_SAID[move.phase])
        self._seen, self._until = move, instant(move.expires_at) + _ENDING_TIME

    def _give_up(self) -> Refused:
        move, by = self._answer.move, self._answer.by
        if self._seen:
            return Refused(
                "Unended", f"the time of {move} is over, and nobody has ended it; it was begun by {by}"
            )
        return Refused("NotBegun", f"{by} took the move over, and no history holds {move} yet")

    async def _hear_why(self) -> Refused:
        until = self._clock() + _WORD_TIME
        while self._clock() < until:
            refused = await self._find_refusal()
            if refused:
                return refused
            await asyncio.sleep(_LOOK_EVERY)
        return Refused(
            "MoveDropped", f"{self._answer.move} was dropped; the pod's Event MoveRefused says why"
        )


def find_past(history: EvictionHistory, move: str) -> PastMove | None:
    return next((one for one in history.status.past or () if one.id == move), None)


def read_ending(move: PastMove) -> Ending:
    return Ending(move.outcome, move.landed_on, move.score_before, move.score_after, move.time_to_ready)
