"""The scheduler against a fake hub that records its writes."""

import asyncio
from typing import Any

import msgspec
import pytest

from federation.api import Cluster, ResourceBinding, TargetCluster
from federation.controllers.propagation.scheduler import SchedulerController, SchedulerSettings
from federation.objects import resources
from federation.objects.names import Key
from federation.objects.template import Object
from reberth.values import errors
from tests.support.federation.fake_hub import FakeHub
from tests.support.federation.objects import bare_cluster, claimed_binding, given

pytestmark = pytest.mark.looptime
KEY = Key("work.karmada.io/v1alpha2", "ResourceBinding", "default", "web-deployment")
BY_ROOM = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {"dynamicWeight": "AvailableReplicas"},
}
NEEDS: Object = {
    "placement": {"replicaScheduling": BY_ROOM},
    "replicaRequirements": {"resourceRequest": {"cpu": "1"}},
}


class SchedulerHub(FakeHub):
    def __init__(self) -> None:
        super().__init__(resources.BINDINGS, resources.CLUSTERS)
        self.scheduler = SchedulerController(self.hub, SchedulerSettings())
        self.controllers = [self.scheduler]

    def find(self, name: str = "web-deployment") -> ResourceBinding:
        found = self.cache.of(resources.BINDINGS.kind).named("default", name)
        assert found is not None
        return found

    @property
    def patched(self) -> list[tuple[str, str]]:
        return [(name, part) for name, part, _ in self.patches]

    @property
    def scheduled(self) -> tuple[str, str]:
        (condition,) = self.find().status.conditions or ()
        return condition.status, condition.reason or ""


def member(name: str = "m1", *, cpu: str = "2", **more: Any) -> Cluster:
    apis = [{"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]}]
    room = {"allocatable": {"cpu": cpu, "pods": "100"}}
    made = bare_cluster(name, status={"apiEnablements": apis, "resourceSummary": room}, **more)
    return msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, namespace=""))


def tainted(name: str = "m1") -> Cluster:
    return member(name, cpu="9", spec={"taints": [{"key": "off", "effect": "NoSchedule"}]})


async def test_a_binding_gets_its_clusters_and_then_its_status() -> None:
    hub = SchedulerHub()
    hub.put(resources.CLUSTERS, member(cpu="9"))
    hub.put(resources.BINDINGS, claimed_binding(**NEEDS))
    await hub.run()
    assert hub.patched == [("web-deployment", "spec"), ("web-deployment", "status")]
    assert hub.scheduled == ("True", "Success")
    note = "Binding has been scheduled successfully. Result: {m1:3}"
    assert hub.events == [("ScheduleBindingSucceed", note)] * 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(member(cpu="2"), member(cpu="9"), id="room is freed"),
        pytest.param(tainted(), member(cpu="9"), id="the cluster recovers"),
        pytest.param(
            msgspec.structs.replace(member(cpu="9"), status=bare_cluster().status),
            member(cpu="9"),
            id="it serves",
        ),
    ],
)
async def test_an_unschedulable_binding_is_retried_after_a_helpful_cluster_change(
    before: Cluster, after: Cluster
) -> None:
    hub = SchedulerHub()
    hub.put(resources.CLUSTERS, before)
    hub.put(resources.BINDINGS, claimed_binding(**NEEDS))
    await hub.run()
    assert hub.scheduled[0] == "False"
    assert hub.events[0][0] == "ScheduleBindingFailed"
    hub.put(resources.CLUSTERS, after)
    await hub.run(0.01)
    assert hub.scheduled == ("True", "Success")


