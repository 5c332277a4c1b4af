"""The controller of Works against a hub that only writes down what it is asked for."""

import asyncio
from typing import Any, cast

import msgspec
import pytest

from federation.controllers.propagation.works import WorksController, WorkSettings
from federation.hub.hub import Hub
from federation.hub.object_api import ObjectApi
from federation.hub.work_index import WorkIndex
from federation.objects import resources
from federation.objects.cache import NotifyingCache
from federation.objects.names import cluster_of_works
from federation.objects.template import Object
from reberth.client.events import EventRecorder
from tests.support.federation.objects import NOW, binding, cluster, given, template

pytestmark = pytest.mark.looptime
DEPLOYMENTS = next(each for each in resources.TEMPLATES if each.kind.name == "Deployment")
PATIENCE = WorkSettings().wait_for_claim


class FakeHub:
    """Its turn comes when it is `free`."""

    def __init__(self) -> None:
        self.free = asyncio.Event()
        self.made: list[str | None] = []
        self.version = 10
        self.cache = NotifyingCache(self._tell, version=(1, 36))
        hub = Hub(cast("ObjectApi", self), self.cache, cast("EventRecorder", None), lambda: NOW)
        self.works = WorksController(hub, WorkIndex(hub), WorkSettings())

    def _tell(self, kind: Any, record: Any) -> None:
        known = (DEPLOYMENTS, resources.BINDINGS, resources.CLUSTERS)
        self.works.on_change(next(each for each in known if each.kind == kind), record)

    async def wait_for_turn(self) -> None:
        await self.free.wait()

    async def create_object(self, _: Any, body: Object, *, namespace: str = "") -> Object:
        self.made.append(cluster_of_works(namespace))
        return body

    def put(self, resource: Any, record: Any) -> None:
        self.version += 1
        meta = msgspec.structs.replace(record.metadata, resource_version=str(self.version))
        self.cache.apply(resource.kind, "MODIFIED", msgspec.structs.replace(record, metadata=meta))


async def test_what_is_decided_while_others_are_more_urgent_is_what_is_carried_out() -> None:
    hub = FakeHub()
    for name in ("m1", "m2"):
        made = cluster(name)
        meta = msgspec.structs.replace(made.metadata, namespace="")
        hub.put(resources.CLUSTERS, msgspec.structs.replace(made, metadata=meta))
    hub.put(DEPLOYMENTS, template())
    task = asyncio.create_task(hub.works.run())
    hub.put(resources.BINDINGS, binding(clusters=given(m1=3)))
    await asyncio.sleep(PATIENCE + 1)
    assert hub.made == []
    hub.put(resources.BINDINGS, binding(clusters=given(m2=3)))
    hub.free.set()
    await asyncio.sleep(PATIENCE + 1)
    task.cancel()
    await asyncio.wait([task])
    assert hub.made == ["m2"]
