"""A hub that keeps what the controllers write, refuses what its definitions do not allow, and reads bytes.

For tests that try very many objects; what the API server itself does is shown by the live tests.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from types import SimpleNamespace
from typing import Any, Final, TypeVar

import msgspec

from federation.objects import resources
from federation.objects.merge_patch import apply_merge_patch
from federation.objects.template import Object, ResourceTemplateReader
from reberth.cluster.kinds import Resource
from reberth.cluster.tables import meta_of
from reberth.protocol.response import BadObject, Reader
from reberth.records import Record
from reberth.values.errors import AlreadyExists, Conflict, Invalid, NotFound
from reberth.values.object_error import ObjectError
from tests.support.federation.fake_hub import FakeHub
from tests.support.federation.schema_check import LARGEST_OBJECT, SchemaCheck, list_odd_counts

T = TypeVar("T", bound=Record)
_DELETED: Final = {"deletionTimestamp": "2027-01-15T08:00:00Z"}

OURS: Final[tuple[Resource[Any], ...]] = (
    *(resources.CLUSTERS, resources.POLICIES, resources.CLUSTER_POLICIES, resources.BINDINGS),
    *(resources.CLUSTER_BINDINGS, resources.REBALANCERS, resources.WORKS),
)
SERVED: Final = (*resources.TEMPLATES, *resources.RBAC_KINDS)
HELD: Final = (*OURS, *SERVED)


def _serve(version: str) -> Object:
    kinds = (each for each in SERVED if each.api_version == version)
    return {
        "resources": [
            {"name": each.name, "kind": each.kind.name, "namespaced": each.namespaced} for each in kinds
        ]
    }


_VERSIONS: Final = sorted({each.api_version for each in SERVED} - {"v1"})
APIS: Final[Mapping[str, Mapping[str, Any]]] = {
    "/version": {"gitVersion": "v1.36.0"},
    "/apis": {"groups": [{"versions": [{"groupVersion": each}]} for each in _VERSIONS]},
    "/api/v1": _serve("v1"),
    **{f"/apis/{each}": _serve(each) for each in _VERSIONS},
}


def make_reader(resource: Resource[Any]) -> Reader[Any]:
    return ResourceTemplateReader() if resources.is_template(resource) else Reader(resource.record)


_READERS: Final = {each.kind: make_reader(each) for each in HELD}
_RESOURCES: Final = {(each.api_version, each.kind.name): each for each in HELD}


def _place(resource: Resource[Any], record: Record) -> tuple[str, str, str]:
    meta = meta_of(record)
    return resource.name, meta.namespace, meta.name


class StoredHub(FakeHub):
    """Creates, changes and deletes; `left_out` names the objects that could not be read."""

    def __init__(self) -> None:
        super().__init__(*HELD)
        self.left_out: list[str] = []
        self.refused: list[str] = []
        self._schemas = SchemaCheck()
        self._wires: dict[tuple[str, str, str], Object] = {}
        for each in HELD:
            self.hold(each)

    def feed(self, wire: Object, write: Callable[[Object], bytes] = msgspec.json.encode) -> None:
        """Let a watch bring an object that somebody has written, unless it is larger than any can be."""
        resource = _RESOURCES[wire["apiVersion"], wire["kind"]]
        self.version += 1
        wire["metadata"]["resourceVersion"] = str(self.version)
        line = b'{"type":"ADDED","object":%b}' % write(wire)
        if len(line) > LARGEST_OBJECT:
            return
        found = _READERS[resource.kind].read_line("watch", line)
        if isinstance(found, BadObject):
            self.left_out.append(f"{found.namespace}/{found.name}: {found.reason}")
        else:
            self._wires[_place(resource, found.object)] = wire
            self._take(resource, "MODIFIED", found.object)

    def drop(self, resource: Resource[Any], record: Any) -> None:
        self.version += 1
        meta = msgspec.structs.replace(meta_of(record), resource_version=str(self.version))
        self.cache.apply(resource.kind, "DELETED", msgspec.structs.replace(record, metadata=meta))

    def find(self, resource: Resource[T], namespace: str, name: str) -> T | None:
        found: T | None = self.cache.of(resource.kind).named(namespace, name)
        return found

    async def get(self, resource: Resource[T], name: str, *, namespace: str = "") -> T:
        if found := self.find(resource, namespace, name):
            return found
        raise NotFound("get", f'{resource.name} "{name}" not found')

    async def list_pages(self, resource: Resource[Any], **_: str) -> AsyncIterator[Any]:
        yield SimpleNamespace(objects=list(self.cache.of(resource.kind).rows()))

    async def create_object(self, resource: Resource[Any], body: Object, *, namespace: str = "") -> Object:
        name = body["metadata"]["name"]
        if self.find(resource, namespace, name) is not None:
            raise AlreadyExists("create", f'{resource.name} "{name}" already exists')
        meta = {"namespace": namespace, "uid": f"uid-{resource.name}-{namespace}-{name}", "generation": 1}
        head = {"apiVersion": resource.api_version, "kind": resource.kind.name}
        whole = {**body, **head, "metadata": {**body["metadata"], **meta}}
        return self._write(resource, msgspec.json.decode(msgspec.json.encode(whole)))

    async def merge(self, resource: Resource[Any], name: str, patch: Object, **more: Any) -> Any:
        found = self.find(resource, more.get("namespace", ""), name)
        if found is None:
            raise NotFound("patch", f'{resource.name} "{name}" not found')
        wanted, meta = patch.get("metadata", {}), meta_of(found)
        if wanted.get("resourceVersion", meta.resource_version) != meta.resource_version:
            raise Conflict("patch", "the object has been modified")
        had = self._wires[_place(resource, found)]
        wire = msgspec.json.decode(msgspec.json.encode(apply_merge_patch(had, patch)))
        if wire.get("spec") != had.get("spec"):
            wire["metadata"]["generation"] = meta.generation + 1
        wire["metadata"]["resourceVersion"] = meta.resource_version
        if wire == had:
            return found  # nothing changes, and no watch hears of it
        self._write(resource, wire)
        return self.find(resource, meta.namespace, name) or found

    async def apply_object(self, resource: Resource[Any], name: str, body: Object, **_: Any) -> Any:
        """Only the finalizers of Clusters and the namespaces of Works are applied on the hub."""
        assert name == body["metadata"]["name"]
        assert resource in {resources.CLUSTERS, resources.NAMESPACES}
        return body

    async def remove_object(
        self, resource: Resource[Any], name: str, *, uid: str, namespace: str = "", version: str | None = None
    ) -> None:
        found = await self.get(resource, name, namespace=namespace)
        meta = meta_of(found)
        assert (uid, version or meta.resource_version) == (meta.uid, meta.resource_version)
        if getattr(meta, "finalizers", None):
            wire = self._wires[_place(resource, found)]
            self._write(resource, {**wire, "metadata": {**wire["metadata"], **_DELETED}})
        else:
            self.drop(resource, found)

    async def read_path(self, path: str, *, subject: str) -> Mapping[str, Any]:
        assert subject
        return APIS[path]

    async def wait_for_turn(self) -> None:
        await asyncio.sleep(0)

    def _write(self, resource: Resource[Any], wire: Object) -> Object:
        self.version += 1
        wire["metadata"]["resourceVersion"] = str(self.version)
        text = msgspec.json.encode(wire)
        self._check(resource, wire, text)
        found = _READERS[resource.kind].read_line("watch", b'{"type":"ADDED","object":%b}' % text)
        if isinstance(found, BadObject):
            self.left_out.append(f"{found.namespace}/{found.name}: {found.reason}")
            return wire
        record = found.object
        meta = meta_of(record)
        if meta.deletion_timestamp and not getattr(meta, "finalizers", None):
            self.drop(resource, record)
        else:
            self._wires[_place(resource, record)] = wire
            self._take(resource, "MODIFIED", record)
        return wire

    def _check(self, resource: Resource[Any], wire: Object, text: bytes) -> None:
        """Refuse what the definition does not allow, unless the object had it before."""
        meta = wire["metadata"]
        had = self._wires.get((resource.name, meta.get("namespace", ""), meta["name"]), {})
        why = "the object is too large" if len(text) > LARGEST_OBJECT else ""
        if not why and resource in OURS:
            why = self._schemas.find_new_violation(resource.kind.name, wire, had)
        elif not why and wire.get("status") != had.get("status"):
            why = next(list_odd_counts(wire.get("status"), "status"), "")
        if why:
            self.refused.append(f"{resource.name} {meta.get('namespace', '')}/{meta['name']}: {why}")
            raise Invalid("write", why)

    def _take(self, resource: Resource[Any], event: str, record: Any) -> None:
        try:
            self.cache.apply(resource.kind, event, record)
        except ObjectError as error:
            self.left_out.append(str(error))
