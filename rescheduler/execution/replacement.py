"""Waits for the replacement of an evicted pod, until it has been Ready for a while or its time is over."""

import asyncio
import math
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from reberth.cluster.kinds import POD, REPLICA_SET, REPLICATION_CONTROLLER, STATEFUL_SET, Kind
from reberth.cluster.rows import PodRow
from reberth.memory.history import Ending
from reberth.records import OpenMove, Owner, ReplicationController
from rescheduler.execution.context import Changes, ExecutionContext, MoveHandle
from rescheduler.execution.validation import MoveValidator
from rescheduler.model.plan import LandingScores
from rescheduler.moves.outcome import find_deadline, find_replacement, judge_replacement, observe_controller
from rescheduler.moves.readiness import ReadyTimer, has_lasted

_KINDS_WITH_REPLICAS: tuple[Kind[Any, Any], ...] = (
    REPLICA_SET,
    STATEFUL_SET,
    REPLICATION_CONTROLLER,
)
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
        self._unready_at = -math.inf  # when it was last seen not Ready
        self._ready_at = math.inf  # when it was first seen Ready, without a break since
        self._readiness = ReadyTimer()
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
        left = min(self._find_deadline(move) - self._context.clock(), _LOOK_AGAIN, self._lacking)
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, left)):
                await changes.wait()
                await asyncio.sleep(_PAUSE)  # changes come in bursts

    async def _judge(self, move: OpenMove) -> Ending | None:
        looked, owner = self._context.clock(), self._find_owner(move)
        pods = self._context.mirror.cache.of(POD).group(self._handle.namespace, move.controller_uid)
        state = observe_controller(pods.values(), move, owner)._replace(
            is_gone=self._had_owner and owner is None
        )
        self._had_owner = self._had_owner or owner is not None
        replacement = find_replacement(move, self._list_others(move), state.pods)
        scores = await self._score(move, replacement)
        is_over = self._context.clock() >= self._find_deadline(move)
        lasts = self._lasts(replacement, owner, is_over=is_over)
        ending = judge_replacement(move, replacement, state, scores=scores, lasts=lasts, is_over=is_over)
        if replacement is None or not replacement.is_ready:
            self._unready_at = looked
        return ending and self._correct_time(ending)

    def _lasts(
        self, replacement: PodRow | None, owner: Owner | ReplicationController | None, *, is_over: bool
    ) -> bool:
        asked_for = (owner.spec.min_ready_seconds if owner else None) or 0
        least = max(self._context.settings().min_ready, asked_for)
        ready_for = self._readiness.observe(replacement, asyncio.get_running_loop().time())
        is_ready = replacement is not None and replacement.is_ready
        if ready_for == 0:
            self._ready_at = self._context.clock()
        # Not less than a pause: sums of times are not exact.
        self._lacking = max(_PAUSE, least - ready_for) if is_ready else math.inf
        return has_lasted(replacement, ready_for=ready_for, least=least, is_over=is_over)

    def _list_others(self, move: OpenMove) -> list[OpenMove]:
        """List the other open moves of the controller, as they are known now."""
        history = self._context.store.find_history(self._handle.namespace, self._handle.history)
        opened = (history.status.open or ()) if history else ()
        return [one for one in opened if one.id != move.id and one.controller_uid == move.controller_uid]

    def _correct_time(self, ending: Ending) -> Ending:
        """Limit the time to Ready to what was seen: the kubelet dates it by the clock of its node."""
        evicted = self._evicted_at
        if ending.time_to_ready is None or evicted is None:
            return replace(ending, time_to_ready=None)
        least = self._unready_at - evicted - 1  # the kubelet cuts it to seconds
        most = max(0.0, self._ready_at - evicted)  # the API server's clock may have been set back
        return replace(ending, time_to_ready=min(max(ending.time_to_ready, least), most))

    def _find_deadline(self, move: OpenMove) -> float:
        """A replacement that has landed and is deleted then does not end the wait of its successor."""
        return find_deadline(move, has_landed=bool(self._landed))

    def _find_owner(self, move: OpenMove) -> Owner | ReplicationController | None:
        cache = self._context.mirror.cache
        tables = map(cache.of, _KINDS_WITH_REPLICAS)
        return next(filter(None, (table.by_uid(move.controller_uid) for table in tables)), None)

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
