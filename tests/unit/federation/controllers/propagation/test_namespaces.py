"""The labels of namespaces in members, against a fake hub and members that record what is applied."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from federation.controllers.propagation.namespaces import NamespacesController, NamespacesSettings
from federation.hub.sessions import Sessions
from federation.objects import resources
from federation.objects.template import Object, ResourceTemplate
from reberth.values.errors import ApiError, Unreachable
from tests.support.federation.fake_hub import FakeHub
from tests.support.federation.objects import as_template, bare_cluster

pytestmark = pytest.mark.looptime
STRICT = {"pod-security.kubernetes.io/enforce": "restricted"}
OURS = {"karmada.io/managed": "true"}


def namespace(name: str, **labels: str) -> ResourceTemplate:
    return as_template(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    )


class Namespaces:
    """The API of a hub or of a member that lists these namespaces."""

    def __init__(self, *found: ResourceTemplate) -> None:
        self.found = list(found)
        self.lists: list[dict[str, str]] = []
        self.applied: list[tuple[str, Object]] = []
        self.error: ApiError | None = None

    async def list_pages(self, _: Any, **selection: str) -> AsyncIterator[Any]:
        self.lists.append(selection)
        if self.error:
            raise self.error
        yield SimpleNamespace(objects=self.found)

    async def apply_object(self, _: Any, name: str, body: Object) -> None:
        self.applied.append((name, body["metadata"]["labels"]))


class NamespacesHub(FakeHub):
    def __init__(self, hub: Namespaces, **members: Namespaces) -> None:
        super().__init__(resources.CLUSTERS)
        self.unusable: set[str] = set()
        self.list_pages = hub.list_pages
        sessions = SimpleNamespace(
            get=lambda name: SimpleNamespace(api=members[name]) if name in members else None,
            is_usable=lambda name: name not in self.unusable,
        )
        settings = NamespacesSettings()
        self.controllers = [NamespacesController(self.hub, cast("Sessions", sessions), settings)]
        for name in members:
            made = bare_cluster(name)
            self.put(resources.CLUSTERS, replace(made, metadata=replace(made.metadata, namespace="")))


async def test_labels_that_differ_are_applied_in_our_namespaces_and_the_hub_is_read_once() -> None:
    hub = Namespaces(namespace("shop", **STRICT), namespace("calm"))
    one = Namespaces(namespace("shop", **OURS), namespace("calm", **OURS), namespace("gone", **OURS))
    two = Namespaces(namespace("shop", **OURS, **STRICT))
    await NamespacesHub(hub, m1=one, m2=two).run(30)
    assert one.lists == two.lists == [{"labelSelector": "karmada.io/managed=true"}]
    assert [(name, labels.items() >= STRICT.items()) for name, labels in one.applied] == [("shop", True)]
    assert not two.applied
    assert len(hub.lists) == 1


async def test_they_are_compared_again_every_minute() -> None:
    hub, member = Namespaces(namespace("shop")), Namespaces(namespace("shop", **OURS))
    running = asyncio.create_task(NamespacesHub(hub, m1=member).run(90))
    await asyncio.sleep(30)
    assert not member.applied
    hub.found = [namespace("shop", **STRICT)]
    await running
    assert [name for name, _ in member.applied] == ["shop"]


async def test_a_member_that_fails_or_is_not_usable_keeps_none_of_the_others_waiting() -> None:
    hub = Namespaces(namespace("shop", **STRICT))
    broken, silent, well = (Namespaces(namespace("shop", **OURS)) for _ in range(3))
    broken.error = Unreachable("list namespaces", "away")
    federation = NamespacesHub(hub, broken=broken, silent=silent, well=well)
    federation.unusable = {"silent"}
    await federation.run(30)
    assert [len(each.applied) for each in (broken, silent, well)] == [0, 0, 1]
    assert not silent.lists
