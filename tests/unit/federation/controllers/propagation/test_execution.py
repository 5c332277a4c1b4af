"""Works against a fake hub, and a member that keeps objects in a dictionary."""

import asyncio
from collections import Counter
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from federation.api import Cluster
from federation.controllers.propagation import execution
from federation.controllers.propagation.execution import ExecutionController, ExecutionSettings
from federation.hub.call_priority import URGENCY, Urgency
from federation.hub.sessions import Sessions
from federation.objects import resources
from federation.objects.cache import NotifyingCache
from federation.objects.names import tie_to_binding
from federation.objects.resources import HeldWork
from federation.objects.template import Object, ResourceTemplate
from federation.propagation.work_sync import change_work_status, list_manifests
from federation.propagation.works import write_work
from reberth.cluster.kinds import Resource
from reberth.records import ObjectMeta
from reberth.values.errors import ApiError, Forbidden, Invalid, NotFound
from tests.support.federation.fake_hub import FakeHub
from tests.support.federation.objects import (
    NOW,
    WEB,
    as_template,
    bare_cluster,
    claimed_binding,
    template,
    work,
)

pytestmark = pytest.mark.looptime
ROLES, _, _, ROLE_BINDINGS = resources.RBAC_KINDS
CONFIGURATIONS = next(each for each in resources.TEMPLATES if each.kind.name == "ConfigMap")


_MOST = 1000
"""Objects that a member takes: two that undo each other without a pause would write for ever."""


class FakeMember:
    """Applies what it is sent, unless it `refuses` the name; somebody may undo it at once."""

    def __init__(self) -> None:
        self.cache = NotifyingCache(self._notify, version=(1, 36))
        self.refuses: dict[str, ApiError] = {}
        self.undoes: set[str] = set()
        self.deleted_to_the_end: dict[str, bool] = {}
        self.applied: list[str] = []
        self.listener: Any = None
        self.version = 100
        self.api = self

    def find(self, resource: Resource[Any], namespace: str, name: str) -> ResourceTemplate | None:
        return self.cache.of(resource.kind).named(namespace, name)

    async def get(self, resource: Resource[Any], name: str, *, namespace: str) -> ResourceTemplate:
        if found := self.find(resource, namespace, name):
            return found
        raise NotFound("get", f'configmaps "{name}" not found')

    async def apply_object(
        self, resource: Resource[Any], name: str, body: Object, *, namespace: str
    ) -> ResourceTemplate:
        if name in self.refuses:
            raise self.refuses[name]
        if len(self.applied) == _MOST:
            raise Invalid("patch", "it has got enough")
        self.applied.append(name)
        made = self._put(resource, body, namespace)
        if name in self.undoes:
            asyncio.get_running_loop().call_soon(self._put, resource, body, namespace)
        return made

    async def remove_object(
        self, resource: Resource[Any], name: str, *, uid: str, namespace: str, to_the_end: bool = False
    ) -> None:
        assert uid
        self.deleted_to_the_end[name] = to_the_end
        if name in self.refuses:
            raise self.refuses[name]
        found = self.find(resource, namespace, name)
        assert found is not None
        self.version += 1
        meta = msgspec.structs.replace(found.metadata, resource_version=str(self.version))
        self.cache.apply(resource.kind, "DELETED", msgspec.structs.replace(found, metadata=meta))

    def _put(self, resource: Resource[Any], body: Object, namespace: str) -> ResourceTemplate:
        self.version += 1
        meta = {"namespace": namespace, "uid": body["metadata"]["name"], "resourceVersion": str(self.version)}
        made = as_template({**body, "metadata": {**body["metadata"], **meta}})
        self.cache.apply(resource.kind, "MODIFIED", made)
        return made

    def _notify(self, _: Any, record: ResourceTemplate) -> None:
        self.listener("m1", record)


