"""Creates bindings: each resource template that a policy selects is claimed by it and gets a binding.

Watches policies, resource templates and bindings. Writes bindings, and the claim on the template. Asks
planning/binding_changes. The binding is written first, if possible with its clusters,
because workloads wait for it; it carries the claim, too. The claim on the template follows, less urgently.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from federation.api import PropagationPolicy, ResourceBinding
from federation.api.labels import LABELS
from federation.hub.call_priority import Urgency
from federation.hub.hub import Hub, refer_to
from federation.hub.telemetry.step_events import POLICY_APPLIED, tell_step
from federation.hub.workqueue import QueueSettings, WorkQueue
from federation.objects import resources
from federation.objects.expectations import Expectations
from federation.objects.names import Key, permanent_id
from federation.objects.template import Object, ResourceTemplate
from federation.planning.binding_changes import (
    ChangeBinding,
    CreateBinding,
    DeleteBinding,
    decide_binding,
    find_policy,
)
from federation.propagation.binding import change_template, key_of_binding, template_of
from federation.propagation.policy_match import (
    CLUSTER_POLICY,
    POLICY,
    PolicyIndex,
    kind_of_policy,
    list_unreadable,
)
from reberth.client.events import WARNING
from reberth.cluster.kinds import Resource
from reberth.runtime.logs import Log

log = Log(__name__)

_POLICIES = (resources.POLICIES, resources.CLUSTER_POLICIES)


PlaceBinding = Callable[[Key, Object], Object]
"""Adds the scheduling decision to a binding that is about to be created."""


def place_later(_: Key, wanted: Object) -> Object:
    """Create the binding without clusters: the scheduler adds them later."""
    return wanted


class DetectorController:
    def __init__(self, hub: Hub, settings: QueueSettings, *, place: PlaceBinding = place_later) -> None:
        self._hub = hub
        self._place = place
        self._queue = WorkQueue("detector", self._reconcile, settings, urgency=Urgency.SCHEDULING)
        self._claims = WorkQueue("claims", self._claim, settings, urgency=Urgency.CLAIMING)
        self._made = Expectations(asyncio.get_running_loop().time)
        self._claimed: dict[str, set[Key]] = defaultdict(set)
        self._claimed_by: dict[Key, set[str]] = {}

    def on_change(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        for key in self._concerned(resource, record):
            self._queue.add(key)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._queue.run())
            group.create_task(self._claims.run())

    def _concerned(self, resource: Resource[Any], record: Any) -> Iterable[Key]:  # noqa: ANN401 - likewise
        if resources.is_template(resource):
            return [self._learn(resources.key_of(resource, record), record)]
        if resource in resources.ALL_BINDINGS:
            self._made.observed(resources.key_of(resource, record))
            return [template_of(record)]
        if resource in _POLICIES:
            self._report_unreadable(resource, record)
            claimed = self._claimed.get(permanent_id(kind_of_policy(record), record.metadata), ())
            return {*self._selected(record), *claimed}
        return ()

    def _report_unreadable(self, resource: Resource[Any], policy: PropagationPolicy) -> None:
        faults = "; ".join(list_unreadable(policy))
        if faults and self._hub.find(resource, policy.metadata.namespace, policy.metadata.name) is policy:
            key = resources.key_of(resource, policy)
            log.warning("policy selects less than it says", policy=str(key), reason=faults)
            regarding = refer_to(key, policy.metadata)
            self._hub.recorder.record(
                regarding, reason="SelectorUnreadable", note=faults, action="ApplyPolicy", kind=WARNING
            )

    def _learn(self, key: Key, template: ResourceTemplate) -> Key:
        """Remember the claim of the template: a deleted policy has to find what it has claimed."""
        resource = self._hub.catalog.find(key.api_version, key.kind)
        is_there = resource is not None and self._hub.find(resource, key.namespace, key.name) is not None
        labels = (template.metadata.labels or {}) if is_there else {}
        holders = {holder for kind in (POLICY, CLUSTER_POLICY) if (holder := labels.get(LABELS[kind]))}
        for gone in self._claimed_by.get(key, set()) - holders:
            self._claimed[gone].discard(key)
            if not self._claimed[gone]:
                del self._claimed[gone]
        for holder in holders:
            self._claimed[holder].add(key)
        if holders:
            self._claimed_by[key] = holders
        else:
            self._claimed_by.pop(key, None)
        return key

    def _selected(self, policy: PropagationPolicy) -> Iterable[Key]:
        """Yield the templates that the policy may select; one that is named needs no search."""
        for selector in policy.spec.resource_selectors:
            namespace = selector.namespace or policy.metadata.namespace
            resource = self._hub.catalog.find(selector.api_version, selector.kind)
            if resource is None:
                continue
            if selector.name and (namespace or not resource.namespaced):
                yield Key(selector.api_version, selector.kind, namespace, selector.name)
                continue
            rows = self._hub.cache.of(resource.kind).rows()
            found = rows.within(namespace) if namespace else rows
            yield from (resources.key_of(resource, each) for each in found)

    async def _reconcile(self, key: Key) -> float | None:
        resource = self._hub.catalog.find(key.api_version, key.kind)
        if resource is None or not self._hub.cache.is_complete(resource.kind):
            return None
        template, binding = self._hub.find(resource, key.namespace, key.name), self._find_binding(key)
        target = key_of_binding(key)
        bindings = resources.binding_resource(target.kind)
        step = decide_binding(key, template, binding, self._find_policies, self._hub.rules)
        if step.claim:
            self._claims.add(key)
        match step.binding:
            case DeleteBinding(found):
                await self._hub.remove(bindings, found)
            case ChangeBinding(found, patch):
                await self._hub.patch(bindings, found, patch)
            case CreateBinding(wanted):
                return await self._create(target, wanted)
            case _:
                pass
        return None

    async def _create(self, target: Key, wanted: Object) -> float | None:
        if wait := self._made.seconds_left(target):
            return wait
        bindings = resources.binding_resource(target.kind)
        placed = self._place(target, wanted)
        await self._hub.api.create_object(bindings, placed, namespace=target.namespace)
        if self._hub.find(bindings, target.namespace, target.name) is None:
            self._made.expect(target)
        return None

    async def _claim(self, key: Key) -> None:
        """Write the claim on the template."""
        resource = self._hub.catalog.find(key.api_version, key.kind)
        template = self._hub.find(resource, key.namespace, key.name) if resource else None
        if resource is None or template is None:
            return
        policy = find_policy(key, template, self._find_binding(key), self._find_policies)
        if claim := change_template(template, policy):
            await self._hub.patch(resource, template, claim)
            if policy is not None:
                meta = policy.metadata
                by = Key("", kind_of_policy(policy), meta.namespace, meta.name)
                tell_step(self._hub, POLICY_APPLIED, refer_to(key, template.metadata), policy=by)

    def _find_binding(self, key: Key) -> ResourceBinding | None:
        """Also one that names another object: it is in the way of this template's binding, and is mended."""
        target = key_of_binding(key)
        return self._hub.find(resources.binding_resource(target.kind), target.namespace, target.name)

    def _find_policies(self, key: Key) -> Iterable[PropagationPolicy]:
        """Yield the policies that may select the template, by an index of each namespace."""
        if key.namespace:
            rows = self._hub.cache.of(resources.POLICIES.kind).rows()
            yield from rows.part(key.namespace).read(PolicyIndex).find(key)
        yield from (
            self._hub.cache.of(resources.CLUSTER_POLICIES.kind).rows().part("").read(PolicyIndex).find(key)
        )
