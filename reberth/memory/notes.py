"""Which pods should avoid a node: the notes in the node's annotation.

The annotation is Kubernetes' own list of pods that should avoid a node. It is shared: other programs write
entries too, and a later version of Reberth may write entries that this one cannot read. So each entry is kept
byte for byte, and a list that cannot be read as a whole is left alone.

An entry of Reberth has a member `reberth` with the move's id. If it contains a root owner, it holds for every
generation of that owner (the node is bad for the service); otherwise for its controller alone (this template
is bad on this node). It holds until `expiresAt`. An entry of another program holds for an hour from its
evictionTime; if that is further in the future than an hour, the entry does not hold yet, so that no broken
clock keeps pods away for years.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from reberth.cluster.pods.identity import Signature, group_of
from reberth.records import OpenMove, OwnerReference, Record, WorkloadIdentity
from reberth.values.refusal import Refused
from reberth.values.timestamp import parse_time, write_time

ANNOTATION = "scheduler.alpha.kubernetes.io/preferAvoidPods"
BALANCE_LIFE = 3600.0
POOR_SERVICE_LIFE = 24 * 3600.0
FOREIGN_LIFE = 3600.0
MOST_NOTES = 32

NOTE_UNREADABLE = Refused("NoteUnreadable", "the node's annotation preferAvoidPods cannot be read")
NOTE_LOST = Refused("NoteLost", "the source node no longer has the note of the move")
NOTES_FULL = Refused("NotesFull", "the node has the maximum number of notes, all held by open moves")

_LIST = "preferAvoidPods"
_MOST_FOUND = 64

# The key that a note and a pod share: an owner's uid, or its namespace, group, kind and name.
_Key = str | tuple[str, str, str, str]


class _PodSignature(Record, frozen=True):
    pod_controller: OwnerReference


class NoteOrigin(Record, frozen=True):
    """The member `reberth`, which only Reberth's entries have: the move and policy that wrote it."""

    id: str
    namespace: str
    expires_at: str
    policy: str = ""
    strict: bool = False
    root: WorkloadIdentity | None = None


class _Entry(Record, frozen=True):
    pod_signature: _PodSignature
    eviction_time: str
    reason: str | None = None
    reberth: NoteOrigin | None = None


class Note(msgspec.Struct, frozen=True):
    """A readable entry; only entries of Reberth have a mark."""

    text: bytes
    controller_uid: str
    evicted_at: float
    holds_from: float
    expires_at: float
    reason: str = ""
    mark: NoteOrigin | None = None

    @property
    def strict(self) -> bool:
        return self.mark is not None and self.mark.strict

    def holds(self, now: float) -> bool:
        return self.holds_from < now < self.expires_at


class Notes(msgspec.Struct, frozen=True):
    """The content of one annotation."""

    ours: tuple[Note, ...] = ()  # oldest first
    foreign: tuple[Note, ...] = ()
    kept: tuple[bytes, ...] = ()  # entries of other programs, and unreadable ones, byte for byte
    members: tuple[tuple[str, bytes], ...] = ()  # the other members beside the list

    def __iter__(self) -> Iterator[Note]:
        yield from self.ours
        yield from self.foreign


def read_notes(annotation: str | None, *, foreign_life: float = FOREIGN_LIFE) -> Notes | Refused:
    """Read the annotation's value; a missing or empty one contains nothing."""
    if not annotation:
        return Notes()
    try:
        members = msgspec.json.decode(annotation, type=dict[str, msgspec.Raw])
        entries = msgspec.json.decode(members.pop(_LIST, b"null"), type=list[msgspec.Raw] | None)
    except (ValueError, RecursionError):
        return NOTE_UNREADABLE
    read = [_read_entry(bytes(entry), foreign_life) for entry in entries or ()]
    notes = [note for note in read if isinstance(note, Note)]
    return Notes(
        ours=_in_order(note for note in notes if note.mark),
        foreign=tuple(note for note in notes if not note.mark),
        kept=tuple(_text(entry) for entry in read if not (isinstance(entry, Note) and entry.mark)),
        members=tuple((name, bytes(value)) for name, value in members.items()),
    )


def render_notes(notes: Notes) -> str | None:
    """Write the annotation's value; None: it is empty and should be removed."""
    if not (notes.ours or notes.kept or notes.members):
        return None
    entries = [*notes.kept, *(note.text for note in notes.ours)]
    members = {_LIST: [msgspec.Raw(entry) for entry in entries]}
    others = {name: msgspec.Raw(value) for name, value in notes.members}
    return msgspec.json.encode(members | others).decode()


