"""`python -m rescheduler notes`: list the notes on nodes, and remove ours."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from reberth.client.api import Api
from reberth.cluster.kinds import NODES
from reberth.memory.notes import ANNOTATION, Note, Notes, read_notes
from reberth.records import Node
from reberth.values.refusal import Refused
from reberth.values.table import align, printable
from reberth.values.timestamp import write_time
from rescheduler.execution.store import MoveStore


class NodeNotes(NamedTuple):
    """The notes of one node; a refusal if its annotation is unreadable."""

    node: str
    notes: Notes | Refused


async def list_notes(api: Api, node: str | None) -> list[NodeNotes]:
    """Give the notes of one node, or of all nodes that have the annotation."""
    return [
        NodeNotes(found.metadata.name, read_notes(found.metadata.annotations[ANNOTATION]))
        async for found in _find_nodes(api, node)
        if found.metadata.annotations and ANNOTATION in found.metadata.annotations
    ]


async def clear_notes(api: Api, store: MoveStore, node: str | None, *, tell: Callable[[str], None]) -> bool:
    """Remove our notes from one node or from all; false if an annotation is unreadable."""
    is_clear = True
    for carried in await list_notes(api, node):
        notes = carried.notes
        if not isinstance(notes, Refused) and not notes.ours:
            continue
        cleared = await store.change_notes(carried.node, lambda notes: replace(notes, ours=()))
        if isinstance(cleared, Refused):
            is_clear = False
            tell(f"{carried.node}: {cleared.rule}: {cleared.reason}")
        elif not isinstance(notes, Refused):
            tell(f"{carried.node}: notes removed: {len(notes.ours)}")
    return is_clear


def tabulate_notes(found: Iterable[NodeNotes]) -> str:
    """Write one line for each note, and one for each node whose annotation is unreadable."""
    rows = [row for carried in found for row in _list_rows(carried)]
    head = ("NODE", "MOVE", "UNTIL", "NAMESPACE", "WORKLOAD", "CONTROLLER", "STRICT", "POLICY", "REASON")
    return "\n".join(align([head, *rows])) if rows else "no notes"


def _list_rows(carried: NodeNotes) -> Iterator[tuple[str, ...]]:
    if isinstance(carried.notes, Refused):
        said = f"{carried.notes.rule}: {carried.notes.reason}"
        yield (carried.node, *("-" for _ in range(7)), printable(said))
        return
    for note in map(_describe, carried.notes):
        # Texts of other controllers may be anything.
        yield (carried.node, *("yes" if each is True else printable(each or "-") for each in note.values()))


def write_notes_json(found: Iterable[NodeNotes]) -> str:
    content = {"nodes": {carried.node: _list_fields(carried.notes) for carried in found}}
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode()


def _list_fields(notes: Notes | Refused) -> dict[str, object]:
    if isinstance(notes, Refused):
        return {"refused": {"rule": notes.rule, "reason": notes.reason}}
    return {"notes": [_describe(note) for note in notes]}


def _describe(note: Note) -> dict[str, Any]:
    """Give the fields that people see; a note of another controller names neither move nor workload."""
    mark = note.mark
    return {
        "move": mark.id if mark else "foreign",
        "until": write_time(note.expires_at),
        "namespace": mark.namespace if mark else None,
        "workload": f"{mark.root.kind}/{mark.root.name}" if mark and mark.root else None,
        "controller": note.controller_uid,
        "strict": note.strict,
        "policy": mark.policy if mark else None,
        "reason": note.reason,
    }


async def _find_nodes(api: Api, node: str | None) -> AsyncIterator[Node]:
    if node is not None:
        yield await api.get(NODES, node)
        return
    async for page in api.list_pages(NODES):
        for found in page.objects:
            yield found
