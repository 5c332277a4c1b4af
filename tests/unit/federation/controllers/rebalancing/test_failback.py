"""Failback against a fake hub that records its writes."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from federation.api import Cluster, ResourceBinding
from federation.controllers.propagation.scheduler import SchedulerController, SchedulerSettings
from federation.controllers.rebalancing.failback import FailbackController, FailbackSettings
from federation.objects import resources
from reberth.values.timestamp import write_time
from tests.support.federation.clusters import DUPLICATED, cluster, groups, weighted
from tests.support.federation.fake_hub import FakeHub
from tests.support.federation.objects import NOW, claimed_binding, given

pytestmark = pytest.mark.looptime
GROUPS = groups(primary=["m1"], backup=["m2"])


def member(name: str, *, cpu: str) -> Cluster:
    room = {"resourceSummary": {"allocatable": {"cpu": cpu, "pods": "100"}}}
    one = cluster(name, status=room)
    return replace(one, metadata=replace(one.metadata, uid=name))


def away(name: str, placement: dict[str, Any]) -> ResourceBinding:
    status = {
        "schedulerObservingAffinityName": "backup",
        "lastScheduledTime": write_time(NOW - 60),
        "failback": {"affinityName": "primary", "since": write_time(NOW - 900)},
    }
    return claimed_binding(
        name=name,
        placement={**GROUPS, **placement},
        clusters=given(m2=3),
        replicaRequirements={"resourceRequest": {"cpu": "1"}},
        failover={"failback": {"stabilizationSeconds": 60}},
        status=status,
    )


class ReturningHub(FakeHub):
    """The scheduler and failback; m1 has so much room."""

    def __init__(self, *, cpu: str, at_once: int = 10) -> None:
        super().__init__(resources.BINDINGS, resources.CLUSTERS)
        scheduler = SchedulerController(self.hub, SchedulerSettings())
        settings = FailbackSettings(at_once=at_once)
        see, decide = scheduler.see_fleet, scheduler.decide_triggered
        self.controllers = [scheduler, FailbackController(self.hub, settings, see, decide)]
        for one in (member("m1", cpu=cpu), member("m2", cpu="99")):
            self.put(resources.CLUSTERS, one)

    @property
    def home(self) -> list[ResourceBinding]:
        bindings: list[ResourceBinding] = list(self.cache.of(resources.BINDINGS.kind).rows())
        return [one for one in bindings if [each.name for each in one.spec.clusters or ()] == ["m1"]]


@pytest.mark.parametrize("placement", [DUPLICATED, weighted(m1=1, m2=1)], ids=["duplicated", "weighted"])
async def test_no_more_workloads_return_than_fit(placement: dict[str, Any]) -> None:
    """Nobody looks for room where replicas are not divided by it, so failback has to."""
    hub = ReturningHub(cpu="4")
    for name in ("a", "b", "c"):
        hub.put(resources.BINDINGS, away(name, placement))
    await hub.run(60)
    (home,) = hub.home
    assert home.spec.handover is not None
    assert [each.name for each in home.spec.handover.clusters or ()] == ["m2"]


async def test_workloads_that_stay_in_both_places_do_not_keep_others_from_returning() -> None:
    """Nothing gets ready in m1, and nobody ends a handover here."""
    hub = ReturningHub(cpu="99", at_once=1)
    for name in ("a", "b"):
        hub.put(resources.BINDINGS, away(name, DUPLICATED))
    running = asyncio.create_task(hub.run(700))
    await asyncio.sleep(500)
    assert len(hub.home) == 1
    await running
    assert len(hub.home) == 2


async def test_only_workloads_under_way_are_counted_whatever_number_wants_to_return() -> None:
    hub = ReturningHub(cpu="1000", at_once=2)
    for number in range(40):
        hub.put(resources.BINDINGS, away(f"w{number}", DUPLICATED))
    await hub.run(3)
    failback = hub.controllers[1]
    assert isinstance(failback, FailbackController)
    assert len(failback._wanting) == 40
    assert 1 <= len(failback._returning) <= 2
