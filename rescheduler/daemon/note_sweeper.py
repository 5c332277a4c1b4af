"""Removes notes that nobody heeds any more, and notes that no move has written.

A sweep sends at most a tenth of the requests that the client may send in a second, so that moves have the
rest. Only strict notes are not counted: pods are pending until they are gone.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import NamedTuple, NoReturn

from reberth.cluster.kinds import HISTORIES, HISTORY, NODE, OWNED_CONTROLLERS
from reberth.cluster.pods.identity import find_signature, name_history
from reberth.memory.notes import ANNOTATION, Note, Notes, find_noted_controller, sweep_notes
from reberth.records import EvictionHistory, ObjectMeta, WorkloadIdentity
from reberth.runtime.faults import handling
from reberth.runtime.logs import Log
from reberth.values.errors import ApiError
from reberth.values.refusal import Refused
from rescheduler.execution.context import ExecutionContext
from rescheduler.moves.note_sweep import NoteSchedule, SweepCause, count_swept, is_orphan
from rescheduler.settings import LONGEST_REQUEST
from rescheduler.telemetry import metrics

_CHECK_EVERY = 1.0
_SHARE = 0.1
_LOOKED_AT = 20
"""Nodes that are looked at for orphans in one sweep."""

log = Log(__name__)


class _Suspect(NamedTuple):
    """A note that is an orphan by the cached history of its workload."""

    node: str
    note: Note
    workload: WorkloadIdentity
    history: EvictionHistory


class NoteSweeper:
    """Sweeps the notes of all nodes while this process leads.

    `find_held` gives the moves of this process: their notes are no orphans.
    """

    def __init__(self, context: ExecutionContext, find_held: Callable[[], Collection[str]]) -> None:
        self._context = context
        self._find_held = find_held
        self._schedule = NoteSchedule(unsettled=LONGEST_REQUEST, guard=partial(handling, "note"))

    async def run(self) -> NoReturn:
        while True:
            await self.sweep()
            await asyncio.sleep(_CHECK_EVERY)

    async def sweep(self) -> None:
        """Write the nodes that are due."""
        context, schedule, now = self._context, self._schedule, self._context.clock()
        patience = context.settings().note_sweep
        most = max(1, int(context.api.settings.requests_per_second * _SHARE))
        schedule.take((row.record for row in context.mirror.cache.of(NODE).within("")), now)
        expired = schedule.list_expired(now, patience=patience)
        for node in [each.name for each in expired if each.is_urgent]:
            await self._write_safely(node)
        orphans = await self._find_orphans(now, patience, most)
        waiting = [each.name for each in expired if not each.is_urgent]
        for node in list(dict.fromkeys([*orphans, *waiting]))[:most]:
            await self._write_safely(node, orphans.get(node, ()))

    async def _find_orphans(self, now: float, patience: float, most: int) -> dict[str, list[str]]:
        """Give the moves whose notes are orphans, by node; the API server confirms what the cache says."""
        held, suspects = frozenset(self._find_held()), list[_Suspect]()
        for node, notes in self._schedule.take_unlooked(now, most=_LOOKED_AT, pause=patience):
            with handling("note", node):
                suspects += self._suspect(node, notes, held)
        found: dict[str, list[str]] = defaultdict(list)
        for suspect in suspects[:most]:
            with handling("note", suspect.node):
                if await self._is_confirmed(suspect) and suspect.note.mark:
                    found[suspect.node].append(suspect.note.mark.id)
        return found

    def _suspect(self, node: str, notes: Notes, held: Collection[str]) -> Iterator[_Suspect]:
        for note in notes.ours:
            if note.mark is None or note.mark.id in held:
                continue
            workload = self._find_workload(note, note.mark.namespace)
            if workload is None:
                continue
            histories = self._context.mirror.cache.of(HISTORY)
            history = histories.named(note.mark.namespace, name_history(workload))
            if history and is_orphan(note, workload, history, unsettled=LONGEST_REQUEST):
                yield _Suspect(node, note, workload, history)

    def _find_workload(self, note: Note, namespace: str) -> WorkloadIdentity | None:
        controller, cache = find_noted_controller(note), self._context.mirror.cache
        owners = (cache.of(kind).by_uid(controller.uid) for kind in OWNED_CONTROLLERS)
        known = {owner.metadata.uid: owner.metadata for owner in owners if owner}
        pod = ObjectMeta(namespace=namespace, owner_references=(controller,))
        signature = find_signature(pod, known)
        return None if isinstance(signature, Refused) else signature.root

    async def _is_confirmed(self, suspect: _Suspect) -> bool:
        """Ask the API server: the cache may not have the end of a move yet that was begun and ended here."""
        meta = suspect.history.metadata
        try:
            history = await self._context.api.get(HISTORIES, meta.name, namespace=meta.namespace)
        except ApiError as error:
            log.warning("history of a note not read", history=meta.name, reason=str(error))
            return False
        return is_orphan(suspect.note, suspect.workload, history, unsettled=LONGEST_REQUEST)

    async def _write_safely(self, node: str, orphans: Collection[str] = ()) -> None:
        """Write a node; it is left alone for a while if that fails, whatever the reason."""
        self._schedule.mark_written(node, self._context.clock())
        with handling("note", node):
            await self._write(node, orphans)

    async def _write(self, node: str, orphans: Collection[str]) -> None:
        context, swept = self._context, Counter[SweepCause]()
        unreadable = self._schedule.find_unreadable(node)

        def sweep(notes: Notes) -> Notes:
            nonlocal swept
            now = context.clock()
            left = sweep_notes(notes, now=now, orphans=orphans)
            swept = count_swept(notes, left, now)
            return left

        try:
            written = await context.store.change_notes(node, sweep, given_up=unreadable)
        except ApiError as error:
            log.warning("notes not swept", node=node, reason=str(error))
            return
        if isinstance(written, Refused):
            return
        if unreadable is not None and ANNOTATION not in (written.metadata.annotations or {}):
            swept[SweepCause.UNREADABLE] += 1
            log.warning("annotation removed that could not be read", node=node, annotation=ANNOTATION)
        for cause, count in swept.items():
            metrics.NOTES_SWEPT.labels(cause.value).inc(count)
        if swept[SweepCause.ORPHANED]:
            log.info("notes of no open or past move removed", node=node, moves=sorted(orphans))
