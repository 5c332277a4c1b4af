"""All writes of the rescheduler: eviction histories, the move ledger, notes on nodes, the Lease, evictions.

A write is computed from the object that was just read and carries its resourceVersion. After a conflict, or
if it is uncertain whether the write was carried out, it is repeated from the read on. That is safe because
every change is a function that changes nothing when it is applied a second time. An eviction is not: it is
sent once.

Writers of one object in this process take turns; otherwise they would conflict with each other again and
again. The lease is checked immediately before each write is sent: a process that has lost it must not write.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec.structs import replace

from reberth.client.api import Api
from reberth.client.lease import LEASES, Leadership, LeaseSettings
from reberth.cluster.kinds import HISTORIES, LEDGERS, NODES, Resource
from reberth.cluster.pods.identity import Signature, name_history
from reberth.memory.history import is_history_of, start_history
from reberth.memory.ledger import LEDGER_NAME, start_ledger
from reberth.memory.notes import ANNOTATION, Notes, read_notes, render_notes
from reberth.records import EvictionHistory, Lease, MoveLedger, Node, OpenMove, Record
from reberth.values import errors
from reberth.values.jitter import jittered_backoff
from reberth.values.refusal import Refused
from rescheduler.moves.move_request import ANSWERS, REQUEST, Annotations

R = TypeVar("R", bound=Record)
Change = Callable[[R], R | Refused]

TRIES = 12
_FIRST_PAUSE, _LONGEST_PAUSE = 0.04, 2.0
_RETRIED = (errors.Conflict, errors.Unanswered, errors.Unreachable, errors.ServerFault)

NODE_GONE = Refused("NodeGone", "the node has been deleted")
HISTORY_GONE = Refused("HistoryGone", "the eviction history of the workload has been deleted")


class MoveStore:
    """All writes of the rescheduler."""

    def __init__(self, api: Api, leadership: Leadership) -> None:
        self._api = api.guarded(leadership.check)
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def start_history(
        self, signature: Signature, change: Change[EvictionHistory]
    ) -> EvictionHistory | Refused:
        """Change the history of a pod's workload; create it if there is none."""

        async def read() -> EvictionHistory:
            return await self._find_history(signature)

        return await self._change(HISTORIES, read, change)

    async def change_history(
        self, namespace: str, name: str, change: Change[EvictionHistory]
    ) -> EvictionHistory | Refused:
        async def read() -> EvictionHistory:
            return await self._api.get(HISTORIES, name, namespace=namespace)

        try:
            return await self._change(HISTORIES, read, change)
        except errors.NotFound:
            return HISTORY_GONE

    async def change_ledger(self, change: Change[MoveLedger]) -> MoveLedger | Refused:
        async with self._turns[LEDGERS.name]:
            return await self._change(LEDGERS, self._find_ledger, change)

    async def read_ledger(self) -> MoveLedger:
        """Read the ledger; an empty one if it does not exist yet."""
        try:
            return await self._api.get(LEDGERS, LEDGER_NAME)
        except errors.NotFound:
            return start_ledger()

    async def change_notes(self, node: str, change: Callable[[Notes], Notes | Refused]) -> Node | Refused:
        """Change the notes in a node's annotation; an unreadable annotation is not changed."""

        async def read() -> Node:
            return await self._api.get(NODES, node)

        async def write(changed: Node) -> Node:
            meta = changed.metadata
            annotations = {ANNOTATION: (meta.annotations or {}).get(ANNOTATION)}
            patch = {"metadata": {"resourceVersion": meta.resource_version, "annotations": annotations}}
            return await self._api.merge(NODES, node, patch)

        try:
            async with self._turns[node]:
                return await _retry(read, lambda found: _rewrite_notes(found, change), write)
        except errors.NotFound:
            return NODE_GONE

    async def change_lease(
        self, lease: LeaseSettings, change: Callable[[Annotations], Annotations | Refused]
    ) -> Lease | Refused:
        """Change the annotations of the Lease that carry move requests."""
        return await rewrite_lease(self._api, lease, change)

    async def evict(self, move: OpenMove, *, namespace: str, dry_run: bool) -> None:
        """Send the eviction, once."""
        annotations = {
            "reberth.dev/move": move.id,
            "reberth.dev/policy": move.policy,
            "reberth.dev/reason": move.reason,
        }
        await self._api.evict(
            move.pod, namespace=namespace, uid=move.pod_uid, dry_run=dry_run, annotations=annotations
        )

    async def _find_ledger(self) -> MoveLedger:
        ledger = await self.read_ledger()
        return ledger if ledger.metadata.uid else await self._create(LEDGERS, ledger)

    async def _find_history(self, signature: Signature) -> EvictionHistory:
        """Give the history of this workload; that of a deleted workload with its name is replaced."""
        name, namespace = name_history(signature.root), signature.namespace
        try:
            found = await self._api.get(HISTORIES, name, namespace=namespace)
            if is_history_of(found, signature.root):
                return found
            await self._api.delete(HISTORIES, name, uid=found.metadata.uid, namespace=namespace)
        except errors.NotFound:
            pass
        return await self._create(HISTORIES, start_history(signature), namespace=namespace)

    async def _create(self, resource: Resource[R], body: R, *, namespace: str = "") -> R:
        return await self._api.create(resource, body, namespace=namespace)

    async def _change(
        self, resource: Resource[R], read: Callable[[], Awaitable[R]], change: Change[R]
    ) -> R | Refused:
        async def write(changed: R) -> R:
            meta = changed.metadata  # type: ignore[attr-defined] # a record of a whole object has it
            return await self._api.replace(
                resource, meta.name, changed, namespace=meta.namespace, subresource="status"
            )

        return await _retry(read, change, write)


