"""Creates Works: each cluster of a binding has a Work, and no other cluster has one.

Watches bindings, resource templates, Works and new Clusters. Writes Works. Asks propagation/works.
"""

import asyncio
from collections.abc import Coroutine, Iterable
from itertools import compress
from typing import Any

from federation.api import WORK_API_VERSION, ResourceBinding
from federation.hub.call_priority import Urgency
from federation.hub.hub import Hub, refer_to
from federation.hub.telemetry.step_events import WORKS_WRITTEN, list_names, tell_step
from federation.hub.work_index import WorkIndex
from federation.hub.workqueue import QueueSettings, WorkQueue
from federation.objects import resources
from federation.objects.expectations import Expectations
from federation.objects.names import Key, binding_of, cluster_of_works, namespace_of_works
from federation.objects.resources import HeldWork
from federation.objects.template import Object, ResourceTemplate
from federation.propagation.binding import find_misuse, key_of_binding, says_claim, template_of
from federation.propagation.works import plan_works, targets_of
from reberth.client.events import WARNING
from reberth.cluster.kinds import Resource
from reberth.values.duration import Duration
from reberth.values.errors import NotFound

REFUSED = "ResourceRefused"
_ACTION = "Propagating"


class WorkSettings(QueueSettings, frozen=True):
    wait_for_claim: Duration = Duration(30)
    """How long new Works wait for the claim on their template. Writing it makes another generation of a
    Deployment, which its copies carry: Works written before it would be written twice."""


class WorksController:
    def __init__(self, hub: Hub, index: WorkIndex, settings: WorkSettings) -> None:
        self._hub = hub
        self._index = index
        self._settings = settings
        self._clusters: set[str] = set()
        self._made = Expectations(asyncio.get_running_loop().time)
        self._unclaimed: dict[Key, float] = {}
        self._queue = WorkQueue("works", self._reconcile, settings, urgency=Urgency.PLACING)

    def on_change(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        if resource in resources.ALL_BINDINGS:
            self._queue.add(resources.key_of(resource, record))
        elif resources.is_template(resource):
            self._queue.add(key_of_binding(resources.key_of(resource, record)))
        elif resource is resources.WORKS and (key := binding_of(record.metadata, WORK_API_VERSION)):
            self._made.observed((key, cluster_of_works(record.metadata.namespace)))
            self._queue.add(key)
        elif resource is resources.CLUSTERS and record.metadata.uid not in self._clusters:
            self._clusters.add(record.metadata.uid)
            self._queue_bindings_of(record.metadata.name)

    async def run(self) -> None:
        await self._queue.run()

    def _queue_bindings_of(self, cluster: str) -> None:
        """Queue the bindings that wait for a new cluster: its namespace exists now, or soon."""
        for key, binding in self._hub.list_bindings():
            if cluster in targets_of(binding):
                self._queue.add(key)

    async def _reconcile(self, key: Key) -> float | None:
        await self._hub.api.wait_for_turn()
        binding = self._hub.find_binding(key)
        if binding is None or binding.metadata.deletion_timestamp is not None:
            self._unclaimed.pop(key, None)
            self._report_misuse(key)
            await self._sweep(key)
            return None
        bound = template_of(binding)
        kind = self._hub.catalog.find(bound.api_version, bound.kind)
        template = self._hub.find(kind, bound.namespace, bound.name) if kind else None
        if template is None:
            return None  # the binding is deleted with it, or its kind is not propagated
        existing = self._index.of(key)
        if not existing and (wait := self._wait(key, template, binding)):
            return wait
        steps = plan_works(bound, binding, template, existing, self._hub.rules)
        for work in steps.delete.values():
            await self._remove(work)
        for work, change in steps.change.values():
            await self._hub.patch(resources.WORKS, work, change)
        awaited = {cluster: self._made.seconds_left((key, cluster)) for cluster in steps.create}
        due = {cluster: wanted for cluster, wanted in steps.create.items() if not awaited[cluster]}
        made = await _all_of(self._create(key, cluster, wanted) for cluster, wanted in due.items())
        if written := {*steps.change, *compress(due, made)}:
            both = refer_to(key, binding.metadata), refer_to(bound, template.metadata)
            tell_step(self._hub, WORKS_WRITTEN, *both, clusters=list_names(written))
        return max(awaited.values(), default=0.0) or None

    def _wait(self, key: Key, template: ResourceTemplate, binding: ResourceBinding) -> float:
        """Return how long to wait with new Works: written now, they would be written again in a moment."""
        if says_claim(template, binding):
            self._unclaimed.pop(key, None)
            return 0.0
        now = asyncio.get_running_loop().time()
        return max(0.0, self._unclaimed.setdefault(key, now) + self._settings.wait_for_claim - now)

    async def _create(self, key: Key, cluster: str, wanted: Object) -> bool:
        """Skip a cluster that does not exist: it has no namespace. Its creation queues the binding again.

        Tell whether the Work was created.
        """
        there = self._hub.find_cluster(cluster)
        if there is None or there.metadata.deletion_timestamp is not None:
            return False
        await self._hub.api.create_object(resources.WORKS, wanted, namespace=namespace_of_works(cluster))
        if cluster not in self._index.of(key):
            self._made.expect((key, cluster))
        return True

    async def _sweep(self, key: Key) -> None:
        """Delete the Works of a deleted or misused binding, once the API server has confirmed it."""
        works = self._index.of(key)
        if works and not await self._is_usable(key):
            for work in works.values():
                await self._remove(work)

    def _report_misuse(self, key: Key) -> None:
        binding = self._hub.find(resources.binding_resource(key.kind), key.namespace, key.name)
        if binding is not None and (why := find_misuse(binding)):
            regarding = refer_to(key, binding.metadata)
            self._hub.recorder.record(
                regarding, reason=REFUSED, note=f"Not propagated: {why}", action=_ACTION, kind=WARNING
            )

    async def _is_usable(self, key: Key) -> bool:
        resource = resources.binding_resource(key.kind)
        try:
            binding: ResourceBinding = await self._hub.api.get(resource, key.name, namespace=key.namespace)
        except NotFound:
            return False
        return binding.metadata.deletion_timestamp is None and not find_misuse(binding)

    async def _remove(self, work: HeldWork) -> None:
        if work.metadata.deletion_timestamp is None:
            await self._hub.remove(resources.WORKS, work)


async def _all_of(calls: Iterable[Coroutine[Any, Any, bool]]) -> list[bool]:
    """Run them concurrently and return their results; raise the first error when all are done."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result is True for result in results]
