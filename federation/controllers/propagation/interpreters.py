"""Loads interpreters: what users say of kinds by scripts counts as soon as a customization changes.

Watches customizations. Sends the objects of a kind to all controllers again when its scripts have changed, or
when a script that paused may run. Writes the status of customizations: whether their scripts work.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from federation.hub.hub import Hub
from federation.hub.telemetry.interpreter_metrics import FAILING, MEMORY, SCRIPTS
from federation.hub.work_index import WorkIndex
from federation.hub.workqueue import QueueSettings, WorkQueue
from federation.interpreters.interpreters import NamedKind
from federation.objects import resources
from federation.objects.conditions import put_condition
from federation.objects.names import Key
from federation.objects.template import Object
from federation.propagation.binding import template_of
from reberth.cluster.kinds import Resource
from reberth.records import Condition

WORKING = "Working"
_WELL = ("AllScriptsWork", "all scripts can be used, and none has failed lately")
_FAILING = "ScriptsFail"
_LOOK_EVERY = 1.0

Tell = Callable[[Resource[Any], Any], None]
"""Sends an object to all controllers."""


class InterpretersController:
    def __init__(self, hub: Hub, index: WorkIndex, settings: QueueSettings, tell: Tell) -> None:
        self._hub = hub
        self._index = index
        self._tell = tell
        self._queue = WorkQueue("interpreters", self._reconcile, settings)
        self._told: dict[str, list[str]] = {}
        self._load()

    def on_change(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        if resource is resources.INTERPRETERS:
            self._queue.add(resources.key_of(resource, record))
            self._tell_of(self._load())

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._queue.run())
            group.create_task(self._look())

    async def _look(self) -> None:
        """Send on what has waited for a script; queue customizations that fail, or fail no more."""
        interpreters = self._hub.rules.interpreters
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            self._tell_of(interpreters.take_due())
            MEMORY.set(interpreters.memory)
            found = interpreters.list_failures()
            FAILING.set(len(found))
            for name in {*found, *self._told}:
                if found.get(name) != self._told.get(name):
                    self._queue.add(Key(resources.INTERPRETERS.api_version, _KIND, "", name))

    def _load(self) -> set[NamedKind]:
        changed = self._hub.rules.load(self._hub.cache.of(resources.INTERPRETERS.kind).rows())
        SCRIPTS.set(self._hub.rules.interpreters.count)
        return changed

    def _tell_of(self, kinds: Iterable[NamedKind]) -> None:
        """Send the objects of the kinds, and the Works with their copies."""
        changed = set(kinds)
        for key, binding in list(self._hub.list_bindings()) if changed else ():
            bound = template_of(binding)
            if (bound.api_version, bound.kind) in changed:
                for work in self._index.of(key).values():
                    self._tell(resources.WORKS, work)
        for api_version, kind in changed:
            resource = self._hub.catalog.find(api_version, kind)
            if resource is not None:
                for record in list(self._hub.cache.of(resource.kind).rows()):
                    self._tell(resource, record)

    async def _reconcile(self, key: Key) -> None:
        found = self._hub.find(resources.INTERPRETERS, "", key.name)
        failures = self._hub.rules.interpreters.list_failures().get(key.name, [])
        if failures:
            self._told[key.name] = failures
        else:
            self._told.pop(key.name, None)
        if found is None:
            return
        reason, message = (_FAILING, "; ".join(failures)) if failures else _WELL
        wanted = Condition(type=WORKING, status=str(not failures), reason=reason, message=message)
        status: Object = {}
        if conditions := put_condition(found.status.conditions, wanted, now=self._hub.clock()):
            status["conditions"] = conditions
        if found.status.observed_generation != found.metadata.generation:
            status["observedGeneration"] = found.metadata.generation
        if status:
            patch = {"metadata": {"resourceVersion": found.metadata.resource_version}, "status": status}
            await self._hub.patch(resources.INTERPRETERS, found, patch, subresource="status")


_KIND = resources.INTERPRETERS.kind.name