class ExecutionHub(FakeHub):
    def __init__(self) -> None:
        super().__init__(resources.WORKS, resources.CLUSTERS, resources.BINDINGS)
        self.member = FakeMember()
        sessions = SimpleNamespace(
            get=lambda _: self.member, is_usable=lambda _: True, listen=self._listen, problems={}
        )
        self.execution = ExecutionController(self.hub, cast("Sessions", sessions), ExecutionSettings())
        self.controllers = [self.execution]

    def _listen(self, listener: Any) -> None:
        self.member.listener = listener

    async def merge(self, resource: Resource[Any], name: str, patch: Object, **more: Any) -> Any:
        written = await super().merge(resource, name, patch, **more)
        if written.metadata.deletion_timestamp and not written.metadata.finalizers:
            self.version += 1
            meta = msgspec.structs.replace(written.metadata, resource_version=str(self.version))
            self.cache.apply(resource.kind, "DELETED", msgspec.structs.replace(written, metadata=meta))
        return written

    @property
    def is_released(self) -> bool:
        return self.cache.of(resources.WORKS.kind).named("karmada-es-m1", "w") is None

    async def wait_for_turn(self) -> None:
        await asyncio.sleep(0)

    @property
    def work(self) -> HeldWork:
        found: HeldWork | None = self.cache.of(resources.WORKS.kind).named("karmada-es-m1", "w")
        assert found is not None
        return found

    @property
    def conditions(self) -> dict[str, tuple[str, str]]:
        return {each.type: (each.status, each.message or "") for each in self.work.status.conditions or ()}


