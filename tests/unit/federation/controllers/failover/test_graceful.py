"""Evictions in progress against a fake hub that records its writes."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from federation.api import Cluster, ResourceBinding
from federation.controllers.failover.graceful import GracefulController, GracefulSettings
from federation.failover.eviction_causes import EvictionCauses
from federation.failover.eviction_tasks import PRODUCER
from federation.hub.work_index import WorkIndex
from federation.objects import resources
from federation.objects.conditions import find_condition
from federation.planning import evictions
from reberth.records import Condition
from reberth.values import errors
from reberth.values.duration import Duration
from tests.support.federation.clusters import binding, cluster
from tests.support.federation.copies import copy
from tests.support.federation.fake_hub import FakeHub
from tests.support.federation.objects import meta
from tests.support.metrics import read_metric

pytestmark = pytest.mark.looptime
OUT = "lost=yes:NoExecute"


def member(name: str, *, ready: bool = True, taints: tuple[str, ...] = ()) -> Cluster:
    conditions = [{"type": "Ready", "status": str(ready)}]
    one = cluster(name, status={"conditions": conditions}, taints=list(taints))
    return replace(one, metadata=replace(one.metadata, uid=name))


def leaving(*, at: str = "m2", **task: Any) -> ResourceBinding:
    """Evicted from m1; m2 has replaced it, unless it is still `at` m1."""
    return binding(
        3,
        {},
        at={at: 3},
        metadata=meta("web-deployment", generation=2),
        resource={"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"},
        gracefulEvictionTasks=[
            {"fromCluster": "m1", "purgeMode": "Gracefully", "producer": PRODUCER, "replicas": 3, **task}
        ],
        status={"schedulerObservedGeneration": 2},
    )


class EvictionHub(FakeHub):
    def __init__(self, *members: Cluster, fence: float | None = None) -> None:
        super().__init__(resources.BINDINGS, resources.CLUSTERS, resources.WORKS)
        settings = GracefulSettings(fence_after=None if fence is None else Duration(fence))
        causes, self._index = EvictionCauses(self.hub.clock), WorkIndex(self.hub)
        self.controllers = [GracefulController(self.hub, self._index, causes, settings)]
        self.report(m1=3, m2=0)
        for each in members or (member("m1", taints=(OUT,)), member("m2")):
            self.put(resources.CLUSTERS, each)

    @property
    def binding(self) -> ResourceBinding:
        found: ResourceBinding | None = self.cache.of(resources.BINDINGS.kind).named(
            "default", "web-deployment"
        )
        assert found is not None
        return found

    @property
    def leaves(self) -> list[str]:
        return [each.from_cluster for each in self.binding.spec.graceful_eviction_tasks or ()]

    def report(self, **available: int) -> None:
        """Say how many replicas are available where."""
        for name, count in available.items():
            self.put(resources.WORKS, copy(name, count))

    def _notify(self, kind: Any, record: Any) -> None:
        self._index.on_change(self._known[kind], record)
        super()._notify(kind, record)


def ended(outcome: str, cause: str = "Other") -> float:
    return read_metric("reberth_federation_evictions_total", cause=cause, outcome=outcome)


def under_way(cause: str = "Other") -> float:
    return read_metric("reberth_federation_evictions_under_way", cause=cause)


async def test_an_old_copy_goes_when_its_replacement_is_ready() -> None:
    hub, cause, before = EvictionHub(), "TaintUntolerated", ended("replaced", "TaintUntolerated")
    hub.put(resources.BINDINGS, leaving(reason=cause))
    running = asyncio.create_task(hub.run(30))
    await asyncio.sleep(10)
    assert hub.leaves == ["m1"]
    assert (under_way(cause), ended("replaced", cause)) == (1, before)
    (task,) = hub.binding.spec.graceful_eviction_tasks or ()
    assert task.creation_timestamp
    hub.report(m1=3, m2=3)
    await running
    assert hub.leaves == []
    assert (under_way(cause), ended("replaced", cause)) == (0, before + 1)
    assert hub.events == [("EvictWorkloadFromClusterSucceed", "Evict from cluster m1 succeed.")] * 2


async def test_tasks_are_sorted_once_each_time_that_an_eviction_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = Counter[str]()

    def count(name: str, counted: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given, **named: (calls.update([name]), counted(*given, **named))[1]

    monkeypatch.setattr(evictions, "review_tasks", count("sorted", evictions.review_tasks))
    monkeypatch.setattr(GracefulController, "_assess", count("looked", GracefulController._assess))
    hub = EvictionHub()
    hub.put(resources.BINDINGS, leaving())
    running = asyncio.create_task(hub.run(20))
    await asyncio.sleep(5)
    hub.report(m1=3, m2=3)
    await running
    assert hub.leaves == []
    assert calls["sorted"] == calls["looked"] > 2


async def test_an_old_copy_stays_beside_a_replacement_that_is_available_for_moments() -> None:
    """As a crash loop is, at each start."""
    hub = EvictionHub()
    hub.put(resources.BINDINGS, leaving())
    running = asyncio.create_task(hub.run(60))
    for _ in range(5):
        await asyncio.sleep(4)
        hub.report(m2=3)
        await asyncio.sleep(2)
        hub.report(m2=0)
    await asyncio.sleep(1)
    hub.report(m2=3)
    await asyncio.sleep(2)
    assert hub.leaves == ["m1"]
    await running
    assert hub.leaves == []


async def test_an_old_copy_goes_at_the_end_of_its_grace_period() -> None:
    hub, before = EvictionHub(), ended("timedOut")
    hub.put(resources.BINDINGS, leaving(reason="SomebodyElse"))
    running = asyncio.create_task(hub.run(610))
    await asyncio.sleep(595)
    assert hub.leaves == ["m1"]
    await running
    assert hub.leaves == []
    assert ended("timedOut") == before + 1


async def test_an_eviction_that_a_person_ends_is_counted_as_such() -> None:
    hub, before = EvictionHub(), ended("byHand")
    hub.put(resources.BINDINGS, leaving(suppressDeletion=True))
    await hub.run(5)
    assert under_way() == 1
    hub.put(resources.BINDINGS, leaving(suppressDeletion=False))
    await hub.run(5)
    assert hub.leaves == []
    assert (under_way(), ended("byHand")) == (0, before + 1)


async def test_an_eviction_that_has_ended_is_counted_and_told_although_the_status_meets_a_conflict() -> None:
    hub, before = EvictionHub(), ended("byHand")
    held_back = [{"type": "Failover", "status": "False", "reason": "MemberLost"}]
    conflicts = [errors.Conflict("patch", "changed meanwhile")]
    merge = hub.merge

    async def refuse_status(*given: Any, **more: Any) -> Any:
        if more.get("subresource") == "status" and conflicts:
            raise conflicts.pop()
        return await merge(*given, **more)

    hub.merge = refuse_status  # type: ignore[method-assign]
    one = leaving(suppressDeletion=False)
    conditions = msgspec.convert(held_back, tuple[Condition, ...])
    hub.put(resources.BINDINGS, replace(one, status=replace(one.status, conditions=conditions)))
    await hub.run(5)
    assert (hub.leaves, conflicts) == ([], [])
    assert ended("byHand") == before + 1
    assert hub.events == [("EvictWorkloadFromClusterSucceed", "Evict from cluster m1 succeed.")] * 2


async def test_an_eviction_whose_end_cannot_be_written_is_told_and_tried_again() -> None:
    hub = EvictionHub()
    hub.refuse = [errors.Forbidden("patch", "no right")]
    hub.put(resources.BINDINGS, leaving(suppressDeletion=False))
    await hub.run(5)
    assert hub.leaves == []
    failed = ("EvictWorkloadFromClusterFailed", "Evict from cluster m1 failed: no right")
    succeeded = ("EvictWorkloadFromClusterSucceed", "Evict from cluster m1 succeed.")
    assert hub.events == [failed, failed, succeeded, succeeded]


async def test_an_eviction_of_a_workload_that_is_deleted_is_under_way_no_longer() -> None:
    hub = EvictionHub()
    hub.put(resources.BINDINGS, leaving())
    await hub.run(5)
    assert under_way() == 1
    hub.drop(resources.BINDINGS, leaving())
    assert under_way() == 0


async def test_a_task_is_withdrawn_when_its_cause_is_gone() -> None:
    hub, before = EvictionHub(), ended("withdrawn")
    hub.put(resources.BINDINGS, leaving(at="m1"))
    running = asyncio.create_task(hub.run(30))
    await asyncio.sleep(10)
    assert hub.leaves == ["m1"]
    hub.put(resources.CLUSTERS, member("m1"))
    await running
    assert hub.leaves == []
    assert [each.name for each in hub.binding.spec.clusters or ()] == ["m1"]
    assert {reason for reason, _ in hub.events} == {"EvictWorkloadFromClusterWithdrawn"}
    assert ended("withdrawn") == before + 1


@pytest.mark.parametrize(("fence", "ended"), [(None, False), (3600.0, True)])
async def test_a_lost_member_holds_back_what_is_purged_directly(fence: float | None, *, ended: bool) -> None:
    hub = EvictionHub(member("m1", ready=False, taints=(OUT,)), member("m2"), fence=fence)
    hub.put(resources.BINDINGS, leaving(purgeMode="Directly"))
    running = asyncio.create_task(hub.run(4000))
    await asyncio.sleep(3500)
    assert hub.leaves == ["m1"]
    said = find_condition(hub.binding.status.conditions, "Failover")
    assert said is not None
    assert (said.status, said.reason) == ("False", "MemberLost")
    await running
    assert (hub.leaves == []) is ended
    said = find_condition(hub.binding.status.conditions, "Failover")
    assert said is not None
    assert (said.status == "True") is ended


async def test_copies_must_stay_healthy_anew_for_an_eviction_that_follows_one_that_somebody_ended() -> None:
    hub = EvictionHub()
    hub.put(resources.BINDINGS, leaving(suppressDeletion=True))
    hub.report(m2=3)
    running = asyncio.create_task(hub.run(20))
    await asyncio.sleep(5)
    calm = replace(hub.binding, spec=replace(hub.binding.spec, graceful_eviction_tasks=None))
    hub.put(resources.BINDINGS, calm)
    await asyncio.sleep(10)
    hub.put(resources.BINDINGS, leaving())
    await asyncio.sleep(1)
    assert hub.leaves == ["m1"]
    await running
    assert hub.leaves == []
