"""The hub as controllers see it: its API, its cache, its Events and a clock."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast

from federation.api import Cluster, ResourceBinding
from federation.hub.kind_catalog import KindCatalog
from federation.hub.object_api import ObjectApi
from federation.interpreters.kind_rules import KindRules
from federation.objects import resources
from federation.objects.cache import NotifyingCache
from federation.objects.names import Key
from federation.objects.template import Object
from federation.propagation.binding import find_misuse
from reberth.client.events import EventRecorder
from reberth.cluster.kinds import Kind, Resource
from reberth.cluster.tables import meta_of
from reberth.records import ObjectMeta, ObjectReference, Record
from reberth.values.errors import NotFound

T = TypeVar("T", bound=Record)

_MIRRORED_WITHIN = 60.0
"""After these seconds the cache is believed again, whatever we have written."""


@dataclass(frozen=True)
class Hub:
    """Reads from the cache and writes to the API server; its own writes are visible at once.

    Without that, a controller that reconciles again before the watch delivers its own write would decide on
    the old object, and its patch would fail with a Conflict.
    """

    api: ObjectApi
    cache: NotifyingCache
    recorder: EventRecorder
    clock: Callable[[], float]
    catalog: KindCatalog = field(default_factory=KindCatalog)
    rules: KindRules = field(default_factory=KindRules)

    _written: dict[tuple[Kind[Any, Any], str, str], tuple[Record, float]] = field(default_factory=dict)

    def find(self, resource: Resource[T], namespace: str, name: str) -> T | None:
        """Return the object from the cache, or as we have written it since."""
        found: T | None = self.cache.of(resource.kind).named(namespace, name)
        place = (resource.kind, namespace, name)
        if place not in self._written:
            return found
        written, until = self._written[place]
        if found is None or self.clock() > until or not _is_newer(written, found):
            del self._written[place]
            return found
        return cast("T", written)

    def on_change(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        """Let go of our own write once the cache has it: it keeps a whole answer in memory."""
        meta = meta_of(record)
        self.find(resource, meta.namespace, meta.name)

    def find_cluster(self, name: str) -> Cluster | None:
        return self.find(resources.CLUSTERS, "", name)

    def find_binding(self, key: Key) -> ResourceBinding | None:
        """Return the binding; None if it does not exist, or if nothing may be propagated by it."""
        binding = self.find(resources.binding_resource(key.kind), key.namespace, key.name)
        return None if binding is None or find_misuse(binding) else binding

    def list_bindings(self) -> Iterator[tuple[Key, ResourceBinding]]:
        """Yield all bindings in the cache that may propagate something, cluster-scoped ones last."""
        for resource in resources.ALL_BINDINGS:
            for binding in self.cache.of(resource.kind).rows():
                if not find_misuse(binding):
                    yield resources.key_of(resource, binding), binding

    async def patch(
        self, resource: Resource[T], record: Record, patch: Object, *, subresource: str = ""
    ) -> T:
        """Apply a merge patch to an object; a resourceVersion in it is a precondition."""
        meta = meta_of(record)
        written = await self.api.merge(
            resource, meta.name, patch, namespace=meta.namespace, subresource=subresource
        )
        place = (resource.kind, meta.namespace, meta.name)
        self._written[place] = written, self.clock() + _MIRRORED_WITHIN
        return written

    async def remove(self, resource: Resource[Any], record: Record) -> None:
        """Delete this object, by its uid; it may be gone already."""
        meta = meta_of(record)
        try:
            await self.api.remove_object(resource, meta.name, uid=meta.uid, namespace=meta.namespace)
        except NotFound:
            return


class Controller(Protocol):
    """Gets every change of an object, and reconciles those that concern it until it is cancelled."""

    def on_change(self, resource: Resource[Any], record: Any) -> None: ...  # noqa: ANN401 - a record of the resource

    async def run(self) -> None: ...


def _is_newer(written: Record, found: Record) -> bool:
    """Tell whether the cache does not have our write to this object yet."""
    ours, theirs = meta_of(written), meta_of(found)
    return ours.uid == theirs.uid and int(ours.resource_version) > int(theirs.resource_version)


def refer_to(key: Key, meta: ObjectMeta) -> ObjectReference:
    return ObjectReference(key.api_version, key.kind, key.namespace or None, key.name, meta.uid)
