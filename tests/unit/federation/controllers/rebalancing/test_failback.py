"""Failback against a fake hub that records its writes."""

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


@pytest.mark.parametrize("placement", [DUPLICATED, weighted(m1=1, m2=1)], ids=["duplicated", "weighted"])
async def test_no_more_workloads_return_than_fit(placement: dict[str, Any]) -> None:
    """Nobody looks for room where replicas are not divided by it, so failback has to."""
    hub = FakeHub(resources.BINDINGS, resources.CLUSTERS)
    scheduler = SchedulerController(hub.hub, SchedulerSettings())
    failback = FailbackController(
        hub.hub, FailbackSettings(), scheduler.see_fleet, scheduler.decide_triggered
    )
    hub.controllers = [scheduler, failback]
    for one in (member("m1", cpu="4"), member("m2", cpu="99")):
        hub.put(resources.CLUSTERS, one)
    for name in ("a", "b", "c"):
        hub.put(resources.BINDINGS, away(name, placement))
    await hub.run(60)
    bindings: list[ResourceBinding] = list(hub.cache.of(resources.BINDINGS.kind).rows())
    home = [one for one in bindings if [each.name for each in one.spec.clusters or ()] == ["m1"]]
    assert len(home) == 1
    assert home[0].spec.handover is not None
    assert [each.name for each in home[0].spec.handover.clusters or ()] == ["m2"]
