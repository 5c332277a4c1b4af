"""Members that keep what they are sent in a cache, and sessions with them."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import msgspec

from federation.objects.cache import NotifyingCache
from federation.objects.resources import NAMESPACES
from federation.objects.template import Object, ResourceTemplate
from reberth.cluster.kinds import NODES, PODS, Kind, Resource
from reberth.cluster.pods.requests import NEWEST
from reberth.protocol.response import BadObject, Reader
from reberth.values.errors import NotFound
from reberth.values.object_error import ObjectError
from tests.support import builders
from tests.support.federation.stored_hub import APIS, SERVED, make_reader

Listener = Callable[[str, ResourceTemplate | None], None]
_READERS = {each.kind: make_reader(each) for each in (*SERVED, NAMESPACES)}
_ROOM = {each.kind: Reader(each.kind.record) for each in (NODES, PODS)}

_COUNTS = ("replicas", "readyReplicas", "updatedReplicas", "availableReplicas")


class StoredMember:
    """Applies whatever it is sent, and runs it well; it has one node with room."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.cache = NotifyingCache(self._notify, version=NEWEST)
        self.listeners: list[Listener] = []
        self.listed = asyncio.Event()
        self.listed.set()
        self.api = self
        self._version = 100
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        node = builders.node(f"{name}-n0", cpu="64", memory="256Gi")
        self.feed(NODES, {**node, "status": {**node["status"], **ready}})

    def feed(self, resource: Resource[Any], wire: Object) -> None:
        """Let a watch bring a node or a pod."""
        self._version += 1
        wire["metadata"] |= {"resourceVersion": str(self._version)}
        text = json.dumps(wire).encode(errors="replace")
        found = _ROOM[resource.kind].read_line("watch", b'{"type":"ADDED","object":%b}' % text)
        if not isinstance(found, BadObject):
            self._apply(resource.kind, "MODIFIED", found.object)

    def find(self, resource: Resource[Any], namespace: str, name: str) -> ResourceTemplate | None:
        return self.cache.of(resource.kind).named(namespace, name)

    async def get(self, resource: Resource[Any], name: str, *, namespace: str = "") -> ResourceTemplate:
        if found := self.find(resource, namespace, name):
            return found
        raise NotFound("get", f'{resource.name} "{name}" not found')

    async def list_pages(self, resource: Resource[Any], **_: str) -> AsyncIterator[Any]:
        yield SimpleNamespace(objects=list(self.cache.of(resource.kind).rows()))

    async def apply_object(
        self, resource: Resource[Any], name: str, body: Object, *, namespace: str = "", **_: Any
    ) -> ResourceTemplate:
        """Take what was sent, and answer with what a member makes of it."""
        self._version += 1
        uid = f"{self.name}-{resource.name}-{namespace}-{name}"
        meta = {"namespace": namespace, "uid": uid, "resourceVersion": str(self._version), "generation": 1}
        whole = {**body, "metadata": {**body["metadata"], **meta}}
        made: ResourceTemplate = _READERS[resource.kind].read("apply", self.answer(whole))
        self._apply(resource.kind, "MODIFIED", made)
        return made

    async def remove_object(
        self, resource: Resource[Any], name: str, *, uid: str, namespace: str = "", to_the_end: bool = False
    ) -> None:
        assert not to_the_end, "no test here lets a copy wait for the end of its pods"
        found = await self.get(resource, name, namespace=namespace)
        assert uid == found.metadata.uid
        self._version += 1
        meta = msgspec.structs.replace(found.metadata, resource_version=str(self._version))
        self._apply(resource.kind, "DELETED", msgspec.structs.replace(found, metadata=meta))

    async def probe(self, *, within: float) -> None:
        assert within
        await asyncio.sleep(0)

    async def read_path(self, path: str, *, subject: str) -> Mapping[str, Any]:
        assert subject
        return APIS[path]

    def answer(self, whole: Object) -> bytes:
        """Write the object with the status of a workload that is well."""
        replicas = (whole.get("spec") or {}).get("replicas", 0)
        status: Object = {"observedGeneration": 1, **dict.fromkeys(_COUNTS, replicas)}
        if whole["kind"] == "Service":
            status = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
        elif whole["kind"] == "Job":
            status = {"active": 1, "startTime": "2026-11-18T12:00:00Z"}
        return msgspec.json.encode({**whole, "status": status})

    def _apply(self, kind: Kind[Any, Any], event: str, record: Any) -> None:
        try:
            self.cache.apply(kind, event, record)
        except ObjectError:
            return

    def _notify(self, kind: Kind[Any, Any], record: Any) -> None:
        if kind.record is ResourceTemplate:
            for listener in self.listeners:
                listener(self.name, record)


class StoredIdentities:
    """No two members are the same, and all have said so."""

    def __init__(self, names: Iterable[str]) -> None:
        self.owners: dict[str, str] = {}
        self._known = {name: f"uid-of-{name}" for name in names}

    def of(self, cluster: str) -> str | None:
        return self._known.get(cluster)


class StoredSessions:
    """Sessions that are always open."""

    def __init__(self, *members: StoredMember) -> None:
        self.problems: dict[str, str] = {}
        self.members = {each.name: each for each in members}
        self.identities = StoredIdentities(self.members)

    def listen(self, listener: Listener) -> None:
        for each in self.members.values():
            each.listeners.append(listener)

    def get(self, cluster: str) -> StoredMember | None:
        return self.members.get(cluster)

    def all(self) -> list[StoredMember]:
        return list(self.members.values())

    def is_usable(self, cluster: str) -> bool:
        return cluster in self.members

    def mark(self, cluster: str, *, answers: bool) -> None:
        """A member that does not answer a probe is asked all the same."""

    def reopen(self, key: object) -> None:
        """Nothing can change."""

    def on_change(self, resource: Resource[Any], record: Any) -> None:
        """Members neither come nor go."""

    async def run(self) -> None:
        await asyncio.Event().wait()
