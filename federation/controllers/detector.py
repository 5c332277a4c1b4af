"""From policies to bindings: each template that a policy selects is claimed by it, and gets a binding."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from federation.admission.identities import LABELS
from federation.api import PropagationPolicy, ResourceBinding
from federation.controllers import resources
from federation.controllers.binding import (
    change_binding,
    change_template,
    is_claimed,
    key_of_binding,
    template_of,
    write_binding,
)
from federation.controllers.desk import Desk
from federation.controllers.keys import Key, permanent_id
from federation.controllers.matching import CLUSTER_POLICY, POLICY, Subject, choose_policy, kind_of_policy
from federation.controllers.queueing import Queue, QueueSettings
from federation.controllers.templates import Template
from reberth.resources import Resource

_POLICIES = (resources.POLICIES, resources.CLUSTER_POLICIES)
_BINDINGS = (resources.BINDINGS, resources.CLUSTER_BINDINGS)


class Detector:
    def __init__(self, desk: Desk, settings: QueueSettings) -> None:
        self._desk = desk
        self._queue = Queue("detector", self._settle, settings)
        self._claimed: dict[str, set[Key]] = defaultdict(set)

    def notice(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        for key in self._concerned(resource, record):
            self._queue.add(key)

    async def run(self) -> None:
        await self._queue.run()

    def _concerned(self, resource: Resource[Any], record: Any) -> Iterable[Key]:  # noqa: ANN401 - likewise
        if resource in resources.TEMPLATES:
            return [self._learn(resources.key_of(resource, record), record)]
        if resource in _BINDINGS:
            return [template_of(record)]
        if resource in _POLICIES:
            claimed = self._claimed[permanent_id(kind_of_policy(record), record.metadata)]
            return {*self._selected(record), *claimed}
        return ()

    def _learn(self, key: Key, template: Template) -> Key:
        """Note who has claimed the template, so that a policy that goes finds it."""
        labels = template.metadata.labels or {}
        for kind in (POLICY, CLUSTER_POLICY):
            if holder := labels.get(LABELS[kind]):
                self._claimed[holder].add(key)
        return key

    def _selected(self, policy: PropagationPolicy) -> Iterable[Key]:
        """Give the templates that the policy may select; one that is named need not be looked for."""
        for selector in policy.spec.resource_selectors:
            namespace = selector.namespace or policy.metadata.namespace
            resource = resources.find_template(selector.api_version, selector.kind)
            if resource is None:
                continue
            if selector.name and (namespace or not resource.namespaced):
                yield Key(selector.api_version, selector.kind, namespace, selector.name)
                continue
            rows = self._desk.cache.of(resource.kind).rows()
            found = rows.within(namespace) if namespace else rows
            yield from (resources.key_of(resource, each) for each in found)

    async def _settle(self, key: Key) -> None:
        resource = resources.find_template(key.api_version, key.kind)
        if resource is None or not self._desk.cache.is_complete(resource.kind):
            return
        template = self._desk.find(resource, key.namespace, key.name)
        target = key_of_binding(key)
        bindings = resources.binding_resource(target.kind)
        binding = self._desk.find(bindings, target.namespace, target.name)
        if binding is not None and not _belongs(binding, template):
            await self._desk.remove(bindings, binding)
        elif template is not None and template.metadata.deletion_timestamp is None:
            await self._bind(resource, key, template, binding)

    async def _bind(
        self, resource: Resource[Template], key: Key, template: Template, binding: ResourceBinding | None
    ) -> None:
        policy = choose_policy(Subject(key, template.metadata.labels or {}), self._policies(key.namespace))
        if policy is None and binding is None and not is_claimed(template.metadata.labels):
            return
        if claim := change_template(template, policy):
            await self._desk.patch(resource, template, claim)
        target = key_of_binding(key)
        bindings = resources.binding_resource(target.kind)
        if binding is not None:
            if change := change_binding(binding, key, template, policy):
                await self._desk.patch(bindings, binding, change)
        elif policy is not None:
            wanted = write_binding(key, template, policy)
            await self._desk.api.create_object(bindings, wanted, namespace=target.namespace)

    def _policies(self, namespace: str) -> Iterable[PropagationPolicy]:
        cache = self._desk.cache
        if namespace:
            yield from cache.of(resources.POLICIES.kind).rows().within(namespace)
        yield from cache.of(resources.CLUSTER_POLICIES.kind).rows()


def _belongs(binding: ResourceBinding, template: Template | None) -> bool:
    """Tell whether the binding is that of the template as it stands, or was made by somebody by hand."""
    owners = {owner.uid for owner in binding.metadata.owner_references or ()}
    if binding.spec.resource.uid not in owners:
        return True
    return template is not None and template.metadata.uid in owners
