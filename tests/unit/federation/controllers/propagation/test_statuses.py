"""Statuses of copies against a fake hub that records its writes."""

import asyncio
from typing import Any, cast

import pytest
from msgspec.structs import replace

from federation.api import Cluster, ResourceBinding
from federation.controllers.propagation.statuses import StatusesController, StatusSettings
from federation.hub.hub import Controller
from federation.hub.work_index import WorkIndex
from federation.objects import resources
from federation.objects.resources import HeldWork
from federation.objects.template import Object
from federation.propagation.works import write_work
from tests.support.federation.fake_hub import FakeHub
from tests.support.federation.objects import WEB, bare_cluster, claimed_binding, given, template, work
from tests.support.metrics import read_metric

pytestmark = pytest.mark.looptime
DOWN = "reberth_federation_workloads_without_ready_copy"
DEPLOYMENTS = next(each for each in resources.TEMPLATES if each.kind.name == "Deployment")


class StatusHub(FakeHub):
    def __init__(self) -> None:
        super().__init__(resources.CLUSTERS, resources.BINDINGS, resources.WORKS, *resources.TEMPLATES)
        index = WorkIndex(self.hub)
        self.controllers = [
            cast("Controller", index),
            StatusesController(self.hub, index, StatusSettings()),
        ]

    async def wait_for_turn(self) -> None:
        """Every call has its turn at once."""

    async def run(self, seconds: float = 1) -> None:
        task = asyncio.create_task(self.controllers[1].run())
        await asyncio.sleep(seconds)
        task.cancel()
        await asyncio.wait([task])

    async def merge(self, resource: Any, name: str, patch: Object, **more: Any) -> Any:
        """Only record what is written to templates: they are kept as bytes, and no test reads them again."""
        if resource is not DEPLOYMENTS:
            return await super().merge(resource, name, patch, **more)
        self.patches.append((name, more.get("subresource") or "spec", patch))
        return self.cache.of(DEPLOYMENTS.kind).named("default", name)

    @property
    def binding(self) -> ResourceBinding:
        found: ResourceBinding | None = self.cache.of(resources.BINDINGS.kind).named(
            "default", "web-deployment"
        )
        assert found is not None
        return found

    @property
    def told(self) -> list[tuple[str, Object]]:
        """What was written of the template's status."""
        return [(name, patch["status"]) for name, _, patch in self.patches if name == "web"]


def bound() -> ResourceBinding:
    one = claimed_binding(clusters=given(m1=2, m2=1), replicas=3)
    return replace(one, spec=replace(one.spec, resource=replace(one.spec.resource, uid="uid-web")))


