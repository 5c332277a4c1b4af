"""Builders for notes and their annotations."""

import json
from typing import Any

from reberth.memory.notes import Note, Notes, add_note, compose_note, read_notes
from reberth.values.timestamp import write_time
from tests.support.memory.objects import NOW, WEB


def note(move: str = "m1", *, at: float = NOW, **fields: Any) -> Note:
    return compose_note(WEB, move, policy="balance", reason="rebalance", now=at, **fields)


def foreign(uid: str = "uid-rs", *, at: float = NOW, **fields: Any) -> dict[str, Any]:
    controller = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "web-5d4f",
        "uid": uid,
        "controller": True,
    }
    return {"podSignature": {"podController": controller}, "evictionTime": write_time(at), **fields}


def annotation(*entries: Any, **members: Any) -> str:
    return json.dumps({"preferAvoidPods": list(entries), **members})


def readable(text: str | None) -> Notes:
    notes = read_notes(text)
    assert isinstance(notes, Notes)
    return notes


def added(notes: Notes, *new: Note, now: float = NOW, open_moves: tuple[str, ...] = ()) -> Notes:
    for one in new:
        result = add_note(notes, one, now=now, open_moves=open_moves)
        assert isinstance(result, Notes)
        notes = result
    return notes


def moves(notes: Notes) -> list[str]:
    return [one.mark.id for one in notes.ours if one.mark]
