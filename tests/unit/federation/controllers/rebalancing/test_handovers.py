"""Handovers against a fake hub that records its writes."""

import asyncio
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from federation.api import APPLIED_PLACEMENT, Cluster, Placement, ResourceBinding
from federation.controllers.propagation.scheduler import SchedulerController, SchedulerSettings
from federation.controllers.rebalancing.handovers import HandoversController, HandoverSettings
from federation.hub.work_index import WorkIndex
from federation.objects import resources
from federation.propagation.schedule_result import write_placement
from federation.rebalancing.handover import kept_replicas
from reberth.values.timestamp import write_time
from tests.support.federation.clusters import AGGREGATED, DUPLICATED, binding, cluster, groups
from tests.support.federation.fake_hub import FakeHub
from tests.support.federation.objects import NOW, meta
from tests.support.federation.rebalancers import well

pytestmark = pytest.mark.looptime
GROUPS = {**groups(primary=["m1"], backup=["m2"])}


class HandoverHub(FakeHub):
    """The scheduler and the controller of handovers; m1 and m2 are there."""

    def __init__(self) -> None:
        super().__init__(resources.BINDINGS, resources.CLUSTERS)
        index = WorkIndex(self.hub)
        scheduler = SchedulerController(self.hub, SchedulerSettings())
        self.controllers = [scheduler, HandoversController(self.hub, index, HandoverSettings())]
        for one in (member("m1"), member("m2")):
            self.put(resources.CLUSTERS, one)

    @property
    def binding(self) -> ResourceBinding:
        found = self.cache.of(resources.BINDINGS.kind).named("default", "web-deployment")
        assert found is not None
        return found

    @property
    def targets(self) -> dict[str, int]:
        return {each.name: each.replicas for each in self.binding.spec.clusters or ()}


