"""What every controller works with: the hub's API, its mirror, its events and a clock."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from federation.controllers.calling import ObjectApi
from federation.controllers.keys import Key
from federation.controllers.noticing import NoticingCache
from federation.controllers.templates import Object
from reberth.errors import NotFound
from reberth.events import Recorder
from reberth.records import ObjectMeta, ObjectReference, Record
from reberth.resources import Resource
from reberth.tables import meta_of

T = TypeVar("T", bound=Record)


@dataclass(frozen=True)
class Desk:
    """The hub as controllers see it."""

    api: ObjectApi
    cache: NoticingCache
    recorder: Recorder
    clock: Callable[[], float]

    def find(self, resource: Resource[T], namespace: str, name: str) -> T | None:
        """Give the object as the mirror knows it."""
        return self.cache.of(resource.kind).named(namespace, name)

    async def patch(
        self, resource: Resource[T], record: Record, patch: Object, *, subresource: str = ""
    ) -> T:
        """Merge a patch into an object; a resourceVersion in it is the precondition."""
        meta = meta_of(record)
        return await self.api.merge(
            resource, meta.name, patch, namespace=meta.namespace, subresource=subresource
        )

    async def remove(self, resource: Resource[Any], record: Record) -> None:
        """Delete this very object; that it is gone already is as good."""
        meta = meta_of(record)
        try:
            await self.api.remove_object(resource, meta.name, uid=meta.uid, namespace=meta.namespace)
        except NotFound:
            return


class Controller(Protocol):
    """Hears of every object that changes, and works on those that concern it until it is cancelled."""

    def notice(self, resource: Resource[Any], record: Any) -> None: ...  # noqa: ANN401 - a record of the resource

    async def run(self) -> None: ...


def refer_to(key: Key, meta: ObjectMeta) -> ObjectReference:
    return ObjectReference(key.api_version, key.kind, key.namespace or None, key.name, meta.uid)
