"""The Works controller against a fake hub that records its writes."""

import asyncio
from typing import Any, cast

import msgspec
import pytest

from federation.controllers.propagation.works import WorksController, WorkSettings
from federation.hub.hub import Controller
from federation.hub.work_index import WorkIndex
from federation.objects import resources
from federation.objects.names import cluster_of_works
from federation.objects.template import Object
from federation.propagation.works import write_work
from reberth.cluster.kinds import Resource
from tests.support.federation.fake_hub import FakeHub
from tests.support.federation.objects import WEB, bare_cluster, claimed_binding, given, template, work

pytestmark = pytest.mark.looptime
DEPLOYMENTS = next(each for each in resources.TEMPLATES if each.kind.name == "Deployment")
PATIENCE = WorkSettings().wait_for_claim


MEMBER_TOKEN = {"apiVersion": "v1", "kind": "Secret", "namespace": "karmada-cluster", "name": "member1"}
CLUSTER_ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "admin"}
OTHER_WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"}
KINDS = {each.kind.name: each for each in (*resources.TEMPLATES, *resources.RBAC_KINDS)}


class CallPriorityHub(FakeHub):
    """Its calls get their turn when it is `free`."""

    def __init__(self) -> None:
        super().__init__(resources.BINDINGS, resources.CLUSTERS, resources.WORKS, *KINDS.values())
        for each in resources.RBAC_KINDS:
            self.hub.catalog.learn(each, on_hub=True)
        self.free = asyncio.Event()
        self.made: list[str | None] = []
        self.removed: list[str] = []
        index = WorkIndex(self.hub)
        self.works = WorksController(self.hub, index, WorkSettings())
        self.controllers = [cast("Controller", index), self.works]

    async def wait_for_turn(self) -> None:
        await self.free.wait()

    async def create_object(self, _: Any, body: Object, *, namespace: str = "") -> Object:
        self.made.append(cluster_of_works(namespace))
        return body

    async def get(self, resource: Resource[Any], name: str, *, namespace: str = "") -> Any:
        return self.cache.of(resource.kind).named(namespace, name)

    async def remove_object(self, _: Any, name: str, **__: Any) -> None:
        self.removed.append(name)

    def put_cluster(self, name: str) -> None:
        made = bare_cluster(name)
        meta = msgspec.structs.replace(made.metadata, namespace="")
        self.put(resources.CLUSTERS, msgspec.structs.replace(made, metadata=meta))

    async def run_works(self) -> None:
        self.free.set()
        task = asyncio.create_task(self.works.run())
        await asyncio.sleep(PATIENCE + 1)
        task.cancel()
        await asyncio.wait([task])


async def test_works_follow_the_schedule_decided_while_they_waited_for_their_turn() -> None:
    hub = CallPriorityHub()
    for name in ("m1", "m2"):
        hub.put_cluster(name)
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
    assert hub.events == [("SyncWorkSucceed", "Wrote its Works for m2.")] * 2, (
        "on the binding and its template"
    )


async def test_only_clusters_that_got_a_work_are_named() -> None:
    hub = CallPriorityHub()
    hub.put_cluster("m1")
    hub.put(DEPLOYMENTS, template())
    hub.put(resources.BINDINGS, claimed_binding(clusters=given(gone=1, m1=2)))
    await hub.run_works()
    assert hub.made == ["m1"]
    assert set(hub.events) == {("SyncWorkSucceed", "Wrote its Works for m1.")}


async def test_nothing_is_told_where_no_cluster_got_a_work() -> None:
    hub = CallPriorityHub()
    hub.put(DEPLOYMENTS, template())
    hub.put(resources.BINDINGS, claimed_binding(clusters=given(gone=1)))
    await hub.run_works()
    assert (hub.made, hub.events) == ([], [])


def _put_template(hub: CallPriorityHub, named: dict[str, str]) -> None:
    made = template(named["name"])
    meta = msgspec.structs.replace(made.metadata, namespace=named.get("namespace", ""))
    hub.put(KINDS[named["kind"]], msgspec.structs.replace(made, metadata=meta))


@pytest.mark.parametrize("named", [MEMBER_TOKEN, CLUSTER_ROLE, OTHER_WEB])
async def test_no_binding_sends_an_object_of_another_namespace_or_of_the_cluster(
    named: dict[str, str],
) -> None:
    hub = CallPriorityHub()
    hub.put_cluster("m1")
    _put_template(hub, named)
    hub.put(resources.BINDINGS, claimed_binding(clusters=given(m1=0), resource=named))
    await hub.run_works()
    assert hub.made == []
    ((reason, note),) = set(hub.events)
    assert (reason, named["name"] in note) == ("ResourceRefused", True)


async def test_a_secret_of_a_reserved_namespace_is_sent_for_nobody() -> None:
    hub = CallPriorityHub()
    hub.put_cluster("m1")
    _put_template(hub, MEMBER_TOKEN)
    binding = claimed_binding(clusters=given(m1=0), resource=MEMBER_TOKEN)
    meta = msgspec.structs.replace(binding.metadata, namespace=MEMBER_TOKEN["namespace"])
    hub.put(resources.BINDINGS, msgspec.structs.replace(binding, metadata=meta))
    await hub.run_works()
    assert hub.made == []


async def test_a_work_is_deleted_once_its_binding_names_an_object_of_another_namespace() -> None:
    hub = CallPriorityHub()
    hub.put_cluster("m1")
    hub.put(DEPLOYMENTS, template())
    proper = claimed_binding(clusters=given(m1=3))
    hub.put(resources.BINDINGS, proper)
    carried = work(write_work(WEB, proper, template(), "m1", 3))
    hub.put(resources.WORKS, carried)
    await hub.run_works()
    assert (hub.made, hub.removed) == ([], [])
    hub.put(resources.BINDINGS, claimed_binding(clusters=given(m1=3), resource=OTHER_WEB))
    await hub.run_works()
    assert hub.removed == [carried.metadata.name]
