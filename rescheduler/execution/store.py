"""All writes of the rescheduler: eviction histories, the move ledger, notes on nodes, the Lease, evictions.

A write is computed from the newest version of the object that this process knows, and carries its
resourceVersion. After a conflict, or if it is uncertain whether the write was carried out, the object is read
and the write is repeated; likewise if there is nothing to write, or the change is refused: only the newest
version tells. That is safe because every change is a function that changes nothing when it is applied a
second time. An eviction is not: it is sent once.

Writers of one object in this process take turns; otherwise they would conflict with each other again and
again. The lease is checked immediately before each write is sent: a process that has lost it must not write.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from msgspec.structs import replace

from reberth.client.api import Api
from reberth.client.lease import LEASES, Leadership, LeaseSettings
from reberth.client.newest import NewestObjects
from reberth.cluster.cache import Cache
from reberth.cluster.kinds import HISTORIES, LEDGERS, NODES, Resource
from reberth.cluster.pods.identity import Signature, name_history
from reberth.cluster.tables import meta_of
from reberth.memory.history import is_history_of, start_history
from reberth.memory.ledger import LEDGER_NAME, start_ledger
from reberth.memory.notes import ANNOTATION, Notes, is_note_of, read_notes, render_notes
from reberth.records import EvictionHistory, Lease, MoveLedger, Node, OpenMove, Record
from reberth.values import errors
from reberth.values.jitter import jittered_backoff
from reberth.values.refusal import Refused
from rescheduler.moves.move_request import ANSWERS, REQUEST, Annotations

R = TypeVar("R", bound=Record)
Change = Callable[[R], R | Refused]

MOVE = "reberth.dev/move"
"""The annotation of an eviction. The API server lets the rescheduler evict nothing without it."""
TRIES = 12
_FIRST_PAUSE, _LONGEST_PAUSE = 0.04, 2.0
_RETRIED = (errors.Conflict, errors.Unanswered, errors.Unreachable, errors.ServerFault)

NODE_GONE = Refused("NodeGone", "the node has been deleted")
HISTORY_GONE = Refused("HistoryGone", "the eviction history of the workload has been deleted")


class MoveStore:
    """All writes of the rescheduler. With a cache most of them need no read."""

    def __init__(self, api: Api, leadership: Leadership, cache: Cache | None = None) -> None:
        self._api = api.guarded(leadership.check)
        self._newest = NewestObjects(cache)
        self._turns = WeakValueDictionary[tuple[str, str, str], asyncio.Lock]()

    def find_history(self, namespace: str, name: str) -> EvictionHistory | None:
        """Give the newest known version of a history."""
        return self._newest.find(HISTORIES, name, namespace=namespace)

    async def read_history(self, namespace: str, name: str) -> EvictionHistory | None:
        return await self._read(HISTORIES, name, namespace=namespace)

    async def start_history(
        self, signature: Signature, change: Change[EvictionHistory]
    ) -> EvictionHistory | Refused:
        """Change the history of a pod's workload; create it if there is none."""
        name, namespace = name_history(signature.root), signature.namespace
        async with self._turn(HISTORIES, name, namespace):
            known = self._newest.find(HISTORIES, name, namespace=namespace)
            if known and not is_history_of(known, signature.root):
                known = None
            if self._newest.is_known_missing(HISTORIES, name, namespace=namespace):
                known = await self._try_create(signature)
            read = partial(self._read_or_create, signature)
            return await _retry(known, read, change, partial(self._replace_status, HISTORIES))

    async def change_history(
        self, namespace: str, name: str, change: Change[EvictionHistory]
    ) -> EvictionHistory | Refused:
        async with self._turn(HISTORIES, name, namespace):
            known = self._newest.find(HISTORIES, name, namespace=namespace)
            read = partial(self._read_anew, HISTORIES, name, namespace=namespace)
            try:
                return await _retry(known, read, change, partial(self._replace_status, HISTORIES))
            except errors.NotFound:
                return HISTORY_GONE

    def find_ledger(self) -> MoveLedger | None:
        """Give the newest known version of the ledger."""
        return self._newest.find(LEDGERS, LEDGER_NAME)

    async def read_ledger(self) -> MoveLedger:
        """Read the ledger; an empty one if it does not exist yet."""
        return await self._read(LEDGERS, LEDGER_NAME) or start_ledger()

    async def change_ledger(self, change: Change[MoveLedger]) -> MoveLedger | Refused:
        async with self._turn(LEDGERS, LEDGER_NAME):
            write = partial(self._replace_status, LEDGERS)
            return await _retry(self.find_ledger(), self._read_or_create_ledger, change, write)

    def find_node(self, name: str) -> Node | None:
        """Give the newest known version of a node."""
        return self._newest.find(NODES, name)

    async def read_node(self, name: str) -> Node | None:
        return await self._read(NODES, name)

    async def change_notes(
        self, node: str, change: Callable[[Notes], Notes | Refused], *, given_up: str | None = None
    ) -> Node | Refused:
        """Change the notes in a node's annotation; one that cannot be read stays, unless it is `given_up`."""

        async def write(changed: Node) -> Node:
            meta = changed.metadata
            annotations = {ANNOTATION: (meta.annotations or {}).get(ANNOTATION)}
            patch = {"metadata": {"resourceVersion": meta.resource_version, "annotations": annotations}}
            return self._newest.learn(NODES, await self._api.merge(NODES, node, patch))

        async with self._turn(NODES, node):
            read = partial(self._read_anew, NODES, node)
            try:
                return await _retry(
                    self.find_node(node), read, lambda found: _rewrite_notes(found, change, given_up), write
                )
            except errors.NotFound:
                return NODE_GONE

    async def change_lease(
        self, lease: LeaseSettings, change: Callable[[Annotations], Annotations | Refused]
    ) -> Lease | Refused:
        """Change the annotations of the Lease that carry move requests."""
        return await rewrite_lease(self._api, lease, change)

    async def evict(self, move: OpenMove, *, namespace: str, dry_run: bool, version: str | None) -> None:
        """Send the eviction, once; with a resourceVersion it is only carried out if the pod still has it."""
        annotations = {
            MOVE: move.id,
            "reberth.dev/policy": move.policy,
            "reberth.dev/reason": move.reason,
        }
        await self._api.evict(
            move.pod,
            namespace=namespace,
            uid=move.pod_uid,
            version=version,
            dry_run=dry_run,
            annotations=annotations,
        )

    def _turn(self, resource: Resource[Any], name: str, namespace: str = "") -> asyncio.Lock:
        return self._turns.setdefault((resource.name, namespace, name), asyncio.Lock())

    async def _read(self, resource: Resource[R], name: str, *, namespace: str = "") -> R | None:
        try:
            return self._newest.learn(resource, await self._api.get(resource, name, namespace=namespace))
        except errors.NotFound:
            self._newest.forget(resource, name, namespace=namespace)
            return None

    async def _read_anew(self, resource: Resource[R], name: str, *, namespace: str = "") -> R:
        """Read an object that is about to be written: it takes the place of what was known of it before."""
        try:
            found = await self._api.get(resource, name, namespace=namespace)
        except errors.NotFound:
            self._newest.forget(resource, name, namespace=namespace)
            raise
        self._newest.forget(resource, name, namespace=namespace)
        return self._newest.learn(resource, found)

    async def _read_or_create_ledger(self) -> MoveLedger:
        try:
            return await self._read_anew(LEDGERS, LEDGER_NAME)
        except errors.NotFound:
            return await self._create(LEDGERS, start_ledger())

    async def _read_or_create(self, signature: Signature) -> EvictionHistory:
        """Give the history of this workload; that of a deleted workload with its name is replaced."""
        name, namespace = name_history(signature.root), signature.namespace
        with suppress(errors.NotFound):
            found = await self._read_anew(HISTORIES, name, namespace=namespace)
            if is_history_of(found, signature.root):
                return found
            await self._api.delete(HISTORIES, name, uid=found.metadata.uid, namespace=namespace)
        self._newest.forget(HISTORIES, name, namespace=namespace)
        return await self._create(HISTORIES, start_history(signature), namespace=namespace)

    async def _try_create(self, signature: Signature) -> EvictionHistory | None:
        """Create a history that the cache does not have; None if that must be repeated after a read."""
        with suppress(*_RETRIED):
            return await self._create(HISTORIES, start_history(signature), namespace=signature.namespace)
        return None

    async def _create(self, resource: Resource[R], body: R, *, namespace: str = "") -> R:
        return self._newest.learn(resource, await self._api.create(resource, body, namespace=namespace))

    async def _replace_status(self, resource: Resource[R], changed: R) -> R:
        meta = meta_of(changed)
        written = await self._api.replace(
            resource, meta.name, changed, namespace=meta.namespace, subresource="status"
        )
        return self._newest.learn(resource, written)


