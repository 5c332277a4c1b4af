"""Removes expired notes within a second: pods may be pending until a strict note is removed."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import NoReturn

from reberth.cluster.kinds import NODE
from reberth.cluster.rows import NodeRow
from reberth.cluster.tables import Table
from reberth.memory.notes import ANNOTATION, drop_expired, read_notes
from reberth.runtime.logs import Log
from reberth.values.errors import ApiError
from reberth.values.refusal import Refused
from rescheduler.execution.context import ExecutionContext

_CHECK_EVERY = 1.0

log = Log(__name__)


async def remove_expired_notes(context: ExecutionContext) -> NoReturn:
    """Remove our expired notes while this process leads."""
    while True:
        for node in list(find_nodes_with_expired_notes(context.mirror.cache.of(NODE), context.clock)):
            try:
                await context.store.change_notes(node, partial(drop_expired, now=context.clock()))
            except ApiError as error:
                log.warning("expired notes not removed", node=node, reason=str(error))
        await asyncio.sleep(_CHECK_EVERY)


def find_nodes_with_expired_notes(nodes: Table[NodeRow], clock: Callable[[], float]) -> Iterator[str]:
    """Give the names of the nodes that have an expired note of ours."""
    now = clock()
    for row in nodes.rows():
        node = row.record
        annotation = (node.metadata.annotations or {}).get(ANNOTATION)
        notes = read_notes(annotation) if annotation else None
        if notes and not isinstance(notes, Refused) and drop_expired(notes, now) != notes:
            yield node.metadata.name
