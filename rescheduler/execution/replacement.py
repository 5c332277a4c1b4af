"""Waits for the replacement of an evicted pod, until it has been Ready for a while or its time is over."""

import asyncio
import math
from contextlib import suppress

from msgspec.structs import replace

from reberth.cluster.kinds import POD
from reberth.cluster.rows import PodRow
from reberth.memory.history import Ending
from reberth.records import OpenMove
from rescheduler.execution.context import Changes, ExecutionContext, MoveHandle
from rescheduler.execution.validation import MoveValidator
from rescheduler.model.plan import LandingScores
from rescheduler.moves.outcome import find_deadline, find_replacement, judge_replacement, observe_controller
from rescheduler.moves.readiness import ReadySpell, ReadyTimer, has_lasted

_PAUSE = 0.1
# Other moves of the workload may end without a change of its pods: then a replacement is not theirs.
_LOOK_AGAIN = 5.0


class ReplacementWatcher:
    """Waits for the outcome of one move."""

    def __init__(
        self,
        context: ExecutionContext,
        handle: MoveHandle,
        validator: MoveValidator,
        *,
        evicted_at: float | None,
    ) -> None:
        self._context = context
        self._handle = handle
        self._validator = validator
        self._evicted_at = evicted_at  # None: not known, so nothing is measured from it
        self._had_owner = False
        self._landed = ""  # uid of the replacement that was scored
        self._scores: LandingScores | None = None
        self._readiness = ReadyTimer()
        self._over_since = math.inf  # the look that was the first to see that its time is over
        self._lacking = math.inf  # seconds until it has been Ready for long enough

    async def follow(self, move: OpenMove) -> Ending:
        with self._context.mirror.changes_of(move.controller_uid) as changes:
            while True:
                ending = await self._judge(move)
                if ending:
                    return ending
                await self._wait(move, changes)

    async def _wait(self, move: OpenMove, changes: Changes) -> None:
        """Wait for a change of the controller or its pods, for some time at most."""
        is_over = self._over_since < math.inf
        left = math.inf if is_over else self._find_deadline(move) - self._context.clock()
        left = min(left, _LOOK_AGAIN, self._lacking)
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, left)):
                await changes.wait()
                await asyncio.sleep(_PAUSE)  # changes come in bursts

    async def _judge(self, move: OpenMove) -> Ending | None:
        owner = self._context.find_controller(move.controller_uid)
        looked = asyncio.get_running_loop().time()
        pods = self._context.mirror.cache.of(POD).group(self._handle.namespace, move.controller_uid)
        self._readiness.look(pods.values(), looked)
        state = observe_controller(pods.values(), move, owner)._replace(
            is_gone=self._had_owner and owner is None
        )
        self._had_owner = self._had_owner or owner is not None
        replacement = find_replacement(move, self._list_others(move), state.pods)
        scores = await self._score(move, replacement)
        is_over = self._context.clock() >= self._find_deadline(move)
        if is_over:
            self._over_since = min(self._over_since, looked)
        spell = self._readiness.find(replacement)
        ready_for = looked - spell.since if spell else None  # not what scoring took: nobody looked meanwhile
        lasts = self._lasts(move, replacement, ready_for, is_over=is_over)
        # A spell that began in time may run its course.
        is_over = is_over and (spell is None or spell.since > self._over_since)
        ending = judge_replacement(move, replacement, state, scores=scores, lasts=lasts, is_over=is_over)
        return ending and self._correct_time(ending, spell)

    def _lasts(
        self, move: OpenMove, replacement: PodRow | None, ready_for: float | None, *, is_over: bool
    ) -> bool:
        asked_for = self._context.find_min_ready(move.controller_uid)
        least = max(self._context.settings().min_ready, asked_for)
        # Not less than a pause: sums of times are not exact.
        self._lacking = math.inf if ready_for is None else max(_PAUSE, least - ready_for)
        return has_lasted(replacement, ready_for=ready_for or 0.0, least=least, is_over=is_over)

    def _list_others(self, move: OpenMove) -> list[OpenMove]:
        """List the other open moves of the controller, as they are known now."""
        history = self._context.store.find_history(self._handle.namespace, self._handle.history)
        opened = (history.status.open or ()) if history else ()
        return [one for one in opened if one.id != move.id and one.controller_uid == move.controller_uid]

    def _correct_time(self, ending: Ending, spell: ReadySpell | None) -> Ending:
        """Limit the time to Ready to what was seen: the kubelet dates it by the clock of its node."""
        evicted = self._evicted_at
        if ending.time_to_ready is None or evicted is None or spell is None:
            return replace(ending, time_to_ready=None)
        passed = self._context.clock() - asyncio.get_running_loop().time() - evicted
        least = spell.after + passed - 1  # the kubelet cuts it to seconds
        most = max(0.0, spell.since + passed)  # the API server's clock may have been set back
        return replace(ending, time_to_ready=min(max(ending.time_to_ready, least), most))

    def _find_deadline(self, move: OpenMove) -> float:
        """A replacement that has landed and is deleted then does not end the wait of its successor."""
        return find_deadline(move, has_landed=bool(self._landed))

    async def _score(self, move: OpenMove, replacement: PodRow | None) -> LandingScores | None:
        """Score a landing once and soon: later, the cluster is no longer what the scheduler saw."""
        if replacement is None or replacement.node is None:
            return None
        if replacement.uid != self._landed:
            self._landed = replacement.uid
            self._handle.hooks.on_landing()
            self._handle.reporter.tell(f"{replacement.name} landed on {replacement.node}")
            self._scores = await self._validator.score_landing(move, replacement.node)
        return self._scores
