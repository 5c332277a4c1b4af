"""Members that refuse, undo or keep what the federation wants: it is told, bounded, and ends."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from localcluster.client import Client, Refused
from tests.live.support.failing_members import condition
from tests.live.support.hub_and_members import Place, deployment, eventually, federated, policy
from tests.live.support.hub_paths import BINDINGS, CLUSTERS, DEPLOYMENTS, EVENTS, POLICIES
from tests.support.builders import Object

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

MAPS = "/api/v1/namespaces/default/configmaps"
SERVICES = "/api/v1/namespaces/default/services"
WORKS = "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-member1/works"
WORK_EVENTS = "/apis/events.k8s.io/v1/namespaces/karmada-es-member2/events"
ADMISSION = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    folder: Path = tmp_path_factory.mktemp("federation")
    async with federated("federation-contrary") as place:
        await place.start(
            folder,
            members={"probeEvery": "500ms", "threshold": "1s", "letGoAfter": "3s"},
            execution={"tryAgainEvery": "1s", "leaveCopiesAfter": "3s"},
        )
        yield place
        assert await place.stop() == 0
        assert " error " not in (folder / "federation.log").read_text()


def there(found: Any) -> bool:
    return found is not None


def gone(found: Any) -> bool:
    return found is None


def manifest(kind: str, name: str, **more: Any) -> Object:
    """Write a manifest with the marks of the Work `several`."""
    marks = {"work.karmada.io/namespace": "karmada-es-member1", "work.karmada.io/name": "several"}
    labels = {"karmada.io/managed": "true"}
    meta = {"name": name, "namespace": "default", "labels": labels, "annotations": marks}
    return {"apiVersion": "v1", "kind": kind, "metadata": meta, **more}


def several(port: int) -> Object:
    service = manifest("Service", "middle", spec={"ports": [{"port": port}]})
    manifests = [manifest("ConfigMap", "first"), service, manifest("ConfigMap", "last")]
    return {"workload": {"manifests": manifests}}


async def test_every_manifest_of_a_work_is_applied_and_one_that_is_refused_is_named(place: Place) -> None:
    hub, member = place.hub, place.members["member1"]
    await eventually(hub, "/api/v1/namespaces/karmada-es-member1", there)
    meta = {"name": "several", "finalizers": ["karmada.io/execution-controller"]}
    kind = {"apiVersion": "work.karmada.io/v1alpha1", "kind": "Work"}
    await hub.create(WORKS, {**kind, "metadata": meta, "spec": several(port=-1)})
    for name in ("first", "last"):
        await eventually(member, f"{MAPS}/{name}", there)
    found = await eventually(hub, f"{WORKS}/several", lambda one: condition(one, "Applied"))
    assert condition(found, "Applied")["status"] == "False"
    assert (
        "1 of 3 manifests are not applied: Service default/middle" in condition(found, "Applied")["message"]
    )
    await hub.patch(f"{WORKS}/several", {"spec": several(port=80)})
    await eventually(hub, f"{WORKS}/several", lambda one: condition(one, "Applied")["status"] == "True")
    await eventually(member, f"{SERVICES}/middle", there)
    await hub.delete(f"{WORKS}/several")
    for path in (f"{MAPS}/first", f"{SERVICES}/middle", f"{MAPS}/last", f"{WORKS}/several"):
        await eventually(hub if path.startswith(WORKS) else member, path, gone)


async def test_suspended_copies_are_left_alone_and_their_state_is_told(place: Place) -> None:
    hub, member = place.hub, place.members["member1"]
    await hub.create(DEPLOYMENTS, deployment("asleep", 3))
    await hub.create(POLICIES, policy("asleep", clusterAffinity={"clusterNames": ["member1"]}))
    await eventually(member, f"{DEPLOYMENTS}/asleep", there)
    await hub.patch(f"{POLICIES}/asleep", {"spec": {"suspension": {"dispatching": True}}})
    work = await eventually(hub, WORKS, lambda found: is_suspended(work_named(found, "asleep")))
    await hub.patch(f"{DEPLOYMENTS}/asleep", {"spec": {"replicas": 5}})
    await eventually(hub, WORKS, lambda found: replicas_of(work_named(found, "asleep")) == 5)
    await member.patch(
        f"{DEPLOYMENTS}/asleep/status",
        {"status": {"replicas": 3, "readyReplicas": 2, "observedGeneration": 1}},
    )
    await eventually(hub, f"{BINDINGS}/asleep-deployment", lambda one: ready_of(one) == 2)
    assert (await member.get(f"{DEPLOYMENTS}/asleep"))["spec"]["replicas"] == 3
    assert condition(work_named(work, "asleep"), "Dispatching")["reason"]
    await hub.patch(f"{POLICIES}/asleep", {"spec": {"suspension": None}})
    await eventually(member, f"{DEPLOYMENTS}/asleep", lambda one: one["spec"]["replicas"] == 5)


def work_named(found: Any, name: str) -> Any:
    return next(
        (
            each
            for each in found["items"]
            if each["spec"]["workload"]["manifests"][0]["metadata"]["name"] == name
        ),
        None,
    )


def is_suspended(work: Any) -> bool:
    return condition(work, "Dispatching").get("status") == "False"


def replicas_of(work: Any) -> int:
    return int(work["spec"]["workload"]["manifests"][0]["spec"]["replicas"])


def ready_of(binding: Any) -> int:
    copies = (binding or {}).get("status", {}).get("aggregatedStatus", ())
    return sum(each.get("status", {}).get("readyReplicas", 0) for each in copies)


async def test_what_a_member_undoes_at_once_is_applied_more_and_more_rarely(place: Place) -> None:
    hub, member = place.hub, place.members["member1"]
    path = f"{DEPLOYMENTS}/contested"
    await hub.create(DEPLOYMENTS, deployment("contested", 2))
    await hub.create(POLICIES, policy("contested", clusterAffinity={"clusterNames": ["member1"]}))
    await eventually(member, path, there)
    async with undoing(member, path, replicas=9):
        found = await eventually(
            hub,
            WORKS,
            lambda all_of: condition(work_named(all_of, "contested"), "Contested").get("status") == "True",
        )
        said = condition(work_named(found, "contested"), "Contested")["message"]
        assert "Deployment default/contested: something in the member changes it back" in said
        before = (await member.get(path))["metadata"]["generation"]
        await asyncio.sleep(8)
        after = (await member.get(path))["metadata"]["generation"]
        assert after - before <= 12, "each of our writes is undone once: 6 writes in 8 seconds are too many"
    await eventually(member, path, lambda one: one["spec"]["replicas"] == 2, within=60)


@contextlib.asynccontextmanager
async def undoing(member: Client, path: str, *, replicas: int) -> AsyncIterator[None]:
    """Do what a controller in the member does that thinks the field is its own."""

    async def undo() -> None:
        while True:
            if (await member.get(path))["spec"]["replicas"] != replicas:
                await member.patch(path, {"spec": {"replicas": replicas}})
            await asyncio.sleep(0.02)

    task = asyncio.create_task(undo())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_a_deleted_cluster_goes_although_its_member_keeps_a_copy(place: Place) -> None:
    """Last, for the member is gone then."""
    hub, member = place.hub, place.members["member2"]
    await hub.create(MAPS, {"metadata": {"name": "kept"}, "data": {"tide": "low"}})
    wanted = policy("kept", clusterAffinity={"clusterNames": ["member2"]})
    wanted["spec"]["resourceSelectors"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "kept"}]
    await hub.create(POLICIES, wanted)
    await eventually(member, f"{MAPS}/kept", there)
    await forbid_deletion(member, f"{MAPS}/kept")
    await hub.delete(f"{CLUSTERS}/member2")
    await eventually(hub, WORK_EVENTS, lambda found: "is kept here" in notes(found, "DeletionRefused"))
    await eventually(hub, f"{CLUSTERS}/member2", gone, within=60)
    assert "left there" in notes(await hub.get(EVENTS), "CopyLeftBehind")
    assert (await member.get(f"{MAPS}/kept"))["data"] == {"tide": "low"}


def notes(found: Any, reason: str) -> str:
    return "\n".join(each["note"] for each in found["items"] if each["reason"] == reason)


async def forbid_deletion(member: Client, path: str) -> None:
    """Have a policy of the member deny it, and wait until it does."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["configmaps"]}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "oldObject.metadata.name != 'kept'", "message": "it is kept here"}],
    }
    binding = {"policyName": "keep", "validationActions": ["Deny"]}
    await member.create(f"{ADMISSION}ies", {"metadata": {"name": "keep"}, "spec": spec})
    await member.create(f"{ADMISSION}ybindings", {"metadata": {"name": "keep"}, "spec": binding})
    with pytest.raises(Refused, match="it is kept here"):
        await delete_until_refused(member, path)


async def delete_until_refused(member: Client, path: str) -> None:
    async with asyncio.timeout(30):
        while True:
            await member.request("DELETE", f"{path}?dryRun=All")
            await asyncio.sleep(0.2)