def member(name: str, *, ready: bool = True, **more: Any) -> Cluster:
    status = {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
    one = cluster(name, 99, status=status, **more)
    return replace(one, metadata=replace(one.metadata, uid=name))


def asked_to_go_home(placement: dict[str, Any], *, healthy: int = 3, **more: Any) -> ResourceBinding:
    """In m2, with a rebalance into m1 where nothing ever gets ready."""
    status = {
        **well(m2=healthy, m1=0),
        "schedulerObservingAffinityName": "backup",
        "lastScheduledTime": write_time(NOW - 60),
    }
    labels = {"propagationpolicy.karmada.io/permanent-id": "p"}
    one = binding(
        3,
        placement,
        at={"m2": 3},
        metadata=meta("web-deployment", generation=2, labels=labels),
        resource={"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"},
        rescheduleTriggeredAt=write_time(NOW),
        handover={"timeoutSeconds": 30},
        status=status,
        **more,
    )
    annotations = {APPLIED_PLACEMENT: write_placement(one)}
    return replace(one, metadata=replace(one.metadata, annotations=annotations))


@pytest.mark.parametrize("division", [DUPLICATED, AGGREGATED], ids=["duplicated", "divided"])
async def test_a_workload_returns_and_stays_when_its_new_copies_do_not_get_ready(
    division: dict[str, Any],
) -> None:
    hub = HandoverHub()
    hub.put(resources.BINDINGS, asked_to_go_home({**GROUPS, **division}))
    running = asyncio.create_task(hub.run(200))
    await asyncio.sleep(20)
    said = hub.binding.spec.handover
    assert hub.targets == {"m1": 3}
    assert said is not None
    assert said.clusters == said.origin
    assert hub.binding.status.observed_affinity == "primary"
    await running
    assert hub.targets == {"m2": 3}
    assert hub.binding.status.observed_affinity == "backup"
    said = hub.binding.spec.handover
    assert said is not None
    assert (said.clusters, said.returns) == (None, 1)
    assert [reason for reason, _ in hub.events].count("HandoverTimedOut") == 2
    (note,) = {note for reason, note in hub.events if reason == "HandoverTimedOut"}
    assert note == "The new copies were not ready in time; the workload returns to {m2:3}."


async def test_a_policy_may_let_go() -> None:
    hub = HandoverHub()
    failover = {"handover": {"onTimeout": "LetGo"}}
    hub.put(resources.BINDINGS, asked_to_go_home({**GROUPS, **AGGREGATED}, failover=failover))
    await hub.run(200)
    assert hub.targets == {"m1": 3}
    assert hub.binding.spec.handover is not None
    assert not hub.binding.spec.handover.clusters


async def test_old_copies_that_cannot_return_stay_and_that_is_told_once() -> None:
    hub = HandoverHub()
    hub.put(resources.BINDINGS, asked_to_go_home({**GROUPS, **AGGREGATED}, healthy=2))
    await hub.run(200)
    assert hub.targets == {"m1": 3}
    said = hub.binding.spec.handover
    assert said is not None
    assert [each.name for each in said.clusters or ()] == ["m2"]
    assert [reason for reason, _ in hub.events].count("HandoverTimedOut") == 2


async def test_a_policy_that_names_another_cluster_takes_no_copy_away_before_the_new_one_is_ready() -> None:
    hub = HandoverHub()
    one = asked_to_go_home(only("m2"))
    asked = replace(one.spec, reschedule_triggered_at=None, handover=None)
    hub.put(resources.BINDINGS, replace(one, spec=asked))
    running = asyncio.create_task(hub.run(1000))
    await asyncio.sleep(5)
    moved = replace(hub.binding.spec, placement=msgspec.convert(only("m1"), Placement))
    hub.put(resources.BINDINGS, replace(hub.binding, spec=moved))
    await asyncio.sleep(900)
    assert hub.targets == {"m1": 3}
    assert kept_replicas(hub.binding) == {"m2": 3}
    assert [reason for reason, _ in hub.events].count("HandoverTimedOut") == 2
    ready = binding(3, status=well(m2=3, m1=3)).status.aggregated_status
    status = replace(hub.binding.status, aggregated_status=ready)
    hub.put(resources.BINDINGS, replace(hub.binding, status=status))
    await running
    assert not kept_replicas(hub.binding)


def only(name: str) -> dict[str, Any]:
    return {"clusterAffinity": {"clusterNames": [name]}}


async def test_the_last_word_of_a_member_that_is_not_ready_does_not_count() -> None:
    hub = HandoverHub()
    hub.put(resources.CLUSTERS, member("m1", ready=False))
    one = asked_to_go_home({**GROUPS, **AGGREGATED})
    ready = binding(3, status=well(m2=3, m1=3)).status.aggregated_status
    hub.put(resources.BINDINGS, replace(one, status=replace(one.status, aggregated_status=ready)))
    running = asyncio.create_task(hub.run(25))
    await asyncio.sleep(20)
    assert kept_replicas(hub.binding) == {"m2": 3}
    hub.put(resources.CLUSTERS, member("m1"))
    await running
    assert not kept_replicas(hub.binding)
    assert hub.targets == {"m1": 3}


async def test_old_copies_stay_beside_new_ones_that_are_ready_for_moments() -> None:
    """As a crash loop is, at each start."""
    hub = HandoverHub()
    hub.put(resources.BINDINGS, asked_to_go_home({**GROUPS, **AGGREGATED}))
    running = asyncio.create_task(hub.run(60))
    for _ in range(4):
        await asyncio.sleep(3)
        report(hub, m2=3, m1=3)
        await asyncio.sleep(2)
        report(hub, m2=3, m1=0)
    await asyncio.sleep(1)
    report(hub, m2=3, m1=3)
    await asyncio.sleep(2)
    assert kept_replicas(hub.binding) == {"m2": 3}
    await running
    assert (kept_replicas(hub.binding), hub.targets) == ({}, {"m1": 3})


def report(hub: HandoverHub, **ready: int) -> None:
    copies = binding(3, status=well(**ready)).status.aggregated_status
    hub.put(
        resources.BINDINGS,
        replace(hub.binding, status=replace(hub.binding.status, aggregated_status=copies)),
    )
