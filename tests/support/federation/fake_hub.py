"""A hub without an API server, for tests of controllers: reads come from its cache alone."""

import asyncio
from typing import Any, cast

import msgspec

from federation.hub.hub import Controller, Hub
from federation.hub.object_api import ObjectApi
from federation.objects.cache import NotifyingCache
from federation.objects.merge_patch import apply_merge_patch
from federation.objects.template import Object
from reberth.client.events import EventRecorder
from reberth.cluster.kinds import Kind, Resource
from reberth.cluster.pods.requests import NEWEST
from reberth.cluster.tables import meta_of
from reberth.records import Record
from tests.support.federation.objects import NOW


class FakeHub:
    """Patches change the cache; patches and Events are recorded. Its controllers get every change."""

    def __init__(self, *known: Resource[Any]) -> None:
        self.version = 10
        self.events: list[tuple[str, str]] = []
        self.takes_minor = True
        """Whether minor Events are written."""
        self.patches: list[tuple[str, str, Object]] = []
        """Name, subresource and patch."""
        self.refuse: list[Exception] = []
        """The first patches fail with these errors."""
        self.slow: dict[str, float] = {}
        """Seconds that a patch takes, by its subresource."""
        self.controllers: list[Controller] = []
        self.cache = NotifyingCache(self._notify, version=NEWEST)
        self.hub = Hub(cast("ObjectApi", self), self.cache, cast("EventRecorder", self), self._clock)
        self._known = {each.kind: each for each in known}

    def put(self, resource: Resource[Any], record: Any) -> None:
        """Write an object as somebody else, with a new version."""
        self._apply(resource, record, "MODIFIED")

    def drop(self, resource: Resource[Any], record: Any) -> None:
        """Delete an object as somebody else."""
        self._apply(resource, record, "DELETED")

    def _apply(self, resource: Resource[Any], record: Any, event: str) -> None:
        self.version += 1
        meta = msgspec.structs.replace(meta_of(record), resource_version=str(self.version))
        self.cache.apply(resource.kind, event, msgspec.structs.replace(record, metadata=meta))

    def hold(self, resource: Resource[Any], *records: Record) -> None:
        """List the objects of a kind; before that its cache is not synced."""
        self.cache.replace(resource.kind, records, "9")

    async def run(self, seconds: float = 1) -> None:
        """Run the controllers for a while."""
        tasks = [asyncio.create_task(controller.run()) for controller in self.controllers]
        await asyncio.sleep(seconds)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    async def merge(self, resource: Resource[Any], name: str, patch: Object, **more: Any) -> Any:
        """Stand in for the API server."""
        if self.refuse:
            raise self.refuse.pop(0)
        part = more.get("subresource") or "spec"
        if part in self.slow:
            await asyncio.sleep(self.slow[part])
        self.patches.append((name, part, patch))
        found = self.cache.of(resource.kind).named(more.get("namespace", ""), name)
        wire = apply_merge_patch(msgspec.json.decode(msgspec.json.encode(found)), patch)
        self.version += 1
        wire["metadata"] |= {"resourceVersion": str(self.version)}
        written = msgspec.json.decode(msgspec.json.encode(wire), type=resource.record)
        self.cache.apply(resource.kind, "MODIFIED", written)
        return written

    def record(self, *_: Any, reason: str, note: str, **__: Any) -> None:
        """Stand in for the recorder of Events."""
        self.events.append((reason, note))

    def _notify(self, kind: Kind[Any, Any], record: Any) -> None:
        for controller in self.controllers:
            controller.on_change(self._known[kind], record)

    def _clock(self) -> float:
        return NOW + asyncio.get_running_loop().time()
