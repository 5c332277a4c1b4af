"""The states that histories, the ledger and the notes on nodes have had, by an API server's audit log."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from operator import attrgetter
from typing import Any, NamedTuple

from localcluster.audit_log import Call
from reberth.memory.notes import ANNOTATION, read_notes
from reberth.values.refusal import Refused

HISTORIES, LEDGERS, NODES = "evictionhistories", "moveledgers", "nodes"
WRITES = ("create", "update", "patch")

Entries = Mapping[str, Mapping[str, Any]]
ObjectKey = tuple[str, str, str]
"""Resource without sub-resource, namespace, name."""


class StoredState(NamedTuple):
    """An object as somebody has written it."""

    version: float
    asked: float
    answered: float
    content: Mapping[str, Any]
    agent: str = ""

    @property
    def uid(self) -> str:
        uid: str = self.content.get("metadata", {}).get("uid", "")
        return uid


_VERSION = attrgetter("version")


class StateHistory:
    """The states of one object by version, and which of them was the newest at any moment."""

    def __init__(self, states: Iterable[StoredState]) -> None:
        self.states = sorted(states, key=_VERSION)
        answered = sorted(self.states, key=lambda state: state.answered)
        self._times = [state.answered for state in answered]
        self._newest = list[StoredState]()
        for state in answered:
            self._newest.append(max([*self._newest[-1:], state], key=_VERSION))

    def newest(self, at: float) -> StoredState | None:
        """Give the state that everybody could know at this time."""
        place = bisect_right(self._times, at)
        return self._newest[place - 1] if place else None


NEVER_WRITTEN = StateHistory([])


def read_objects(calls: Iterable[Call]) -> dict[ObjectKey, StateHistory]:
    """Give all states of each object.

    A write without an answer that was carried out is known to whoever reads the object again: it counts as
    answered then, unless another write was carried out on the state that it was for.
    """
    found = defaultdict[ObjectKey, list[StoredState]](list)
    lost, used = list[Call](), set[tuple[ObjectKey, str]]()
    read = defaultdict[ObjectKey, list[float]](list)
    for call in calls:
        if (key := find_key(call))[0] not in (HISTORIES, LEDGERS, NODES):
            continue
        if call.verb == "get" and is_done(call) and call.answered:
            read[key].append(call.answered)
        elif call.verb in WRITES and is_done(call) and call.answered:
            version = float(call.stored["metadata"]["resourceVersion"])
            found[key].append(StoredState(version, call.received, call.answered, call.stored, call.agent))
            used.add((key, _read_precondition(call)))
        elif call.verb in WRITES and (call.code or 500) >= HTTPStatus.INTERNAL_SERVER_ERROR:
            lost.append(call)
    for call in lost:
        key, precondition = find_key(call), _read_precondition(call)
        learnt = next((at for at in read[key] if at > call.received), None)
        if learnt and precondition and (key, precondition) not in used:
            version = float(precondition) + 0.5
            found[key].append(StoredState(version, call.received, learnt, call.body, call.agent))
    return {key: StateHistory(states) for key, states in found.items()}


def is_done(call: Call) -> bool:
    return call.code in (HTTPStatus.OK, HTTPStatus.CREATED)


def find_key(call: Call) -> ObjectKey:
    """Give the object of a call; a create names it in its body."""
    meta = call.body.get("metadata", {})
    return call.resource.partition("/")[0], call.namespace, call.name or meta.get("name", "")


def read_open(state: StoredState | None) -> Entries:
    """Give the open moves of a history by id."""
    return _read_entries(state, "open", "id")


def read_past(state: StoredState | None) -> Entries:
    return _read_entries(state, "past", "id")


def read_debits(state: StoredState | None) -> Entries:
    """Give the debits of a ledger by move."""
    return _read_entries(state, "debits", "move")


def read_spent(state: StoredState | None) -> frozenset[str]:
    """Give the moves that a ledger knows as spent; their debits may have been folded."""
    groups = state.content.get("status", {}).get("spentMoves", ()) if state else ()
    return frozenset(move for group in groups for move in group["moves"].split())


def read_noted(node: StoredState | None) -> frozenset[str]:
    """Give the ids of the moves whose notes are on a node."""
    annotations = node.content.get("metadata", {}).get("annotations") if node else None
    notes = read_notes((annotations or {}).get(ANNOTATION))
    if isinstance(notes, Refused):
        return frozenset()
    return frozenset(note.mark.id for note in notes.ours if note.mark)


def name_moves(state: StoredState | None) -> frozenset[str]:
    """Give all moves that a history names."""
    return frozenset((*read_open(state), *read_past(state)))


def _read_entries(state: StoredState | None, field: str, key: str) -> Entries:
    found = state.content.get("status", {}).get(field, ()) if state else ()
    return {one[key]: one for one in found}


def _read_precondition(call: Call) -> str:
    version: str = call.body.get("metadata", {}).get("resourceVersion", "")
    return version
