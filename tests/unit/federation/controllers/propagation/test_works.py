"""The Works controller against a fake hub that records its writes."""

import asyncio
from typing import Any

import msgspec
import pytest

from federation.controllers.propagation.works import WorksController, WorkSettings
from federation.hub.work_index import WorkIndex
from federation.objects import resources
from federation.objects.names import cluster_of_works
from federation.objects.template import Object
from tests.support.federation.fake_hub import FakeHub
from tests.support.federation.objects import bare_cluster, claimed_binding, given, template

pytestmark = pytest.mark.looptime
DEPLOYMENTS = next(each for each in resources.TEMPLATES if each.kind.name == "Deployment")
PATIENCE = WorkSettings().wait_for_claim


class CallPriorityHub(FakeHub):
    """Its calls get their turn when it is `free`."""

    def __init__(self) -> None:
        super().__init__(DEPLOYMENTS, resources.BINDINGS, resources.CLUSTERS)
        self.free = asyncio.Event()
        self.made: list[str | None] = []
        self.works = WorksController(self.hub, WorkIndex(self.hub), WorkSettings())
        self.controllers = [self.works]

    async def wait_for_turn(self) -> None:
        await self.free.wait()

    async def create_object(self, _: Any, body: Object, *, namespace: str = "") -> Object:
        self.made.append(cluster_of_works(namespace))
        return body


async def test_works_follow_the_schedule_decided_while_they_waited_for_their_turn() -> None:
    hub = CallPriorityHub()
    for name in ("m1", "m2"):
        made = bare_cluster(name)
        meta = msgspec.structs.replace(made.metadata, namespace="")
        hub.put(resources.CLUSTERS, msgspec.structs.replace(made, metadata=meta))
    hub.put(DEPLOYMENTS, template())
    task = asyncio.create_task(hub.works.run())
    hub.put(resources.BINDINGS, claimed_binding(clusters=given(m1=3)))
    await asyncio.sleep(PATIENCE + 1)
    assert hub.made == []
    hub.put(resources.BINDINGS, claimed_binding(clusters=given(m2=3)))
    hub.free.set()
    await asyncio.sleep(PATIENCE + 1)
    task.cancel()
    await asyncio.wait([task])
    assert hub.made == ["m2"]
