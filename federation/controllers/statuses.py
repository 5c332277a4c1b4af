"""From members back to people: what Works say becomes the status of the binding and of the template."""

from typing import Any

from federation.api import WORK_API_VERSION
from federation.controllers import resources
from federation.controllers.aggregating import change_binding_status, change_template_status
from federation.controllers.binding import key_of_binding, template_of
from federation.controllers.desk import Desk
from federation.controllers.indexing import WorkIndex
from federation.controllers.keys import Key, binding_of
from federation.controllers.queueing import Queue, QueueSettings
from reberth.measures import Duration
from reberth.resources import Resource


class StatusSettings(QueueSettings, frozen=True):
    gather_for: Duration = Duration(0.3)
    """What several members say within this time is written at once."""


class Statuses:
    def __init__(self, desk: Desk, index: WorkIndex, settings: StatusSettings) -> None:
        self._desk = desk
        self._settings = settings
        self._index = index
        self._queue = Queue("statuses", self._settle, settings)

    def notice(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        if resource in (resources.BINDINGS, resources.CLUSTER_BINDINGS):
            self._queue.add_later(resources.key_of(resource, record), self._settings.gather_for)
        elif resource is resources.WORKS and (key := binding_of(record.metadata, WORK_API_VERSION)):
            self._queue.add_later(key, self._settings.gather_for)
        elif resource in resources.TEMPLATES:
            self._queue.add_later(
                key_of_binding(resources.key_of(resource, record)), self._settings.gather_for
            )

    async def run(self) -> None:
        await self._queue.run()

    async def _settle(self, key: Key) -> None:
        resource = resources.binding_resource(key.kind)
        binding = self._desk.find(resource, key.namespace, key.name)
        if binding is None or binding.metadata.deletion_timestamp is not None:
            return
        works = self._index.of(key)
        change = change_binding_status(binding, works, now=self._desk.clock())
        if change is not None:
            await self._desk.patch(resource, binding, change, subresource="status")
        target = template_of(binding)
        kind = resources.find_template(target.api_version, target.kind)
        template = self._desk.find(kind, target.namespace, target.name) if kind else None
        if kind is None or template is None or template.metadata.uid != binding.spec.resource.uid:
            return
        told = change_template_status(target, template, works.values())
        if told is not None:
            await self._desk.patch(kind, template, told, subresource="status")
