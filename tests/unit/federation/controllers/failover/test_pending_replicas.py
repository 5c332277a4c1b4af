"""Pods without a node in a member: what their Work tells, and where their replicas go, with a fake hub."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from federation.controllers.failover.pending_replicas import (
    PendingReplicasController,
    PendingReplicasSettings,
)
from federation.hub.call_priority import URGENCY, Urgency
from federation.hub.sessions import Sessions
from federation.objects import resources
from federation.objects.cache import NotifyingCache
from federation.objects.conditions import find_condition
from federation.objects.names import WORK_NAME, WORK_NAMESPACE
from federation.objects.resources import HeldWork
from federation.propagation.schedule_result import write_placement
from federation.propagation.works import write_work
from reberth.cluster.kinds import NODE, POD, Resource
from reberth.cluster.tables import meta_of
from reberth.records import Condition, Node, Pod
from reberth.values.duration import Duration, PositiveDuration
from reberth.values.errors import Conflict, Forbidden
from reberth.values.object_error import ObjectError
from tests.support import builders
from tests.support.federation.clusters import DYNAMIC
from tests.support.federation.failing import FailingHub, member
from tests.support.federation.objects import WEB, as_template, claimed_binding, given, template, work
from tests.support.metrics import read_metric

pytestmark = pytest.mark.looptime
SETTINGS = PendingReplicasSettings(longer_than=Duration(60), look_every=PositiveDuration(10))
DEPLOYMENTS = resources.TEMPLATES[0]
NO_NODE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


FULL = "no node of the cluster is available: 1 Too many pods."
RS = builders.owner("ReplicaSet", "web-5d9c")


def full_node() -> Any:
    built = builders.node("n1", pods=0)
    built["metadata"] |= {"uid": "n1", "resourceVersion": "5"}
    return built


class Member:
    """The caches of a member with a node that has no room for pods."""

    def __init__(self, work: Any) -> None:
        self.cache = NotifyingCache(lambda *_: None, version=(1, 36))
        self.version = 10
        self.cache.replace(DEPLOYMENTS.kind, [], "9")
        self.copy(work)
        self.cache.replace(NODE, [builders.as_record(Node, full_node())], "9")
        self.cache.replace(POD, [], "9")

    def copy(self, work: Any, name: str = "web", *, status: Any = None) -> None:
        """Have a Deployment that says it is the copy of a Work."""
        self.version += 1
        annotations = {WORK_NAMESPACE: work.metadata.namespace, WORK_NAME: work.metadata.name}
        metadata = {
            "name": name,
            "namespace": "default",
            "uid": name,
            "resourceVersion": str(self.version),
            "annotations": annotations,
        }
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}
        spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "strategy": strategy}
        wire = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
        wire |= {"status": status or {}}
        self.cache.apply(DEPLOYMENTS.kind, "MODIFIED", as_template(wire))

    def find(self, resource: Any, namespace: str, name: str) -> Any:
        return self.cache.of(resource.kind).named(namespace, name)

    def have(self, name: str, event: str = "MODIFIED", **more: Any) -> None:
        self.version += 1
        status = {"conditions": [NO_NODE]}
        said = {"labels": {"app": "web"}, "owned_by": RS, "uid": name, "status": status, **more}
        built = builders.pod(name, **said)
        built["metadata"]["resourceVersion"] = str(self.version)
        self.cache.apply(POD, event, builders.as_record(Pod, built))


class PendingHub(FailingHub):
    """A workload with three replicas in m1; m2 has room."""

    def __init__(self, *members: Any, settings: PendingReplicasSettings = SETTINGS, **more: Any) -> None:
        self.jump = 0.0
        super().__init__(*members or (member("m1"), member("m2")))
        self.pending_settings = settings
        self.refusal: tuple[str, Exception] | None = None
        self.refused = 0
        self.write_takes = 0.0
        self.urgencies: list[tuple[Resource[Any], Urgency]] = []
        spec = {"placement": DYNAMIC, "clusters": given(m1=3), **more}
        self.put(resources.BINDINGS, replace_annotations(claimed_binding(**spec)))
        self.report("m1", 2)
        self.member = Member(self.find_work("m1"))
        self.restart()

    def restart(self, *, answers: bool = True) -> None:
        """Work as another process, which has seen no pod yet."""
        self.start()
        scheduler = next(each for each in self.controllers if hasattr(each, "placing"))
        sessions = SimpleNamespace(get=self._get, is_usable=lambda name: answers and name == "m1")
        controller = PendingReplicasController(
            self.hub, self._index, cast("Sessions", sessions), scheduler.placing, self.pending_settings
        )
        self.controllers = [scheduler, controller]
        known: tuple[Resource[Any], ...] = (resources.CLUSTERS, resources.WORKS, resources.BINDINGS)
        for resource in known:
            for record in self.cache.of(resource.kind).rows():
                controller.on_change(resource, record)

    def _get(self, name: str) -> Any:
        return self.member if name == "m1" else None

    @property
    def told(self) -> Condition | None:
        return find_condition(self.find_work("m1").status.conditions, "Unschedulable")

    def have_another(self) -> None:
        """Have a copy of another workload in m1, with a pod that has no node."""
        one = claimed_binding(name="api-deployment")
        made = work(write_work(WEB._replace(name="api"), one, template("api"), "m1", 3))
        self.put(resources.WORKS, made)
        self.member.copy(made, "api")
        self.member.have("api-1", owned_by=builders.owner("ReplicaSet", "api-5d9c"))

    def refuse_all(self, prefix: str, error: Exception) -> None:
        self.refusal = prefix, error

    async def merge(self, resource: Resource[Any], name: str, patch: Any, **more: Any) -> Any:
        if self.refusal and name.startswith(self.refusal[0]):
            self.refused += 1
            raise self.refusal[1]
        self.urgencies.append((resource, URGENCY.get()))
        await asyncio.sleep(self.write_takes)
        return await super().merge(resource, name, patch, **more)

    def _clock(self) -> float:
        return super()._clock() + self.jump

    def find_work(self, cluster: str) -> HeldWork:
        found = self._find_work(cluster, "web")
        assert found is not None
        return found


def replace_annotations(one: Any) -> Any:
    """As one that is scheduled."""
    applied = write_placement(one)
    note = {"policy.karmada.io/applied-placement": applied}
    return replace(one, metadata=replace(one.metadata, annotations=note))


async def test_a_replica_without_a_node_goes_elsewhere_when_it_has_waited_for_long() -> None:
    hub, before = PendingHub(), read_metric("reberth_federation_pending_replicas_given_total")
    hub.member.have("web-1", node="n1")
    hub.member.have("web-2")
    await hub.live(15)
    assert hub.told is not None
    assert (hub.told.status, hub.told.reason) == ("True", "Waiting")
    assert (
        hub.told.message
        == "1 of its pods have no node: no node of the cluster is available: 1 Too many pods."
    )
    await hub.live(40)
    assert hub.clusters() == {"m1": 3}
    await hub.live(16)
    assert hub.clusters() == {"m1": 2, "m2": 1}
    assert hub.told.reason == "Stuck"
    note = f"Replicas without a node go to other clusters: 1 of m1: {FULL}"
    assert ("PendingReplicasGiven", note) in hub.events
    assert read_metric("reberth_federation_pending_replicas_given_total") - before == 1
    hub.member.have("web-2", "DELETED")
    hub.report("m1", 2, of=2)
    await hub.live(11)
    assert (hub.told.status, hub.told.reason) == ("False", "Scheduled")
    assert read_metric("reberth_federation_pending_replicas") == 0


async def test_a_pod_without_a_node_gives_one_replica_away_though_another_is_not_available() -> None:
    hub = PendingHub()
    hub.report("m1", 1)
    hub.member.have("web-1", node="n1")
    hub.member.have("web-2", node="n1")
    hub.member.have("web-3")
    await hub.live(100)
    assert hub.clusters() == {"m1": 2, "m2": 1}
    hub.member.have("web-3", "DELETED")
    await hub.live(100)
    assert hub.clusters() == {"m1": 2, "m2": 1}


async def test_a_pod_that_waits_on_after_a_gift_is_given_when_it_has_waited_anew() -> None:
    hub = PendingHub(member("m1"), member("m2", 1))
    hub.report("m1", 1)
    for name in ("web-2", "web-3"):
        hub.member.have(name)
    await hub.live(75)
    assert hub.clusters() == {"m1": 2, "m2": 1}
    hub.member.have("web-3", "DELETED")
    hub.put(resources.CLUSTERS, member("m2", 9))
    await hub.live(100)
    assert hub.clusters() == {"m1": 1, "m2": 2}


async def test_pods_that_get_a_node_in_time_tell_it_and_move_nothing() -> None:
    hub = PendingHub()
    hub.member.have("web-1")
    await hub.live(25)
    hub.member.have("web-1", node="n1", status={"conditions": []})
    await hub.live(90)
    assert hub.clusters() == {"m1": 3}
    assert hub.told is not None
    assert hub.told.reason == "Scheduled"


@pytest.mark.parametrize(
    "odd",
    [
        {"owned_by": builders.owner("ReplicaSet", "other-5d9c")},
        {"owned_by": builders.owner("StatefulSet", "web")},
        {"owned_by": None},
        {"labels": {"app": "other"}},
        {"status": {"conditions": [NO_NODE | {"reason": "SchedulingGated"}]}},
        {"deleted": "2027-01-15T07:59:00Z"},
    ],
)
async def test_pods_that_are_not_of_the_copy_or_want_no_node_do_not_count(odd: Any) -> None:
    hub = PendingHub()
    hub.member.have("web-1", **odd)
    await hub.live(90)
    assert hub.told is None
    assert hub.clusters() == {"m1": 3}


async def test_a_deployment_that_says_it_is_the_copy_of_another_member_takes_nothing_from_it() -> None:
    hub = PendingHub(clusters=given(m1=1, m2=2))
    hub.report("m2", 0)
    hub.member.copy(hub.find_work("m2"))
    hub.member.have("web-1")
    await hub.live(90)
    assert hub.clusters() == {"m1": 1, "m2": 2}
    assert find_condition(hub.find_work("m2").status.conditions, "Unschedulable") is None


async def test_a_deployment_that_is_not_in_the_work_that_it_names_does_not_count() -> None:
    hub = PendingHub()
    hub.member.copy(hub.find_work("m1"), "fake")
    hub.member.have("fake-1", owned_by=builders.owner("ReplicaSet", "fake-5d9c"))
    await hub.live(90)
    assert hub.told is None
    assert hub.clusters() == {"m1": 3}


async def test_pods_that_have_waited_for_long_are_stuck_only_when_no_rollout_is_under_way() -> None:
    hub = PendingHub()
    going_on = {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"}
    hub.member.copy(hub.find_work("m1"), status={"availableReplicas": 2, "conditions": [going_on]})
    hub.member.have("web-1")
    await hub.live(120)
    assert hub.told is not None
    assert hub.told.reason == "Waiting"
    assert hub.clusters() == {"m1": 3}
    failed = going_on | {"status": "False", "reason": "ProgressDeadlineExceeded"}
    hub.member.copy(hub.find_work("m1"), status={"availableReplicas": 2, "conditions": [failed]})
    await hub.live(15)
    assert hub.told.reason == "Stuck"
    assert hub.clusters() == {"m1": 2, "m2": 1}


async def test_a_pod_that_takes_the_place_of_one_that_was_stuck_begins_anew() -> None:
    hub = PendingHub(member("m1"), member("m2", 0))
    hub.member.have("web-1")
    await hub.live(75)
    assert hub.told is not None
    assert hub.told.reason == "Stuck"
    hub.member.have("web-1", "DELETED")
    hub.member.have("web-2")
    await hub.live(11)
    assert hub.told.reason == "Waiting"
    hub.put(resources.CLUSTERS, member("m2", 9))
    await hub.live(45)
    assert hub.clusters() == {"m1": 3}
    await hub.live(40)
    assert hub.clusters() == {"m1": 2, "m2": 1}


async def test_a_pod_is_not_told_at_the_first_look_however_long_it_takes() -> None:
    hub = PendingHub()
    hub.have_another()
    hub.write_takes = 2
    await hub.live(9)
    hub.member.have("web-1")
    await hub.live(8)
    assert [name for name, *_ in hub.patches if name.startswith("api-")], "which took its time"
    assert hub.told is None
    await hub.live(10)
    assert hub.told is not None


async def test_gifts_are_as_urgent_as_scheduling_and_what_is_told_as_other_reports() -> None:
    hub = PendingHub()
    hub.member.have("web-1")
    await hub.live(80)
    assert hub.clusters() == {"m1": 2, "m2": 1}
    reports, gifts = (resources.WORKS, Urgency.REPORTING), (resources.BINDINGS, Urgency.SCHEDULING)
    assert set(hub.urgencies) == {reports, gifts}


async def test_a_clock_that_is_put_right_makes_no_pod_older() -> None:
    hub = PendingHub()
    hub.member.have("web-1")
    await hub.live(25)
    hub.jump = 3600
    await hub.live(30)
    assert hub.told is not None
    assert hub.told.reason == "Waiting"
    hub.jump = -3600
    await hub.live(20)
    assert hub.told.reason == "Stuck"
    assert hub.clusters() == {"m1": 2, "m2": 1}


async def test_without_room_elsewhere_it_is_told_once_and_looked_at_again() -> None:
    hub = PendingHub(member("m1"), member("m2", 0))
    hub.member.have("web-1")
    await hub.live(140)
    binding, template = [note for reason, note in hub.events if reason == "PendingReplicasHeld"]
    assert binding == template
    assert binding == "Replicas without a node (m1:1) stay: no other cluster has room for them."
    hub.put(resources.CLUSTERS, member("m2", 9))
    await hub.live(31)
    assert hub.clusters() == {"m1": 2, "m2": 1}


async def test_what_was_stuck_is_so_for_the_next_process_too() -> None:
    hub = PendingHub(member("m1"), member("m2", 0))
    hub.member.have("web-1")
    await hub.live(80)
    hub.restart()
    hub.put(resources.CLUSTERS, member("m2", 9))
    await hub.live(1)
    assert hub.clusters() == {"m1": 2, "m2": 1}


async def test_what_was_told_before_nobody_looked_any_more_gives_nothing_away() -> None:
    hub = PendingHub(member("m1"), member("m2", 0))
    hub.member.have("web-1")
    await hub.live(80)
    assert hub.told is not None
    assert hub.told.reason == "Stuck"
    hub.restart(answers=False)
    await hub.live(1)
    hub.member.have("web-1", "DELETED")
    hub.put(resources.CLUSTERS, member("m2", 9))
    await hub.live(100)
    assert hub.told.reason == "Stuck"
    assert hub.clusters() == {"m1": 3}
    hub.restart()
    await hub.live(100)
    assert hub.told.reason == "Scheduled"
    assert hub.clusters() == {"m1": 3}


async def test_a_write_that_meets_another_one_is_decided_again() -> None:
    hub = PendingHub()
    hub.member.have("web-1")
    await hub.live(55)
    hub.refuse = [Conflict("patch", "somebody wrote"), Conflict("patch", "somebody wrote")]
    await hub.live(30)
    assert hub.clusters() == {"m1": 2, "m2": 1}


@pytest.mark.parametrize(
    "error",
    [
        Forbidden("patch", "not yours"),
        Conflict("patch", "somebody wrote"),
        ObjectError("Work", meta_of(template("api")), field="spec", reason="is odd"),
        KeyError("odd"),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_one_copy_that_cannot_be_told_keeps_no_other_from_it(
    error: Exception, faults: list[str]
) -> None:
    hub = PendingHub()
    hub.have_another()
    hub.member.have("web-1")
    hub.refuse_all("api-", error)
    await hub.live(25)
    assert hub.told is not None
    await hub.live(60)
    assert hub.clusters() == {"m1": 2, "m2": 1}
    assert 8 <= hub.refused <= 16, "each look tries it again, and before that with pauses that double"
    assert len(faults) == (hub.refused if isinstance(error, KeyError) else 0)
    faults.clear()


async def test_works_that_are_gone_are_forgotten() -> None:
    hub = PendingHub()
    hub.have_another()
    await hub.live(90)
    controller = hub.controllers[1]
    assert isinstance(controller, PendingReplicasController)
    other = next(each for each in hub.cache.of(resources.WORKS.kind).rows() if "api" in each.metadata.name)
    place = other.metadata.namespace, other.metadata.name
    assert place in controller._members["m1"].known
    hub.drop(resources.WORKS, other)
    hub.member.have("web-9")
    await hub.live(90)
    assert place not in controller._members["m1"].known


async def test_pods_with_volumes_are_explained_without_a_forecast() -> None:
    hub = PendingHub()
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    hub.member.have("web-1", volumes=volumes)
    await hub.live(25)
    assert hub.told is not None
    assert "volumes, which are not watched" in (hub.told.message or "")
