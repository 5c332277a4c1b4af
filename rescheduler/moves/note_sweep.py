"""Which notes are removed from which nodes, and when.

Readers ignore a note from its expiry on, so nobody waits for an expired one to go: the next write of its node
drops it, or a sweep some minutes later. A strict note is different. What wakes the pods that it refused is
the patch that removes it, so it is removed at once.

A note that no open or past move has written is an orphan: a request of an earlier leader carried it out after
the move was undone. It is removed, too.

An annotation that cannot be read keeps any note from being written, so that nothing could be moved off its
node: a node may write its own annotations. It is removed once it has stood there for an hour.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from typing import NamedTuple

from reberth.memory.history import MOST_PAST
from reberth.memory.notes import ANNOTATION, Note, Notes, read_notes
from reberth.records import EvictionHistory, Node, Outcome, WorkloadIdentity
from reberth.values.refusal import Refused
from reberth.values.timestamp import parse_time

WRITTEN_PAUSE = 30.0
"""A node that was just written is left alone for this time, or until the cache has its new annotation."""

UNREADABLE_LIFE = 3600.0
"""How long an annotation that cannot be read may stay: somebody may be repairing it."""

READ_AT_ONCE = 500
"""Annotations that are read in one step: with 32 notes each, that takes a thirtieth of a second."""


Guard = Callable[[str], AbstractContextManager[object]]
"""What takes a fault that is met while the node of this name is handled."""


class SweepCause(StrEnum):
    """Why a note was removed."""

    EXPIRED = "expired"
    ORPHANED = "orphaned"
    UNREADABLE = "unreadable"


class DueNode(NamedTuple):
    """A node with notes to remove."""

    name: str
    is_urgent: bool
    """Pods wait until a strict note of it is removed."""


class _NotedNode(NamedTuple):
    """An annotation, and when something of it is due."""

    text: str
    strict_until: float
    """When the first strict note expires; infinite if there is none."""
    until: float
    """When the first of the others expires."""
    look_at: float
    """When its notes are looked at for orphans."""
    written_at: float = -math.inf
    is_unreadable: bool = False


class NoteSchedule:
    """When each node is due. An annotation is read once, however often its node changes.

    No note is looked at for orphans in the first `unsettled` seconds, while requests of an earlier leader may
    still be carried out. `guard` takes a fault about one node, which is left alone until its annotation
    changes.
    """

    def __init__(self, *, unsettled: float, guard: Guard = nullcontext) -> None:
        self._unsettled = unsettled
        self._guard = guard
        self._nodes: dict[str, _NotedNode] = {}

    def take(self, nodes: Iterable[Node], now: float) -> None:
        """Take over the nodes as they are now; of many new annotations the rest is read by the next calls."""
        known, self._nodes, unread = self._nodes, {}, READ_AT_ONCE
        for node in nodes:
            text = (node.metadata.annotations or {}).get(ANNOTATION)
            if not text:
                continue
            name = node.metadata.name
            held = known.get(name)
            if held is None or held.text != text:
                unread -= 1
                if unread < 0:
                    continue
                look_at = held.look_at if held and held.look_at < math.inf else now + self._unsettled
                held = _NotedNode(text, math.inf, math.inf, math.inf)
                with self._guard(name):
                    held = _read_node(text, look_at=look_at, now=now)
            self._nodes[name] = held

    def list_expired(self, now: float, *, patience: float) -> list[DueNode]:
        """List the nodes with a strict note that has expired, or another one that expired some time ago.

        The urgent ones come first, then those that have waited longest.
        """
        due = [
            (not now >= held.strict_until, min(held.strict_until, held.until), name)
            for name, held in self._nodes.items()
            if (now >= held.strict_until or now >= held.until + patience)
            and now >= held.written_at + WRITTEN_PAUSE
        ]
        return [DueNode(name, not patient) for patient, _, name in sorted(due)]

    def mark_written(self, node: str, now: float) -> None:
        """Leave a node alone until its annotation changes: it was swept, or could not be written."""
        if held := self._nodes.get(node):
            self._nodes[node] = held._replace(written_at=now)

    def find_unreadable(self, node: str) -> str | None:
        """Give the annotation of a node if it cannot be read."""
        held = self._nodes.get(node)
        return held.text if held and held.is_unreadable else None

    def take_unlooked(self, now: float, *, most: int, pause: float) -> list[tuple[str, Notes]]:
        """Give the next nodes to look at for orphans, with their notes; each one again after a pause."""
        due = sorted((held.look_at, name) for name, held in self._nodes.items() if now >= held.look_at)
        found = []
        for _, name in due[:most]:
            held = self._nodes[name]
            self._nodes[name] = held._replace(look_at=now + pause)
            notes = read_notes(held.text)
            if not isinstance(notes, Refused):
                found.append((name, notes))
        return found


def count_swept(before: Notes, after: Notes, now: float) -> Counter[SweepCause]:
    """Count the notes that a sweep has removed, by cause."""
    removed = set(before.ours) - set(after.ours)
    return Counter(SweepCause.EXPIRED if now >= note.expires_at else SweepCause.ORPHANED for note in removed)


def is_orphan(note: Note, workload: WorkloadIdentity, history: EvictionHistory, *, unsettled: float) -> bool:
    """Tell whether the history of a note's workload shows that no open or past move has written it.

    The move is closed, and its pod was never evicted; its note was removed before it was closed. Or the
    history does not know it, although it would: it is of this very workload, it was older than `unsettled`
    seconds when the note was written, and nothing was ever pushed out of it, since it is not full.
    """
    move, status = note.mark.id if note.mark else "", history.status
    if not move or any(one.id == move for one in status.open or ()):
        return False
    past = status.past or ()
    for one in past:
        if one.id == move:
            return one.outcome is Outcome.REFUSED and not one.evicted_at
    created = history.metadata.creation_timestamp
    return bool(
        len(past) < MOST_PAST
        and workload.uid
        and workload.uid == history.spec.workload.uid
        and created is not None
        and parse_time(created) + unsettled <= note.evicted_at
    )


def _read_node(text: str, *, look_at: float, now: float) -> _NotedNode:
    notes = read_notes(text)
    if isinstance(notes, Refused):
        return _NotedNode(text, math.inf, now + UNREADABLE_LIFE, math.inf, is_unreadable=True)
    ours = notes.ours
    return _NotedNode(
        text,
        strict_until=min((note.expires_at for note in ours if note.strict), default=math.inf),
        until=min((note.expires_at for note in ours if not note.strict), default=math.inf),
        look_at=look_at if ours else math.inf,
    )
