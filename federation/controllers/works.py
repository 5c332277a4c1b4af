"""From bindings to Works: each cluster of a binding has its Work, and no other cluster has one."""

from typing import Any

from federation.api import WORK_API_VERSION, ResourceBinding
from federation.controllers import resources
from federation.controllers.binding import key_of_binding, template_of
from federation.controllers.desk import Desk
from federation.controllers.indexing import WorkIndex
from federation.controllers.keys import Key, binding_of, namespace_of_works
from federation.controllers.queueing import Queue, QueueSettings
from federation.controllers.resources import HeldWork
from federation.controllers.revising import plan
from reberth.errors import NotFound
from reberth.resources import Resource

_BINDINGS = (resources.BINDINGS, resources.CLUSTER_BINDINGS)


class Works:
    def __init__(self, desk: Desk, index: WorkIndex, settings: QueueSettings) -> None:
        self._desk = desk
        self._index = index
        self._clusters: set[str] = set()
        self._queue = Queue("works", self._settle, settings)

    def notice(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        if resource in _BINDINGS:
            self._queue.add(resources.key_of(resource, record))
        elif resource in resources.TEMPLATES:
            self._queue.add(key_of_binding(resources.key_of(resource, record)))
        elif resource is resources.WORKS and (key := binding_of(record.metadata, WORK_API_VERSION)):
            self._queue.add(key)
        elif resource is resources.CLUSTERS and record.metadata.uid not in self._clusters:
            self._clusters.add(record.metadata.uid)
            self._wake_for(record.metadata.name)

    async def run(self) -> None:
        await self._queue.run()

    def _wake_for(self, cluster: str) -> None:
        """A cluster that has just come may be waited for: its namespace is there, or soon will be."""
        for resource in _BINDINGS:
            for binding in self._desk.cache.of(resource.kind).rows():
                if any(target.name == cluster for target in binding.spec.clusters or ()):
                    self._queue.add(resources.key_of(resource, binding))

    async def _settle(self, key: Key) -> None:
        resource = resources.binding_resource(key.kind)
        binding = self._desk.find(resource, key.namespace, key.name)
        if binding is None or binding.metadata.deletion_timestamp is not None:
            await self._sweep(key)
            return
        bound = template_of(binding)
        kind = resources.find_template(bound.api_version, bound.kind)
        template = self._desk.find(kind, bound.namespace, bound.name) if kind else None
        if template is None:
            return  # the binding goes too, or its kind is not propagated
        steps = plan(bound, binding, template, self._index.of(key))
        for work in steps.delete.values():
            await self._remove(work)
        for work, change in steps.change.values():
            await self._desk.patch(resources.WORKS, work, change)
        for cluster, wanted in steps.create.items():
            await self._create(cluster, wanted)

    async def _create(self, cluster: str, wanted: dict[str, Any]) -> None:
        """A cluster that is not there has no namespace; its binding is woken when it comes."""
        if self._desk.find(resources.CLUSTERS, "", cluster) is None:
            return
        await self._desk.api.create_object(resources.WORKS, wanted, namespace=namespace_of_works(cluster))

    async def _sweep(self, key: Key) -> None:
        """Remove the Works of a binding that is gone, after a look whether it is not there after all."""
        works = self._index.of(key)
        if works and not await self._is_there(key):
            for work in works.values():
                await self._remove(work)

    async def _is_there(self, key: Key) -> bool:
        resource = resources.binding_resource(key.kind)
        try:
            binding: ResourceBinding = await self._desk.api.get(resource, key.name, namespace=key.namespace)
        except NotFound:
            return False
        return binding.metadata.deletion_timestamp is None

    async def _remove(self, work: HeldWork) -> None:
        if work.metadata.deletion_timestamp is None:
            await self._desk.remove(resources.WORKS, work)
