"""The end of evictions against a fake hub that records its writes."""

from typing import Any

import pytest
from msgspec.structs import replace

from federation.api import Cluster, ResourceBinding
from federation.controllers.failover.graceful import GracefulController, GracefulSettings
from federation.failover.eviction_causes import EvictionCauses
from federation.hub.work_index import WorkIndex
from federation.objects import resources
from federation.objects.resources import HeldWork
from reberth.values.duration import Duration
from tests.support.federation.clusters import binding, cluster
from tests.support.federation.copies import copy
from tests.support.federation.fake_hub import FakeHub
from tests.support.federation.objects import claimed_binding, given
from tests.support.federation.rebalancers import well

pytestmark = pytest.mark.looptime


class GracefulHub(FakeHub):
    def __init__(self) -> None:
        super().__init__(resources.BINDINGS, resources.CLUSTERS, resources.WORKS)
        index = WorkIndex(self.hub)
        at_once = GracefulSettings(min_ready=Duration(0))
        self.graceful = GracefulController(self.hub, index, EvictionCauses(self._clock), at_once)
        self.works = index
        for name in ("m1", "m2", "m3"):
            self.put(resources.CLUSTERS, member(name))

    def _notify(self, kind: Any, record: Any) -> None:
        if hasattr(self, "graceful"):
            for each in (self.works, self.graceful):
                each.on_change(self._known[kind], record)

    @property
    def binding(self) -> ResourceBinding:
        found: ResourceBinding | None = self.cache.of(resources.BINDINGS.kind).named(
            "default", "web-deployment"
        )
        assert found is not None
        return found

    @property
    def queued(self) -> int:
        return len(self.graceful._queue)


def member(name: str, *, ready: bool = True, **more: Any) -> Cluster:
    status = {"conditions": [{"type": "Ready", "status": str(ready)}]}
    one = cluster(name, 99, status=status, **more)
    return replace(one, metadata=replace(one.metadata, uid=name, namespace=""))


def evicted() -> ResourceBinding:
    """From m1 to m2; what the binding says of its copies is from before."""
    said = [{"clusterName": "m2", "applied": False, "health": "Unknown"}]
    task = {"fromCluster": "m1", "creationTimestamp": "2027-01-15T07:59:00Z", "reason": "TaintUntolerated"}
    return claimed_binding(
        clusters=given(m2=3),
        gracefulEvictionTasks=[{**task, "producer": "somebody"}],
        status={"aggregatedStatus": said, "schedulerObservedGeneration": 2},
    )


async def run(hub: GracefulHub) -> None:
    hub.controllers = [hub.graceful]
    await hub.run(0.1)


async def test_the_newest_word_of_the_copies_ends_an_eviction_at_once() -> None:
    hub = GracefulHub()
    hub.put(resources.WORKS, copy("m2", 2))
    hub.put(resources.BINDINGS, evicted())
    await run(hub)
    assert hub.binding.spec.graceful_eviction_tasks
    hub.put(resources.WORKS, copy("m2", 3))
    await run(hub)
    assert not hub.binding.spec.graceful_eviction_tasks, "though the binding does not show it yet"
    assert {reason for reason, _ in hub.events} == {"EvictWorkloadFromClusterSucceed"}


@pytest.mark.parametrize("works", [[], [copy("m2", 3, leaving=True)]], ids=["is gone", "is being deleted"])
async def test_a_copy_that_was_there_before_and_is_not_any_more_replaces_nothing(
    works: list[HeldWork],
) -> None:
    """The workload was in m2 a moment ago, and the binding still shows the copy of then."""
    hub = GracefulHub()
    for each in works:
        hub.put(resources.WORKS, each)
    one, said = evicted(), binding(0, status=well(m2=3)).status.aggregated_status
    hub.put(resources.BINDINGS, replace(one, status=replace(one.status, aggregated_status=said)))
    await run(hub)
    assert hub.binding.spec.graceful_eviction_tasks
    hub.put(resources.WORKS, copy("m2", 3))
    await run(hub)
    assert not hub.binding.spec.graceful_eviction_tasks


async def test_reports_of_clusters_that_change_nothing_look_at_no_eviction() -> None:
    hub = GracefulHub()
    hub.put(resources.WORKS, copy("m2", 2))
    hub.put(resources.BINDINGS, evicted())
    await run(hub)
    for name in ("m1", "m2", "m3"):
        hub.put(resources.CLUSTERS, member(name))
    assert hub.queued == 0
    hub.put(resources.CLUSTERS, member("m3", ready=False))
    assert hub.queued == 0, "it has no part in the eviction"
    hub.put(resources.CLUSTERS, member("m2", ready=False))
    assert hub.queued == 1
    await run(hub)
    hub.hold(resources.CLUSTERS)
    assert hub.queued == 1, "a cluster that is gone"
