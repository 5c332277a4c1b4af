"""The start of evictions against a fake hub that records its writes."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from federation.api import Cluster, ResourceBinding
from federation.controllers.failover.tainting import TaintingController, TaintingSettings
from federation.failover.eviction_causes import EvictionCauses
from federation.objects import resources
from reberth.values.errors import Conflict, Forbidden
from tests.support.federation.clusters import cluster
from tests.support.federation.fake_hub import FakeHub
from tests.support.federation.objects import claimed_binding, given

pytestmark = pytest.mark.looptime
OUT = "lost=yes:NoExecute"


def member(name: str, **more: Any) -> Cluster:
    one = cluster(name, **more)
    return replace(one, metadata=replace(one.metadata, uid=name))


class TaintedHub(FakeHub):
    def __init__(self, *, rate: float = 1.0) -> None:
        super().__init__(resources.BINDINGS, resources.CLUSTERS)
        settings = TaintingSettings(evictions_per_second=rate)
        self.controllers = [TaintingController(self.hub, EvictionCauses(self.hub.clock), settings)]
        self.put(resources.CLUSTERS, member("m1"))

    def place(self, *names: str, **more: Any) -> None:
        for name in names:
            placed = claimed_binding(name=name, clusters=given(m1=3), **{"placement": {}, **more})
            self.put(resources.BINDINGS, placed)

    @property
    def evicted(self) -> list[str]:
        """Name the workloads that were evicted, in this order."""
        return [name for name, _, patch in self.patches if "gracefulEvictionTasks" in patch["spec"]]

    def find(self, name: str) -> ResourceBinding:
        found: ResourceBinding | None = self.cache.of(resources.BINDINGS.kind).named("default", name)
        assert found is not None
        return found


async def test_workloads_leave_a_tainted_member_at_a_rate_the_most_important_first() -> None:
    hub = TaintedHub()
    hub.place("a", "b")
    hub.place("c", schedulePriority={"priority": 9})
    running = asyncio.create_task(hub.run(10))
    await asyncio.sleep(1)
    assert not hub.evicted
    hub.put(resources.CLUSTERS, member("m1", taints=[OUT]))
    await asyncio.sleep(1.5)
    assert len(hub.evicted) == 2
    await running
    assert hub.evicted[0] == "c"
    assert sorted(hub.evicted) == ["a", "b", "c"]
    (task,) = hub.find("a").spec.graceful_eviction_tasks or ()
    assert (task.from_cluster, task.reason, task.replicas) == ("m1", "TaintUntolerated", 3)


async def test_a_workload_stays_for_as_long_as_it_tolerates_the_taint() -> None:
    hub = TaintedHub()
    hub.place("a", placement={"clusterTolerations": [{"operator": "Exists", "tolerationSeconds": 60}]})
    hub.put(resources.CLUSTERS, member("m1", taints=[OUT]))
    running = asyncio.create_task(hub.run(70))
    await asyncio.sleep(55)
    assert not hub.evicted
    await running
    assert hub.evicted == ["a"]


async def test_a_taint_that_goes_in_time_evicts_nobody() -> None:
    hub = TaintedHub()
    hub.place("a", placement={"clusterTolerations": [{"operator": "Exists", "tolerationSeconds": 60}]})
    hub.put(resources.CLUSTERS, member("m1", taints=[OUT]))
    running = asyncio.create_task(hub.run(200))
    await asyncio.sleep(30)
    hub.put(resources.CLUSTERS, member("m1"))
    await running
    assert not hub.evicted


async def test_a_member_that_is_deleted_is_left_and_bindings_of_others_stay() -> None:
    hub = TaintedHub()
    hub.place("a")
    hub.place("theirs", schedulerName="other")
    hub.put(resources.CLUSTERS, member("m1", leaving=True))
    await hub.run(10)
    assert hub.evicted == ["a"]
    (task,) = hub.find("a").spec.graceful_eviction_tasks or ()
    assert task.reason == "ClusterTerminating"


async def test_an_eviction_that_begins_is_told_once_with_its_cause() -> None:
    hub = TaintedHub()
    hub.refuse = [Conflict("patch", "changed meanwhile")]
    hub.place("a")
    hub.put(resources.CLUSTERS, member("m1", taints=[OUT]))
    await hub.run(10)
    (task,) = hub.find("a").spec.graceful_eviction_tasks or ()
    note = f"Evict from cluster m1 started: {task.message}."
    assert hub.events == [("EvictWorkloadFromClusterStarted", note)] * 2  # binding and template


async def test_an_eviction_that_cannot_be_written_is_told_and_tried_again() -> None:
    hub = TaintedHub()
    hub.refuse = [Forbidden("patch", "no right")]
    hub.place("a")
    hub.put(resources.CLUSTERS, member("m1", taints=[OUT]))
    await hub.run(10)
    failed = ("EvictWorkloadFromClusterFailed", "Evict from cluster m1 failed: no right")
    assert hub.events[:2] == [failed] * 2
    assert [reason for reason, _ in hub.events[2:]] == ["EvictWorkloadFromClusterStarted"] * 2
    assert hub.evicted == ["a"]
