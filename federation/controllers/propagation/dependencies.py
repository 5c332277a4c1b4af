"""Propagates dependencies: ConfigMaps, Secrets and the like follow workloads with `propagateDeps`.

Watches bindings and resource templates. Writes bindings of dependencies and their spec.requiredBy. Asks
propagation/dependencies. As long as a cache is not synced, such as after the start, no dependency is removed.
"""

from collections import defaultdict
from typing import Any

from federation.api import ResourceBinding
from federation.hub.hub import Hub, refer_to
from federation.hub.telemetry.step_events import (
    DEPENDENCIES_FOUND,
    DEPENDENCY_PLACED,
    list_names,
    refer_to_template,
    tell_step,
)
from federation.hub.workqueue import QueueSettings, WorkQueue
from federation.objects import resources
from federation.objects.names import Key
from federation.objects.template import Object, ResourceTemplate
from federation.propagation.binding import key_of_binding, template_of
from federation.propagation.dependencies import (
    change_required_by,
    find_dependencies,
    is_unused,
    write_attached_binding,
    write_snapshots,
)
from reberth.cluster.kinds import Resource

_SOON = 1.0


class DependenciesController:
    def __init__(self, hub: Hub, settings: QueueSettings) -> None:
        self._hub = hub
        self._queue = WorkQueue("dependencies", self._reconcile, settings)
        self._needs: dict[Key, frozenset[Key]] = {}
        self._needed_by: dict[Key, set[Key]] = defaultdict(set)
        self._unknown: set[Key] = set()
        # Bindings whose script fails: looked at when they change, and meanwhile nothing is removed.
        self._failed: set[Key] = set()

    def on_change(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        key = resources.key_of(resource, record)
        if resource in resources.ALL_BINDINGS:
            self._look_at_all_of(key)
            if record.spec.required_by or template_of(record) in self._needed_by:
                self._queue.add(template_of(record))
        elif resources.is_template(resource):
            self._look_at_all_of(key_of_binding(key))
            if key in self._needed_by:
                self._queue.add(key)

    async def run(self) -> None:
        await self._queue.run()

    def _look_at_all_of(self, key: Key) -> None:
        """Update what a binding that has changed needs, and queue all that it needs or needed."""
        self._look_at(key)
        for need in self._needs.get(key, ()):
            self._queue.add(need)

    def _look_at(self, key: Key) -> None:
        """Update what a binding needs, and queue what it needs now and did not, or the other way round.

        Nothing else: a reconcile looks at bindings, and would queue itself again and again.
        """
        before, now = self._needs.get(key, frozenset()), self._find_needs(key)
        for need in before - now:
            self._needed_by[need].discard(key)
        for need in now:
            self._needed_by[need].add(key)
        if now:
            self._needs[key] = now
        else:
            self._needs.pop(key, None)
        for need in before ^ now:
            self._queue.add(need)

    def _find_needs(self, key: Key) -> frozenset[Key]:
        self._unknown.discard(key)
        self._failed.discard(key)
        binding = self._hub.find_binding(key)
        if binding is None or not binding.spec.propagate_deps or binding.metadata.deletion_timestamp:
            return frozenset()
        bound = template_of(binding)
        resource = self._hub.catalog.find(bound.api_version, bound.kind)
        if resource is None or not self._hub.cache.is_complete(resource.kind):
            self._unknown.add(key)
            return self._needs.get(key, frozenset())
        template = self._hub.find(resource, bound.namespace, bound.name)
        found = frozenset() if template is None else find_dependencies(bound, template, self._hub.rules)
        if found is None:
            self._failed.add(key)
            return self._needs.get(key, frozenset())
        return found

    async def _reconcile(self, key: Key) -> float | None:
        for unknown in list(self._unknown):
            self._look_at(unknown)
        needed_by = self._needed_by.get(key) or ()
        dependents = [found for each in needed_by if (found := self._hub.find_binding(each)) is not None]
        if not needed_by:
            self._needed_by.pop(key, None)
        snapshots = write_snapshots(dependents)
        conflict = next((each.spec.conflict_resolution for each in dependents), None)
        resource = self._hub.catalog.find(key.api_version, key.kind)
        if resource is None or not self._hub.cache.is_complete(resource.kind):
            return _SOON if snapshots else None
        template = self._hub.find(resource, key.namespace, key.name)
        attached = self._hub.find_binding(key_of_binding(key))
        if attached is not None:
            return await self._change(attached, snapshots)
        if snapshots and template is not None and template.metadata.deletion_timestamp is None:
            await self._attach(key, template, snapshots, conflict)
        return None

    async def _attach(
        self, key: Key, template: ResourceTemplate, snapshots: list[Object], conflict: str | None
    ) -> None:
        target = key_of_binding(key)
        wanted = write_attached_binding(key, template, snapshots, conflict=conflict)
        resource = resources.binding_resource(target.kind)
        await self._hub.api.create_object(resource, wanted, namespace=target.namespace)
        self._tell(key)

    async def _change(self, attached: ResourceBinding, snapshots: list[Object]) -> float | None:
        if not snapshots and (self._unknown or self._failed):
            return _SOON
        change = change_required_by(attached, snapshots)
        if change is None or attached.metadata.deletion_timestamp is not None:
            return None
        resource = resources.BINDINGS
        if not snapshots and is_unused(attached):
            await self._hub.remove(resource, attached)
        else:
            await self._hub.patch(resource, attached, change)
            self._tell(template_of(attached))
        return None

    def _tell(self, need: Key) -> None:
        """Tell those that need it that it goes where they are."""
        for key in self._needed_by.get(need, ()):
            if binding := self._hub.find_binding(key):
                needs = list_names(self._needs.get(key, (need,)))
                tell_step(self._hub, DEPENDENCIES_FOUND, refer_to_template(binding), needs=needs)
                tell_step(self._hub, DEPENDENCY_PLACED, refer_to(key, binding.metadata), need=need)
