"""The detector against a hub that only writes down what it is asked for."""

import asyncio
from typing import Any, cast

import msgspec
import pytest

from federation.controllers.propagation.detector import DetectorController
from federation.hub.hub import Hub
from federation.hub.object_api import ObjectApi
from federation.hub.workqueue import QueueSettings
from federation.objects import resources
from federation.objects.cache import NotifyingCache
from federation.objects.template import Object
from federation.propagation.binding import write_binding
from reberth.client.events import EventRecorder
from tests.support.federation.objects import NOW, WEB, meta, policy, template

pytestmark = pytest.mark.looptime
DEPLOYMENTS = resources.TEMPLATES[0]


class FakeHub:
    """What is asked of the API server."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.cache = NotifyingCache(self._tell, version=(1, 36))
        self.hub = Hub(cast("ObjectApi", self), self.cache, cast("EventRecorder", None), lambda: NOW)
        self.detector = DetectorController(self.hub, QueueSettings())

    def _tell(self, kind: Any, record: Any) -> None:
        known = (DEPLOYMENTS, resources.POLICIES, resources.BINDINGS)
        resource = next(each for each in known if each and each.kind == kind)
        self.detector.on_change(resource, record)

    async def create_object(self, resource: Any, body: Object, *, namespace: str = "") -> Object:
        self.asked.append(("create", f"{resource.name} {namespace}/{body['metadata']['name']}"))
        return body

    async def merge(self, resource: Any, name: str, patch: Object, **_: Any) -> Object:
        self.asked.append(("patch", f"{resource.name} {name}"))
        return patch

    async def remove_object(self, resource: Any, name: str, *, uid: str, namespace: str = "") -> None:
        self.asked.append(("delete", f"{resource.name} {namespace}/{name} {uid}"))

    def hold(self, resource: Any, *records: Any) -> None:
        self.cache.replace(resource.kind, records, "9")

    async def settle(self) -> list[tuple[str, str]]:
        task = asyncio.create_task(self.detector.run())
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait([task])
        return self.asked


def bound() -> Any:
    wire = write_binding(WEB, template(), policy("a"))
    whole = wire | {"metadata": meta("web-deployment") | wire["metadata"]}
    return msgspec.convert(whole, resources.BINDINGS.record)


async def test_what_a_policy_selects_is_claimed_and_bound() -> None:
    hub = FakeHub()
    hub.hold(DEPLOYMENTS, template())
    hub.hold(resources.POLICIES, policy("a"))
    assert await hub.settle() == [
        ("create", "resourcebindings default/web-deployment"),
        ("patch", "deployments web"),
    ]


async def test_what_no_policy_selects_is_left_alone() -> None:
    hub = FakeHub()
    hub.hold(DEPLOYMENTS, template())
    hub.hold(resources.POLICIES, policy("a", {"name": "other"}))
    assert await hub.settle() == []


async def test_a_binding_goes_with_its_template() -> None:
    hub = FakeHub()
    hub.hold(DEPLOYMENTS)
    hub.hold(resources.BINDINGS, bound())
    assert await hub.settle() == [("delete", "resourcebindings default/web-deployment uid-web-deployment")]


async def test_what_cannot_be_read_is_not_taken_for_gone() -> None:
    hub = FakeHub()
    hub.hold(resources.BINDINGS, bound())
    assert await hub.settle() == []


async def test_a_template_of_the_same_name_gets_a_binding_of_its_own() -> None:
    hub = FakeHub()
    hub.hold(DEPLOYMENTS, template(uid="another"))
    hub.hold(resources.POLICIES, policy("a"))
    hub.hold(resources.BINDINGS, bound())
    assert await hub.settle() == [("delete", "resourcebindings default/web-deployment uid-web-deployment")]