def compose_note(
    signature: Signature,
    move: str,
    *,
    policy: str,
    reason: str,
    now: float,
    life: float = BALANCE_LIFE,
    for_service: bool = False,
    strict: bool = False,
) -> Note:
    """Make a note, for the pod's controller or for the whole service that its root owner is.

    A root owner without a uid is left out: the controller is certain, the name may belong to another
    workload.
    """
    owner = signature.controller
    root = signature.root if for_service and signature.root.uid else None
    entry = _Entry(
        # Without `controller: true` the API server drops the connection on every write of the node.
        _PodSignature(OwnerReference(owner.api_version, owner.kind, owner.name, owner.uid, controller=True)),
        write_time(now),
        reason,
        NoteOrigin(move, signature.namespace, write_time(now + life), policy, strict, root),
    )
    return _as_note(entry, msgspec.json.encode(entry), FOREIGN_LIFE)


def count_room(notes: Notes, *, now: float, open_moves: Collection[str], most: int = MOST_NOTES) -> int:
    """Count the notes that may still be added: only those of open moves are not pushed out."""
    return most - sum(now < held.expires_at and _move(held) in open_moves for held in notes.ours)


def add_note(
    notes: Notes, note: Note, *, now: float, open_moves: Collection[str], most: int = MOST_NOTES
) -> Notes | Refused:
    """Add a note of Reberth; if its move already has one, nothing changes.

    Expired notes are removed. If there is still no room, the oldest of those without an open move are
    removed.
    """
    if any(_move(held) == _move(note) for held in notes.ours):
        return notes
    living = [held for held in notes.ours if now < held.expires_at]
    loose = [held for held in living if _move(held) not in open_moves]
    surplus = max(0, len(living) + 1 - most)
    if surplus > len(loose):
        return NOTES_FULL
    pushed_out = loose[:surplus]
    return _with_ours(notes, [note, *(held for held in living if held not in pushed_out)])


def is_note_of(note: Note, move: OpenMove, namespace: str) -> bool:
    """Tell whether a move of this namespace has written the note.

    The id alone does not tell. Everybody may read it, and a history that was not written by the rescheduler
    may name it: whoever undoes such a move must not remove the note of another workload.
    """
    mark = note.mark
    said = (mark.id, mark.namespace, note.controller_uid) if mark else None
    return said == (move.id, namespace, move.controller_uid)


def renew_note(notes: Notes, move: OpenMove, namespace: str, *, now: float) -> Notes | Refused:
    """Date the note of a move anew, so that a request to remove it which is on its way meets a conflict."""
    held = next((one for one in notes.ours if is_note_of(one, move, namespace)), None)
    if held is None:
        return NOTE_LOST
    members = msgspec.json.decode(held.text, type=dict[str, msgspec.Raw])
    time = write_time(max(now, held.evicted_at + 1))  # another one, in whole seconds
    text = msgspec.json.encode(members | {"evictionTime": time})
    renewed = _read_entry(text, FOREIGN_LIFE)
    if not isinstance(renewed, Note):
        return NOTE_LOST
    return _with_ours(notes, [renewed if one is held else one for one in notes.ours])


def remove_move(notes: Notes, move: OpenMove, namespace: str) -> Notes:
    return _with_ours(notes, [held for held in notes.ours if not is_note_of(held, move, namespace)])


def sweep_notes(notes: Notes, *, now: float, orphans: Collection[str] = ()) -> Notes:
    """Remove the notes of Reberth that have expired, and those of these moves."""
    return _with_ours(
        notes, [held for held in notes.ours if now < held.expires_at and _move(held) not in orphans]
    )


def find_noted_controller(note: Note) -> OwnerReference:
    """Give the controller that the entry names."""
    return msgspec.json.decode(note.text, type=_Entry).pod_signature.pod_controller


def next_expiry(notes: Notes, now: float) -> float | None:
    """Give the time when the next note expires."""
    return min((note.expires_at for note in notes if note.expires_at > now), default=None)


def matches(note: Note, signature: Signature) -> bool:
    """Tell whether the pod is one of those that should avoid the node."""
    return not _keys_of_note(note).isdisjoint(_keys_of_pod(signature))


