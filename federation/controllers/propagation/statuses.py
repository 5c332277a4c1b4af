"""Aggregates statuses: from the Works to the binding and to the resource template.

Watches Works, bindings, resource templates, and Clusters: copies in a member of which nothing is heard any
more do not count as ready. Writes the status of bindings and of templates. Asks propagation/aggregation.
"""

import asyncio
from collections.abc import Mapping
from ipaddress import ip_network
from typing import Any

import msgspec

from federation.api import WORK_API_VERSION, Cluster, ResourceBinding
from federation.failover.outages import Outages
from federation.hub.call_priority import Urgency
from federation.hub.hub import Hub, refer_to
from federation.hub.telemetry.failover_metrics import DOWN, LONGEST_DOWN, OUTAGES
from federation.hub.telemetry.step_events import STATUS_AGGREGATED, refer_to_template, tell_step
from federation.hub.work_index import WorkIndex
from federation.hub.workqueue import QueueSettings, WorkQueue
from federation.membership.cluster_status import is_member_silent
from federation.objects import resources
from federation.objects.conditions import find_condition
from federation.objects.names import Key, binding_of
from federation.objects.resources import HeldWork
from federation.propagation.aggregation import (
    change_binding_status,
    change_template_status,
    has_ready_copy,
    says_fully_applied,
)
from federation.propagation.binding import key_of_binding, template_of
from federation.propagation.status_rules import AddressRanges
from federation.propagation.work_sync import APPLIED
from reberth.cluster.kinds import Resource
from reberth.values.duration import Duration


class StatusSettings(QueueSettings, frozen=True):
    gather_for: Duration = Duration(0.3)
    """Changes of several members within this time are written at once."""
    wait_for_all: Duration = Duration(5)
    """How long to wait for members that have not reported a new copy yet."""
    addresses: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """By cluster, the networks whose addresses its Services and Ingresses may show on the hub."""

    def __post_init__(self) -> None:
        """Raise ValueError for what is no network."""
        self.read_ranges()

    def read_ranges(self) -> AddressRanges:
        return {name: tuple(map(ip_network, networks)) for name, networks in self.addresses.items()}


class StatusesController:
    def __init__(self, hub: Hub, index: WorkIndex, settings: StatusSettings) -> None:
        self._hub = hub
        self._settings = settings
        self._index = index
        self._ranges = settings.read_ranges()
        self._unreported_since: dict[Key, float] = {}
        self._silent: set[str] = set()
        self._outages = Outages()
        clock = asyncio.get_running_loop().time
        LONGEST_DOWN.set_function(lambda: self._outages.find_longest(clock()))
        self._queue = WorkQueue("statuses", self._reconcile, settings, urgency=Urgency.SUMMING_UP)

    def on_change(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        if resource in resources.ALL_BINDINGS:
            self._queue.add_later(resources.key_of(resource, record), self._settings.gather_for)
        elif resource is resources.WORKS and (key := binding_of(record.metadata, WORK_API_VERSION)):
            self._queue.add_later(key, self._settings.gather_for)
        elif resource is resources.CLUSTERS:
            self._on_cluster(record)
        elif resources.is_template(resource):
            self._queue.add_later(
                key_of_binding(resources.key_of(resource, record)), self._settings.gather_for
            )

    async def run(self) -> None:
        await self._queue.run()

    def _on_cluster(self, cluster: Cluster) -> None:
        """When a member falls silent, or is heard again, the sums of all that is there change."""
        name = cluster.metadata.name
        found = self._hub.find_cluster(name)
        is_silent = found is not None and is_member_silent(found)
        if is_silent == (name in self._silent):
            return
        (self._silent.add if is_silent else self._silent.discard)(name)
        for key, _ in self._hub.list_bindings():
            if name in self._index.of(key):
                self._queue.add_later(key, self._settings.gather_for)

    def _wait(self, key: Key, binding: ResourceBinding, works: Mapping[str, HeldWork]) -> float:
        """Return how long to wait for members that have not reported a copy yet.

        Without the wait, FullyApplied would turn False and back to True each time a cluster is added. Until
        then the status still describes the clusters before, FullyApplied and aggregatedStatus alike.
        """
        targets = {each.name for each in binding.spec.clusters or ()}
        reported = {name for name, work in works.items() if find_condition(work.status.conditions, APPLIED)}
        if targets <= reported:
            self._unreported_since.pop(key, None)
            return 0.0
        now = asyncio.get_running_loop().time()
        return max(0.0, self._unreported_since.setdefault(key, now) + self._settings.wait_for_all - now)

    def _measure_outage(self, key: Key) -> None:
        """Measure for how long the workload has no ready pod anywhere."""
        binding, now = self._hub.find_binding(key), asyncio.get_running_loop().time()
        is_ready = has_ready_copy(binding, self._index.of(key), self._silent) if binding else None
        lasted = self._outages.observe(key, is_ready=is_ready, now=now)
        if lasted is not None:
            OUTAGES.observe(lasted)
        DOWN.set(self._outages.count)

    async def _reconcile(self, key: Key) -> float | None:
        self._measure_outage(key)
        await self._hub.api.wait_for_turn()
        resource = resources.binding_resource(key.kind)
        binding = self._hub.find_binding(key)
        if binding is None or binding.metadata.deletion_timestamp is not None:
            self._unreported_since.pop(key, None)
            return None
        works = self._index.of(key)
        if wait := self._wait(key, binding, works):
            return wait
        change = change_binding_status(binding, works, now=self._hub.clock(), silent=self._silent)
        if change is not None:
            await self._hub.patch(resource, binding, change, subresource="status")
            if says_fully_applied(change):
                both = refer_to(key, binding.metadata), refer_to_template(binding)
                tell_step(self._hub, STATUS_AGGREGATED, *both)
        target = template_of(binding)
        kind = self._hub.catalog.find(target.api_version, target.kind)
        template = self._hub.find(kind, target.namespace, target.name) if kind else None
        if kind is None or template is None or template.metadata.uid != binding.spec.resource.uid:
            return None
        template_change = change_template_status(
            target, binding, template, works, ranges=self._ranges, silent=self._silent, rules=self._hub.rules
        )
        if template_change is not None:
            await self._hub.patch(kind, template, template_change, subresource="status")
        return None