def configuration(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


def work_of(*names: str, deleted: float | None = None, **spec: Any) -> HeldWork:
    metadata = {"name": "w", "namespace": "karmada-es-m1", "finalizers": ["karmada.io/execution-controller"]}
    if deleted is not None:
        metadata["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    manifests = [configuration(name) for name in names]
    return work({"metadata": metadata, "spec": {"workload": {"manifests": manifests}, **spec}})


def member_cluster(**meta: Any) -> Cluster:
    made = bare_cluster("m1")
    return msgspec.structs.replace(
        made, metadata=msgspec.structs.replace(made.metadata, namespace="", **meta)
    )


@pytest.mark.parametrize(
    ("failover", "wanted"), [(None, Urgency.REPORTING), ({"application": {}}, Urgency.PLACING)]
)
async def test_that_a_workload_which_fails_over_fails_is_told_before_other_reports(
    failover: Any, wanted: Urgency
) -> None:
    hub, urgencies = ExecutionHub(), []
    hub.put(resources.BINDINGS, claimed_binding(failover=failover))
    merge = hub.merge

    async def note(resource: Resource[Any], name: str, patch: Object, **more: Any) -> Any:
        urgencies.append(URGENCY.get())
        return await merge(resource, name, patch, **more)

    hub.merge = note  # type: ignore[method-assign]
    hub.put(resources.WORKS, work(write_work(WEB, claimed_binding(), template(), "m1", 3)))
    await hub.run(5)
    assert urgencies == [wanted]


async def test_what_is_told_of_a_work_is_computed_once_unless_it_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    computed: list[Object | None] = []

    def compute(one: HeldWork, *args: Any, **kwargs: Any) -> Object | None:
        computed.append(change_work_status(one, *args, **kwargs))
        return computed[-1]

    monkeypatch.setattr(execution, "change_work_status", compute)
    hub = ExecutionHub()
    hub.put(resources.WORKS, work_of("a"))
    await hub.run(5)
    assert hub.conditions["Applied"][0] == "True"
    assert len(hub.patches) == 1
    looks = 2  # the second one because the copy has changed: it was made
    assert len([change for change in computed if change]) == looks, "not once more for the report"
    key = resources.key_of(resources.WORKS, hub.work)
    told, outcomes = len(hub.patches), hub.execution._outcomes[key]
    hub.execution._report_later(key, hub.work, outcomes._replace(is_suspended=True))
    hub.put(resources.WORKS, hub.work)
    await hub.execution._report(key)
    assert len(hub.patches) == told + 1, "another version needs another patch, which is accepted"
    version = hub.patches[-1][2]["metadata"]["resourceVersion"]
    assert version == str(hub.version - 1)
    assert not hub.execution._changes


async def test_only_changes_of_others_are_a_reason_to_look_at_a_work_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hub, looks = ExecutionHub(), Counter[str]()
    merge, apply = hub.merge, hub.cache.apply

    def look(one: HeldWork) -> list[Object | None]:
        looks[one.metadata.name] += 1
        return list_manifests(one)

    async def merge_and_tell_later(*args: Any, **more: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(hub.cache, "apply", partial(asyncio.get_running_loop().call_soon, apply))
            return await merge(*args, **more)

    monkeypatch.setattr(execution, "list_manifests", look)
    hub.merge = merge_and_tell_later  # type: ignore[method-assign]
    hub.put(resources.WORKS, work_of("a"))
    await hub.run(5)
    assert hub.conditions["Applied"][0] == "True"
    assert looks == {"w": 2}, "when the Work came, and when its copy was made"
    assert not hub.execution._reported
    hub.put(resources.WORKS, hub.work)
    await hub.run(5)
    assert looks == {"w": 3}


async def test_each_manifest_of_a_work_is_applied_and_one_that_is_refused_is_named() -> None:
    hub = ExecutionHub()
    hub.member.refuses["b"] = Forbidden("patch", "exceeded quota")
    hub.put(resources.WORKS, work_of("a", "b", "c"))
    await hub.run(1)
    assert hub.member.applied == ["a", "c"]
    status, message = hub.conditions["Applied"]
    assert status == "False"
    assert message == "1 of 3 manifests are not applied: ConfigMap default/b: exceeded quota"
    ordinals = [each.identifier.ordinal for each in hub.work.status.manifest_statuses or ()]
    assert ordinals == [0, 2]
    assert {reason for reason, _ in hub.events} == {"SyncFailed"}
    hub.member.refuses.clear()
    await asyncio.sleep(30)
    hub.put(resources.WORKS, hub.work)
    await hub.run(1)
    assert hub.conditions["Applied"][0] == "True"
    assert hub.member.applied == ["a", "c", "b"]
    told = [note for reason, note in hub.events if reason == "SyncSucceed"]
    assert sorted(told) == sorted(f"Applied ConfigMap default/{name} in cluster m1." for name in "abc" * 2)


async def test_a_member_that_fails_for_one_manifest_gets_the_others() -> None:
    hub = ExecutionHub()
    hub.member.refuses["a"] = ApiError("patch", "etcd is down")
    hub.put(resources.WORKS, work_of("a", "b"))
    await hub.run(0.05)
    assert hub.member.applied == ["b"]
    assert not hub.work.status.conditions, "it is tried again at once"


async def test_a_suspended_copy_is_left_alone_and_its_state_is_told() -> None:
    hub = ExecutionHub()
    hub.put(resources.WORKS, work_of("a"))
    await hub.run(1)
    assert "Dispatching" not in hub.conditions
    hub.put(resources.WORKS, work_of("a", suspendDispatching=True))
    await hub.run(1)
    assert hub.conditions["Dispatching"][0] == "False"
    assert hub.work.status.manifest_statuses
    assert hub.member.applied == ["a"]
    hub.put(resources.WORKS, msgspec.structs.replace(work_of("a"), status=hub.work.status))
    await hub.run(1)
    assert hub.conditions["Dispatching"][0] == "True"


async def test_what_somebody_changes_back_at_once_is_written_more_and_more_rarely() -> None:
    hub = ExecutionHub()
    hub.member.undoes.add("a")
    hub.put(resources.WORKS, work_of("a"))
    running = asyncio.create_task(hub.run(3600))
    await asyncio.sleep(1500)
    assert len(hub.member.applied) < 25
    assert hub.conditions["Contested"][0] == "True"
    assert hub.conditions["Applied"][0] == "True"
    hub.member.undoes.clear()
    await running
    assert hub.conditions["Contested"][0] == "False"
    assert [reason for reason, _ in hub.events] == ["SyncSucceed"] * 2, (
        "on the Work and on the template, once"
    )


@pytest.mark.parametrize("is_leaving", [True, False])
async def test_a_copy_that_a_member_does_not_delete_is_left_there_if_its_cluster_goes(
    *, is_leaving: bool
) -> None:
    hub = ExecutionHub()
    hub.put(resources.CLUSTERS, member_cluster())
    hub.put(resources.WORKS, work_of("a", "b"))
    await hub.run(1)
    if is_leaving:
        hub.put(resources.CLUSTERS, member_cluster(deletion_timestamp="2027-01-15T08:00:00Z"))
    hub.events.clear()
    hub.member.refuses["a"] = Forbidden("delete", "a policy forbids it")
    hub.put(resources.WORKS, work_of("a", "b", deleted=NOW))
    running = asyncio.create_task(hub.run(900))
    await asyncio.sleep(500)
    assert not hub.is_released
    assert hub.member.find(CONFIGURATIONS, "default", "b") is None
    assert {reason for reason, _ in hub.events} == {"DeletionRefused"}
    assert any("a policy forbids it" in note for _, note in hub.events)
    await running
    assert hub.is_released is is_leaving
    assert ("CopyLeftBehind" in {reason for reason, _ in hub.events}) is is_leaving


def granting(role: str) -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "deployers", "namespace": "default"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
    }


@pytest.mark.parametrize(
    ("labels", "is_granted"),
    [
        ({"karmada.io/managed": "true"}, True),
        ({"kubernetes.io/bootstrapping": "rbac-defaults"}, True),
        ({"team": "a"}, False),
        (None, False),
    ],
)
async def test_a_role_of_a_member_is_granted_only_if_it_was_propagated_or_comes_with_kubernetes(
    labels: dict[str, str] | None, *, is_granted: bool
) -> None:
    """What is harmless here may be strong there. Roles themselves need not be propagated for that."""
    hub = ExecutionHub()
    hub.hub.catalog.learn(ROLE_BINDINGS, on_hub=True)
    if labels is not None:
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
        hub.member._put(ROLES, {**role, "metadata": {"name": "deploy", "labels": labels}}, "")
    made = work_of()
    spec = {"workload": {"manifests": [granting("deploy")]}}
    meta = {"name": made.metadata.name, "namespace": made.metadata.namespace}
    hub.put(resources.WORKS, work({"metadata": meta, "spec": spec}))
    await hub.run(1)
    assert hub.member.applied == (["deployers"] if is_granted else [])
    status, message = hub.conditions["Applied"]
    assert status == str(is_granted)
    assert is_granted or "propagate the role too" in message


@pytest.mark.parametrize(("mode", "to_the_end"), [("Directly", True), ("Gracefully", False)])
async def test_a_copy_that_the_next_one_waits_for_is_deleted_to_the_end_of_its_pods(
    mode: str, *, to_the_end: bool
) -> None:
    hub = ExecutionHub()
    hub.put(
        resources.BINDINGS, claimed_binding(gracefulEvictionTasks=[{"fromCluster": "m1", "purgeMode": mode}])
    )
    labels, annotations = tie_to_binding("ResourceBinding", ObjectMeta("web-deployment", "default"))
    tied = work_of("a")
    meta = msgspec.structs.replace(tied.metadata, annotations=annotations, labels=labels)
    hub.put(resources.WORKS, msgspec.structs.replace(tied, metadata=meta))
    await hub.run(1)
    gone = msgspec.structs.replace(hub.work.metadata, deletion_timestamp="2027-01-15T08:00:00Z")
    hub.put(resources.WORKS, msgspec.structs.replace(hub.work, metadata=gone))
    await hub.run(3)
    assert hub.member.deleted_to_the_end == {"a": to_the_end}