def reported(cluster: str, replicas: int, *, applied: bool = True) -> HeldWork:
    wire = write_work(WEB, bound(), template(), cluster, replicas)
    condition = {"type": "Applied", "status": str(applied), "reason": "R", "message": "too large"}
    status = {"replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas}
    identifier = {"version": "v1", "kind": "Deployment", "name": "web", "ordinal": 0}
    told = [{"identifier": identifier, "status": status, "health": "Healthy"}]
    made = work(wire, conditions=[condition], manifestStatuses=told)
    return replace(made, metadata=replace(made.metadata, uid=cluster))


async def test_what_the_members_report_is_summed_up_on_the_hub_in_one_write() -> None:
    hub = StatusHub()
    hub.put(DEPLOYMENTS, template())
    hub.put(resources.BINDINGS, bound())
    for name, count in (("m1", 2), ("m2", 1)):
        hub.put(resources.WORKS, reported(name, count))
    await hub.run()
    copies = hub.binding.status.aggregated_status or ()
    assert [(each.cluster_name, each.applied, each.health) for each in copies] == [
        ("m1", True, "Healthy"),
        ("m2", True, "Healthy"),
    ]
    (name, status), *again = hub.told
    assert (name, status["replicas"], status["availableReplicas"]) == ("web", 3, 3)
    assert all(each == (name, status) for each in again)  # the hub of this test does not keep it
    assert [name for name, *_ in hub.patches].count("web-deployment") == 1
    assert [reason for reason, _ in hub.events] == ["AggregateStatusSucceed"] * 2


async def test_a_member_that_has_not_reported_is_waited_for_but_not_for_ever() -> None:
    hub = StatusHub()
    hub.put(DEPLOYMENTS, template())
    hub.put(resources.BINDINGS, bound())
    hub.put(resources.WORKS, reported("m1", 2))
    running = asyncio.create_task(hub.run(20))
    await asyncio.sleep(4)
    assert not hub.patches
    await running
    assert [each.cluster_name for each in hub.binding.status.aggregated_status or ()] == ["m1"]
    (condition,) = hub.binding.status.conditions or ()
    assert (condition.type, condition.status) == ("FullyApplied", "False")


async def test_why_a_member_has_refused_a_copy_is_told() -> None:
    hub = StatusHub()
    hub.put(DEPLOYMENTS, template())
    hub.put(resources.BINDINGS, bound())
    hub.put(resources.WORKS, reported("m1", 2))
    hub.put(resources.WORKS, reported("m2", 0, applied=False))
    await hub.run()
    assert not hub.events
    _, second = hub.binding.status.aggregated_status or ()
    assert (second.applied, second.applied_message) == (False, "too large")


async def test_the_status_of_another_object_of_that_name_is_left_alone() -> None:
    hub = StatusHub()
    hub.put(DEPLOYMENTS, template(uid="younger"))
    hub.put(resources.BINDINGS, bound())
    for name, count in (("m1", 2), ("m2", 1)):
        hub.put(resources.WORKS, reported(name, count))
    await hub.run()
    assert hub.binding.status.aggregated_status
    assert not hub.told


async def test_copies_count_as_ready_no_longer_than_their_member_is_heard_of() -> None:
    hub = StatusHub()
    hub.put(DEPLOYMENTS, template())
    hub.put(resources.BINDINGS, bound())
    for name, count in (("m1", 2), ("m2", 1)):
        hub.put(resources.CLUSTERS, heard(name))
        hub.put(resources.WORKS, reported(name, count))
    await hub.run()
    written = len(hub.patches)
    hub.put(resources.CLUSTERS, heard("m1"))
    await hub.run()
    assert len(hub.patches) == written, "a report that changes nothing of this costs a write"
    assert read_metric(DOWN) == 0
    for is_heard, health, available in ((False, "Unknown", 1), (True, "Healthy", 3)):
        hub.put(resources.CLUSTERS, heard("m1", is_heard=is_heard))
        await hub.run()
        first, second = hub.binding.status.aggregated_status or ()
        assert (first.health, second.health) == (health, "Healthy")
        assert hub.told[-1][1]["availableReplicas"] == available
    hub.put(resources.CLUSTERS, heard("m1", is_heard=False))
    hub.drop(resources.CLUSTERS, heard("m1"))
    await hub.run()
    assert hub.told[-1][1]["availableReplicas"] == 3


async def test_the_time_without_a_ready_copy_is_measured() -> None:
    hub, before = StatusHub(), read_metric("reberth_federation_outage_seconds_sum")
    hub.put(DEPLOYMENTS, template())
    hub.put(resources.BINDINGS, bound())
    for name, count in (("m1", 2), ("m2", 1)):
        hub.put(resources.CLUSTERS, heard(name))
        hub.put(resources.WORKS, reported(name, count))
    await hub.run()
    for name in ("m1", "m2"):
        hub.put(resources.CLUSTERS, heard(name, is_heard=False))
    await hub.run()
    assert read_metric(DOWN) == 1
    await asyncio.sleep(60)
    assert read_metric("reberth_federation_longest_without_ready_copy_seconds") == pytest.approx(60, abs=2)
    hub.put(resources.CLUSTERS, heard("m2"))
    await hub.run()
    assert read_metric(DOWN) == 0
    assert read_metric("reberth_federation_outage_seconds_sum") - before == pytest.approx(61, abs=2)


def heard(name: str, *, is_heard: bool = True) -> Cluster:
    reason = "ClusterReady" if is_heard else "ClusterNotReachable"
    made = bare_cluster(
        name, status={"conditions": [{"type": "Ready", "status": str(is_heard), "reason": reason}]}
    )
    return replace(made, metadata=replace(made.metadata, namespace=""))