async def test_an_eviction_that_begins_with_a_decision_is_told() -> None:
    """Of a workload whose policy names another member while its own is being deleted."""
    hub = SchedulerHub()
    leaving = member("m1", cpu="9")
    meta = msgspec.structs.replace(leaving.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    hub.put(resources.CLUSTERS, msgspec.structs.replace(leaving, metadata=meta))
    hub.put(resources.CLUSTERS, member("m2", cpu="9"))
    elsewhere = {"placement": {"clusterAffinity": {"clusterNames": ["m2"]}}}
    hub.put(resources.BINDINGS, claimed_binding(clusters=given(m1=3), **elsewhere))
    await hub.run()
    assert [each.from_cluster for each in hub.find().spec.graceful_eviction_tasks or ()] == ["m1"]
    note = "Evict from cluster m1 started: the cluster is being deleted."
    assert hub.events.count(("EvictWorkloadFromClusterStarted", note)) == 2


async def test_a_label_that_changes_wakes_all_bindings() -> None:
    hub = SchedulerHub()
    wanted = {"placement": {"clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "gold"}}}}}
    hub.put(resources.CLUSTERS, member(cpu="9"))
    hub.put(resources.BINDINGS, claimed_binding(**wanted))
    await hub.run()
    assert hub.scheduled == ("False", "NoClusterFit")
    gold = member(cpu="9")
    meta = msgspec.structs.replace(gold.metadata, labels={"tier": "gold"})
    hub.put(resources.CLUSTERS, msgspec.structs.replace(gold, metadata=meta))
    await hub.run(0.01)
    assert hub.scheduled == ("True", "Success")


async def test_room_that_was_given_away_is_not_given_again() -> None:
    hub = SchedulerHub()
    hub.put(resources.CLUSTERS, member(cpu="4"))
    hub.put(resources.BINDINGS, claimed_binding(**NEEDS))
    hub.put(resources.BINDINGS, claimed_binding(name="other", **NEEDS))
    await hub.run()
    (failed,) = [one for one in ("web-deployment", "other") if not hub.find(one).spec.clusters]
    assert (hub.find(failed).status.conditions or ())[0].reason == "Unschedulable"


async def test_room_that_another_process_has_given_away_is_held() -> None:
    hub = SchedulerHub()
    hub.put(resources.CLUSTERS, member(cpu="4"))
    hub.put(resources.BINDINGS, claimed_binding(name="theirs", clusters=given(m1=3), **NEEDS))
    hub.put(resources.BINDINGS, claimed_binding(**NEEDS))
    await hub.run()
    assert hub.scheduled == ("False", "Unschedulable")


@pytest.mark.parametrize("error", [errors.Conflict, errors.Unanswered])
async def test_a_binding_is_not_refused_by_its_own_reservation(error: type[errors.ApiError]) -> None:
    hub = SchedulerHub()
    hub.refuse.append(error("patch", "try again"))
    hub.put(resources.CLUSTERS, member(cpu="3"))
    hub.put(resources.BINDINGS, claimed_binding(**NEEDS))
    await hub.run()
    assert hub.scheduled == ("True", "Success")
    assert hub.patched.count(("web-deployment", "status")) == 1, "it was never reported as unschedulable"


async def test_bindings_that_wait_are_not_written_each_time_the_room_changes() -> None:
    hub = SchedulerHub()
    hub.put(resources.CLUSTERS, member(cpu="1"))
    for number in range(50):
        hub.put(resources.BINDINGS, claimed_binding(name=f"b{number}", **NEEDS))
    await hub.run(3)
    assert len(hub.patches) == 50
    assert len(hub.events) == 100
    hub.patches.clear()
    hub.events.clear()
    running = asyncio.create_task(hub.run(101))
    for second in range(100):
        hub.put(resources.CLUSTERS, member(cpu=str(1 + second % 2)))
        await asyncio.sleep(1)
    await running
    assert hub.patches == []
    assert 10 <= len(hub.events) <= 100, (
        "of all waiting bindings one a second or less, for it and its template"
    )
    assert (
        "ScheduleBindingFailed",
        "Clusters available replicas 2 are not enough to schedule.",
    ) in hub.events
    hub.put(resources.CLUSTERS, member(cpu="3"))
    await hub.run(1)
    assert [status for name, part, status in hub.patches if part == "spec"], "one of them fits"


async def test_an_unreadable_binding_gets_scheduler_error_and_keeps_its_clusters() -> None:
    hub = SchedulerHub()
    hub.put(resources.CLUSTERS, member(cpu="9"))
    odd = {**NEEDS, "replicaRequirements": {"resourceRequest": {"cpu": "much"}}}
    hub.put(resources.BINDINGS, claimed_binding(clusters=given(m1=3), **odd))
    await hub.run()
    assert hub.scheduled == ("False", "SchedulerError")
    assert hub.find().spec.clusters
    assert "resourceRequest" in hub.events[0][1]


async def test_a_binding_is_made_with_its_clusters() -> None:
    hub = SchedulerHub()
    hub.put(resources.CLUSTERS, member(cpu="4"))
    new: Object = msgspec.to_builtins(claimed_binding(**NEEDS))
    wanted = {
        "metadata": {"name": "web-deployment", "labels": new["metadata"]["labels"], "annotations": {}},
        "spec": new["spec"],
    }
    placed = hub.scheduler.place_new(KEY, wanted)
    assert placed["spec"]["clusters"] == given(m1=3)
    assert "namespace" not in placed["metadata"]
    again = hub.scheduler.place_new(
        KEY, wanted
    )  # the first one was not made: it is as if it had not been asked
    assert again["spec"]["clusters"] == given(m1=3)
    other = hub.scheduler.place_new(KEY._replace(name="other"), wanted)
    assert "clusters" not in other["spec"]

    made = msgspec.convert({**new, "metadata": {**new["metadata"], **placed["metadata"]}}, ResourceBinding)
    spec = msgspec.convert(placed["spec"], type(made.spec))
    hub.put(resources.BINDINGS, msgspec.structs.replace(made, spec=spec))
    await hub.run()
    assert hub.patched == [("web-deployment", "status")]
    assert hub.scheduled == ("True", "Success")
    assert len(hub.events) == 2


async def test_a_trigger_is_written_with_its_new_clusters() -> None:
    hub = SchedulerHub()
    hub.put(resources.CLUSTERS, member("m1", cpu="1"))
    hub.put(resources.CLUSTERS, member("m2", cpu="9"))
    done = {"lastScheduledTime": "2026-11-18T12:00:01Z"}
    triggered = claimed_binding(
        clusters=given(m1=3), rescheduleTriggeredAt="2026-11-18T12:00:02Z", status=done, **NEEDS
    )
    with hub.scheduler.decide_triggered(KEY, triggered) as decided:
        assert {each["name"] for each in decided["spec"]["clusters"]} == {"m1", "m2"}
    suspended = claimed_binding(
        **{**msgspec.to_builtins(triggered.spec), "suspension": {"scheduling": True}}, status=done
    )
    with hub.scheduler.decide_triggered(KEY, suspended) as nothing:
        assert nothing == {}
    foreign = msgspec.structs.replace(
        triggered, metadata=msgspec.structs.replace(triggered.metadata, labels={})
    )
    with hub.scheduler.decide_triggered(KEY, foreign) as nothing:
        assert nothing == {}

    annotations = decided["metadata"]["annotations"]
    meta = msgspec.structs.replace(triggered.metadata, annotations=annotations)
    spec = msgspec.structs.replace(
        triggered.spec, clusters=msgspec.convert(decided["spec"]["clusters"], tuple[TargetCluster, ...])
    )
    hub.put(resources.BINDINGS, msgspec.structs.replace(triggered, metadata=meta, spec=spec))
    await hub.run()
    assert hub.patched == [("web-deployment", "status")]
    assert (hub.find().status.last_scheduled_time or "") >= "2026-11-18T12:00:02Z"


async def test_a_divided_binding_is_rescheduled_when_a_new_member_reports_its_apis() -> None:
    hub = SchedulerHub()
    hub.put(resources.CLUSTERS, member("m1", cpu="9"))
    hub.put(resources.CLUSTERS, msgspec.structs.replace(member("m2"), status=bare_cluster().status))
    hub.put(resources.BINDINGS, claimed_binding(**NEEDS))
    await hub.run()
    assert [each.name for each in hub.find().spec.clusters or ()] == ["m1"]
    hub.put(resources.CLUSTERS, member("m2", cpu="9"))
    await hub.run()
    assert [each.name for each in hub.find().spec.clusters or ()] == ["m1", "m2"]
    assert len(hub.patched) == 4