async def rewrite_lease(
    api: Api, lease: LeaseSettings, change: Callable[[Annotations], Annotations | Refused]
) -> Lease | Refused:
    """Change the annotations of the Lease. Raises NotFound if no process has led yet."""

    async def read() -> Lease:
        return await api.get(LEASES, lease.name, namespace=lease.namespace)

    def rewrite(found: Lease) -> Lease | Refused:
        changed = change(found.metadata.annotations or {})
        if isinstance(changed, Refused):
            return changed
        return replace(found, metadata=replace(found.metadata, annotations=dict(changed) or None))

    async def write(changed: Lease) -> Lease:
        meta = changed.metadata
        annotations = {key: (meta.annotations or {}).get(key) for key in (REQUEST, ANSWERS)}
        patch = {"metadata": {"resourceVersion": meta.resource_version, "annotations": annotations}}
        return await api.merge(LEASES, lease.name, patch, namespace=lease.namespace)

    return await _retry(read, rewrite, write)


async def _retry(
    read: Callable[[], Awaitable[R]], change: Change[R], write: Callable[[R], Awaitable[R]]
) -> R | Refused:
    """Read, change and write until that succeeds; an object that is as it should be is not written."""
    for attempt in range(1, TRIES):
        try:
            return await _once(read, change, write)
        except _RETRIED:
            await asyncio.sleep(jittered_backoff(attempt, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE))
    return await _once(read, change, write)


async def _once(
    read: Callable[[], Awaitable[R]], change: Change[R], write: Callable[[R], Awaitable[R]]
) -> R | Refused:
    found = await read()
    changed = change(found)
    if isinstance(changed, Refused) or changed == found:
        return changed
    return await write(changed)


def _rewrite_notes(node: Node, change: Callable[[Notes], Notes | Refused]) -> Node | Refused:
    annotations = dict(node.metadata.annotations or {})
    notes = read_notes(annotations.pop(ANNOTATION, None))
    changed = notes if isinstance(notes, Refused) else change(notes)
    if isinstance(changed, Refused) or changed == notes:
        return changed if isinstance(changed, Refused) else node
    rendered = render_notes(changed)
    if rendered is not None:
        annotations[ANNOTATION] = rendered
    return replace(node, metadata=replace(node.metadata, annotations=annotations))
