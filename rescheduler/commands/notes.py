"""`python -m rescheduler notes`: list the notes on nodes, and remove ours."""

from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from msgspec.structs import replace

from reberth.client.api import Api
from reberth.cluster.kinds import NODES
from reberth.memory.notes import ANNOTATION, Note, Notes, read_notes
from reberth.records import Node
from reberth.values.refusal import Refused
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


def describe_note(note: Note) -> str:
    """Describe a note: its owner, its end and its reason."""
    until = write_time(note.expires_at)
    mark = note.mark
    if mark is None:
        return f"foreign          until {until}  controller {note.controller_uid}  {note.reason}"
    root = f"  {mark.root.kind} {mark.root.name}" if mark.root else ""
    strict = "  strict" if mark.strict else ""
    whom = f"{mark.namespace}{root}  controller {note.controller_uid}"
    return f"{mark.id:<16} until {until}  {whom}{strict}  {mark.policy}: {note.reason}"


async def _find_nodes(api: Api, node: str | None) -> AsyncIterator[Node]:
    if node is not None:
        yield await api.get(NODES, node)
        return
    async for page in api.list_pages(NODES):
        for found in page.objects:
            yield found
