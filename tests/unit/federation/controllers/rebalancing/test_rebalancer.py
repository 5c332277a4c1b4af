"""The rebalancer against a fake hub that records its writes."""

import asyncio
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace

from federation.api import ResourceBinding, WorkloadRebalancer
from federation.controllers.propagation.scheduler import SchedulerController, SchedulerSettings
from federation.controllers.rebalancing.rebalancer import RebalancerController, RebalancerSettings
from federation.hub.work_index import WorkIndex
from federation.objects import resources
from federation.objects.template import Object
from reberth.values.timestamp import write_time
from tests.support.federation.clusters import cluster
from tests.support.federation.copies import copy
from tests.support.federation.fake_hub import FakeHub
from tests.support.federation.objects import NOW, claimed_binding, given
from tests.support.federation.rebalancers import well

pytestmark = pytest.mark.looptime
DONE = {"lastScheduledTime": write_time(NOW - 60)}
AT_ONCE, GATHERED = 0.1, 0.6


class RebalancerHub(FakeHub):
    """`decided` is what is written with a trigger."""

    def __init__(self, *names: str, decided: Object | None = None) -> None:
        super().__init__(resources.BINDINGS, resources.REBALANCERS, resources.WORKS, resources.CLUSTERS)
        self.index = WorkIndex(self.hub)
        self.rebalancer = RebalancerController(
            self.hub,
            self.index,
            RebalancerSettings(),
            lambda _key, _triggered: nullcontext(decided or {}),
            fork_scheduler=SchedulerController(self.hub, SchedulerSettings()).fork,
        )
        self.controllers = [self.rebalancer]
        for name in names:
            self.put(
                resources.BINDINGS,
                claimed_binding(name=f"{name}-deployment", clusters=given(m1=3), status=DONE),
            )
        workloads = [
            {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": name}
            for name in names
        ]
        meta = {"name": "all", "uid": "r", "resourceVersion": "1", "creationTimestamp": write_time(NOW)}
        wire = {"metadata": {**meta, "generation": 1}, "spec": {"workloads": workloads}}
        self.put(resources.REBALANCERS, msgspec.convert(wire, WorkloadRebalancer))

    def schedule(self, name: str) -> None:
        """Do what the scheduler does with a trigger."""
        found = cast("ResourceBinding", self.cache.of(resources.BINDINGS.kind).named("default", name))
        done = replace(found.status, last_scheduled_time=found.spec.reschedule_triggered_at)
        self.put(resources.BINDINGS, replace(found, status=done))

    @property
    def is_finished(self) -> bool:
        found = cast("WorkloadRebalancer", self.cache.of(resources.REBALANCERS.kind).named("", "all"))
        return found.status.finish_time is not None

    def _notify(self, kind: Any, record: Any) -> None:
        self.index.on_change(self._known[kind], record)
        super()._notify(kind, record)

    @property
    def healths(self) -> list[str | None]:
        found = cast("WorkloadRebalancer", self.cache.of(resources.REBALANCERS.kind).named("", "all"))
        return [each.health for each in found.status.observed_workloads or ()]

    def statuses(self) -> int:
        return sum(name == "all" for name, *_ in self.patches)


async def running(hub: RebalancerHub) -> "asyncio.Task[None]":
    task = asyncio.create_task(hub.rebalancer.run())
    await asyncio.sleep(2)
    return task


async def stop(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait([task])


async def test_the_last_result_is_reported_at_once_and_others_are_batched() -> None:
    hub = RebalancerHub("a", "b")
    task = await running(hub)
    before = hub.statuses()
    hub.schedule("a-deployment")
    await asyncio.sleep(AT_ONCE)
    assert hub.statuses() == before
    hub.schedule("b-deployment")
    await asyncio.sleep(AT_ONCE)
    assert hub.is_finished
    assert hub.statuses() == before + 1
    await stop(task)


async def test_progress_of_a_rebalancer_is_reported_in_batches() -> None:
    hub = RebalancerHub("a", "b")
    task = await running(hub)
    before = hub.statuses()
    hub.schedule("a-deployment")
    await asyncio.sleep(GATHERED)
    assert hub.statuses() == before + 1
    assert not hub.is_finished
    await stop(task)


async def test_a_trigger_is_written_with_its_decision() -> None:
    placed = {
        "metadata": {"resourceVersion": "5", "annotations": {"noted": "yes"}},
        "spec": {"clusters": given(m2=3), "handover": {"clusters": given(m1=3), "until": "later"}},
    }
    hub = RebalancerHub("a", decided=placed)
    await stop(await running(hub))
    (patch,) = [patch for name, _, patch in hub.patches if name == "a-deployment"]
    assert patch["spec"]["clusters"] == given(m2=3)
    assert patch["spec"]["handover"] == {"timeoutSeconds": 600, "clusters": given(m1=3), "until": "later"}
    assert patch["spec"]["rescheduleTriggeredAt"] == write_time(NOW)
    assert patch["metadata"]["annotations"] == {"noted": "yes"}
    assert patch["metadata"]["resourceVersion"] != "5"


async def test_a_copy_that_was_there_before_does_not_make_a_workload_healthy() -> None:
    """It was in m2 a moment ago, and the binding still shows the copy of then."""
    hub = RebalancerHub("web")
    for name in ("m1", "m2"):
        status = {"conditions": [{"type": "Ready", "status": "True"}]}
        one = cluster(name, 99, status=status)
        hub.put(resources.CLUSTERS, replace(one, metadata=replace(one.metadata, uid=name, namespace="")))
    hub.put(resources.WORKS, copy("m1", 3))
    task = await running(hub)
    said = {"lastScheduledTime": write_time(NOW), **well(m2=3)}
    moved = claimed_binding(clusters=given(m2=3), rescheduleTriggeredAt=write_time(NOW), status=said)
    hub.put(resources.BINDINGS, moved)
    await asyncio.sleep(GATHERED)
    assert hub.healths == ["Progressing"]
    hub.put(resources.WORKS, copy("m2", 3))
    hub.put(resources.BINDINGS, moved)
    await asyncio.sleep(GATHERED)
    assert hub.healths == ["Healthy"]
    await stop(task)


@pytest.mark.parametrize(("said", "seconds"), [({}, 60), ({"handoverTimeoutSeconds": 30}, 30)])
async def test_the_policy_says_how_long_new_copies_may_take_unless_the_rebalancer_does(
    said: Object, seconds: int
) -> None:
    hub = RebalancerHub()
    failover = {"handover": {"timeoutSeconds": 60}}
    one = claimed_binding(name="a-deployment", clusters=given(m1=3), failover=failover, status=DONE)
    hub.put(resources.BINDINGS, one)
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "a"}
    meta = {"name": "all", "uid": "r", "creationTimestamp": write_time(NOW), "generation": 1}
    wanted = {"metadata": meta, "spec": {"workloads": [workload], **said}}
    hub.put(resources.REBALANCERS, msgspec.convert(wanted, WorkloadRebalancer))
    await stop(await running(hub))
    (patch,) = [patch for name, _, patch in hub.patches if name == "a-deployment"]
    assert patch["spec"]["handover"]["timeoutSeconds"] == seconds


async def test_a_dry_run_writes_its_answer_and_triggers_nothing() -> None:
    hub = RebalancerHub("a", "b")
    found = cast("WorkloadRebalancer", hub.cache.of(resources.REBALANCERS.kind).named("", "all"))
    asking = replace(found.spec, dry_run=True)
    hub.put(resources.REBALANCERS, replace(found, spec=asking))
    await hub.run(60)
    assert [(name, part) for name, part, _ in hub.patches] == [("all", "status")]
    answered = cast("WorkloadRebalancer", hub.cache.of(resources.REBALANCERS.kind).named("", "all"))
    entries = answered.status.observed_workloads or ()
    assert [each.reason for each in entries] == ["NoClusterFit", "NoClusterFit"]
    assert hub.is_finished
    assert hub.events == []


async def test_a_dry_run_lets_others_have_their_turn() -> None:
    turns, seen = 0, []

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    class Looked(RebalancerHub):
        def find(self, _: object) -> None:
            seen.append(turns)

    hub = Looked(*(f"w{number:03}" for number in range(200)))
    hub.rebalancer._lookup = SimpleNamespace(find_binding=hub.find, resolve=lambda _: ())  # type: ignore[assignment]
    found = cast("WorkloadRebalancer", hub.cache.of(resources.REBALANCERS.kind).named("", "all"))
    asking = replace(found, spec=replace(found.spec, dry_run=True))
    other = asyncio.create_task(count_turns())
    answer = await hub.rebalancer._review(asking, hub.rebalancer._limits(asking), NOW)
    other.cancel()
    assert len(answer.status.observed_workloads or ()) == len(seen) == 200
    assert len(set(seen)) == 4, "after each fifty"


async def test_a_dry_run_that_is_none_any_more_is_carried_out() -> None:
    hub = RebalancerHub("a")
    found = cast("WorkloadRebalancer", hub.cache.of(resources.REBALANCERS.kind).named("", "all"))
    asking = replace(found.spec, dry_run=True)
    hub.put(resources.REBALANCERS, replace(found, spec=asking))
    await hub.run(5)
    answered = cast("WorkloadRebalancer", hub.cache.of(resources.REBALANCERS.kind).named("", "all"))
    meta = replace(answered.metadata, generation=2)
    hub.put(resources.REBALANCERS, replace(answered, metadata=meta, spec=found.spec))
    await hub.run(5)
    assert [name for name, part, _ in hub.patches if part == "spec"] == ["a-deployment"]