def carries_note(node: Node | None, move: OpenMove, namespace: str) -> bool:
    """Tell whether a node carries the note of a move of this namespace."""
    annotations = (node.metadata.annotations or {}) if node else {}
    notes = read_notes(annotations.get(ANNOTATION))
    return not isinstance(notes, Refused) and any(is_note_of(note, move, namespace) for note in notes.ours)


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

    return await _retry(None, read, rewrite, write)


async def _retry(
    known: R | None, read: Callable[[], Awaitable[R]], change: Change[R], write: Callable[[R], Awaitable[R]]
) -> R | Refused:
    """Change and write, beginning with what is known, until that succeeds; read before each further try."""
    for attempt in range(1, TRIES):
        try:
            if known is None:
                return await _change_once(await read(), change, write)
            changed = change(known)
            if not isinstance(changed, Refused) and changed != known:
                return await write(changed)
        except errors.NotFound:
            if known is None:
                raise
        except _RETRIED:
            await asyncio.sleep(jittered_backoff(attempt, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE))
        known = None
    return await _change_once(await read(), change, write)


async def _change_once(found: R, change: Change[R], write: Callable[[R], Awaitable[R]]) -> R | Refused:
    """Change and write what was just read; an object that is as it should be is not written."""
    changed = change(found)
    if isinstance(changed, Refused) or changed == found:
        return changed
    return await write(changed)


def _rewrite_notes(
    node: Node, change: Callable[[Notes], Notes | Refused], given_up: str | None
) -> Node | Refused:
    annotations = dict(node.metadata.annotations or {})
    text = annotations.pop(ANNOTATION, None)
    if text is not None and text == given_up:
        return replace(node, metadata=replace(node.metadata, annotations=annotations))
    notes = read_notes(text)
    changed = notes if isinstance(notes, Refused) else change(notes)
    if isinstance(changed, Refused) or changed == notes:
        return changed if isinstance(changed, Refused) else node
    rendered = render_notes(changed)
    if rendered is not None:
        annotations[ANNOTATION] = rendered
    return replace(node, metadata=replace(node.metadata, annotations=annotations))