class FoundNotes(NamedTuple):
    """The notes that apply to a workload during a period, by their nodes."""

    notes: Mapping[str, tuple[Note, ...]] = MappingProxyType({})
    strict: frozenset[str] = frozenset()
    """The nodes that are avoided strictly."""
    since: float = -math.inf
    until: float = math.inf


NOTHING_FOUND = FoundNotes()


class NoteIndex:
    """Finds the nodes with notes for a pod without visiting the other nodes."""

    def __init__(self) -> None:
        self._notes: dict[str, tuple[Note, ...]] = {}
        self._held: dict[_Key, dict[str, list[Note]]] = {}
        self._found: dict[Signature, FoundNotes] = {}
        self._strict = 0

    @property
    def has_strict(self) -> bool:
        """Tell whether any note keeps pods strictly away from a node."""
        return self._strict > 0

    def put(self, node: str, notes: Notes) -> None:
        given = tuple(notes)
        if given == self._notes.get(node, ()):
            return
        self.drop(node)
        if given:
            self._notes[node] = given
        self._strict += sum(note.strict for note in given)
        for note in given:
            for key in _keys_of_note(note):
                self._held.setdefault(key, {}).setdefault(node, []).append(note)

    def drop(self, node: str) -> None:
        dropped = self._notes.pop(node, ())
        self._strict -= sum(note.strict for note in dropped)
        for key in {key for note in dropped for key in _keys_of_note(note)}:
            del self._held[key][node]
            if not self._held[key]:
                del self._held[key]
        self._found.clear()

    def find(self, signature: Signature, now: float) -> FoundNotes:
        """Give the notes that apply to a pod, by their nodes; quick for a pod like a recent one."""
        found = self._found.get(signature)
        if found is None or not found.since <= now < found.until:
            if len(self._found) >= _MOST_FOUND:
                self._found.clear()
            found = self._found[signature] = self._find(signature, now)
        return found

    def _find(self, signature: Signature, now: float) -> FoundNotes:
        found: dict[str, dict[bytes, Note]] = {}
        until = math.inf
        for key in sorted(_keys_of_pod(signature), key=str):
            for node, notes in self._held.get(key, {}).items():
                for note in notes:
                    if note.holds(now):
                        found.setdefault(node, {})[note.text] = note
                        until = min(until, note.expires_at)
                    elif note.holds_from >= now:
                        until = min(until, note.holds_from)
        strict = frozenset(
            node for node, notes in found.items() if any(note.strict for note in notes.values())
        )
        return FoundNotes({node: tuple(notes.values()) for node, notes in found.items()}, strict, now, until)


def _read_entry(text: bytes, foreign_life: float) -> Note | bytes:
    try:
        return _as_note(msgspec.json.decode(text, type=_Entry), text, foreign_life)
    except (ValueError, RecursionError):
        return text


def _as_note(entry: _Entry, text: bytes, foreign_life: float) -> Note:
    evicted_at = parse_time(entry.eviction_time)
    mark = entry.reberth
    return Note(
        text=text,
        controller_uid=entry.pod_signature.pod_controller.uid,
        evicted_at=evicted_at,
        holds_from=-math.inf if mark else evicted_at - foreign_life,
        expires_at=parse_time(mark.expires_at) if mark else evicted_at + foreign_life,
        reason=entry.reason or "",
        mark=mark,
    )


def _text(entry: Note | bytes) -> bytes:
    return entry.text if isinstance(entry, Note) else entry


def _move(note: Note) -> str:
    return note.mark.id if note.mark else ""


def _in_order(notes: Iterable[Note]) -> tuple[Note, ...]:
    return tuple(sorted(notes, key=lambda note: (note.evicted_at, _move(note), note.text)))


def _with_ours(notes: Notes, ours: Iterable[Note]) -> Notes:
    return msgspec.structs.replace(notes, ours=_in_order(ours))


def _keys_of_note(note: Note) -> set[_Key]:
    keys: set[_Key] = {note.controller_uid}
    if note.mark and note.mark.root:
        keys |= {note.mark.root.uid, _key_of_name(note.mark.namespace, note.mark.root)}
    return keys - {""}


def _keys_of_pod(signature: Signature) -> set[_Key]:
    root = signature.root
    keys: set[_Key] = {signature.controller.uid, root.uid or _key_of_name(signature.namespace, root)}
    return keys - {""}


def _key_of_name(namespace: str, owner: WorkloadIdentity) -> _Key:
    return (namespace, group_of(owner.api_version), owner.kind, owner.name)
