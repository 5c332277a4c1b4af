"""Objects of every kind run in the members of their policies, with the rights of the manifests."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from localcluster import manifests
from localcluster.client import Client, Refused
from localproduct.member_join import FEDERATION_ACCOUNT, MANIFESTS
from tests.live.support.federation_pages import read_page, wait_for_page
from tests.live.support.hub_and_members import Place, eventually, federated, restrict
from tests.live.support.hub_paths import BINDINGS, CLUSTER_BINDINGS, CLUSTER_POLICIES, EVENTS, POLICIES, WORKS
from tests.live.support.propagated_objects import (
    ALL,
    CLUSTER_KINDS,
    KINDS,
    LABELS,
    definition,
    on,
    path_of,
    selecting,
    selecting_anywhere,
)
from tests.support.builders import Object

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MANAGED = "karmada.io/managed"
RBAC = "rbac.authorization.k8s.io/v1"
RETAIN = "resourcetemplate.karmada.io/retain-replicas"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    folder: Path = tmp_path_factory.mktemp("federation")
    rules = {"apiGroups": ["example.com"], "resources": ["*"]}
    async with federated("federation-kinds", without=()) as place:
        for client in (place.hub, *place.members.values()):
            for kind, namespaced in (("Berth", True), ("Harbour", False)):
                await client.create(CRDS, definition(kind, namespaced=namespaced))
        await asyncio.gather(*(cluster.add_nodes(2) for cluster in place.clusters.values()))
        await restrict(
            place,
            hub=[{**rules, "verbs": ["list", "watch", "patch"]}],
            members=[{**rules, "verbs": ["get", "list", "watch", "create", "patch", "delete"]}],
        )
        await place.start(folder, execution={"tryAgainEvery": "1s"}, namespaces={"lookEvery": "1s"})
        yield place
        assert await place.stop() == 0
        log = (folder / "federation.log").read_text()
        assert " error " not in log, log


def is_copy(found: Any) -> bool:
    return found is not None and found["metadata"].get("labels", {}).get(MANAGED) == "true"


def holds(part: Any) -> Any:
    return lambda found: found is not None and contains(found, part)


def contains(found: Any, part: Any) -> bool:
    if isinstance(part, dict):
        return isinstance(found, dict) and all(contains(found.get(name), each) for name, each in part.items())
    return bool(found == part)


def gone(found: Any) -> bool:
    return found is None


def binding_path(kind: str, name: str, *, namespaced: bool = True) -> str:
    return f"{BINDINGS if namespaced else CLUSTER_BINDINGS}/{name}-{kind.lower()}"


async def test_a_kind_of_rbac_is_watched_once_a_policy_names_it_and_no_other_one(place: Place) -> None:
    for name in place.members:
        await wait_for_page(place.cluster, "/metrics", saying=f'="configmaps",server="{name}"}} 1.0')
    assert await list_watched_roles(place) == set()
    _, plural, body, _ = CLUSTER_KINDS["ClusterRole"]
    path = path_of(RBAC, plural, namespaced=False)
    selector = {"apiVersion": RBAC, "kind": "ClusterRole", "name": "reader"}
    await place.hub.create(path, {"metadata": {"name": "reader"}, **body})
    await place.hub.create(CLUSTER_POLICIES, selecting_anywhere("reader", selector))
    for client in place.members.values():
        await eventually(client, f"{path}/reader", is_copy, within=90)
    watched = await list_watched_roles(place)
    assert {resource for resource, _ in watched} == {plural}
    assert {server for _, server in watched} >= place.members.keys()
    await place.hub.delete(f"{path}/reader")
    for client in place.members.values():
        await eventually(client, f"{path}/reader", gone, within=60)
    await place.hub.delete(f"{CLUSTER_POLICIES}/reader")


async def list_watched_roles(place: Place) -> set[tuple[str, str]]:
    """Each with its server."""
    text = await read_page(place.cluster, "/metrics")
    return set(
        re.findall(r'^reberth_watch_synced{resource="(\w*role\w*)",server="([^"]*)"}', text, re.MULTILINE)
    )


async def test_every_kind_is_propagated_and_reported_healthy(place: Place) -> None:
    hub = place.hub
    for kind, api_version, plural, body, _, namespaced in ALL:
        path = path_of(api_version, plural, namespaced=namespaced)
        whole = {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {"name": "all", "labels": LABELS},
            **body,
        }
        await hub.create(path, whole)
    labels = {"labelSelector": {"matchLabels": LABELS}}
    mine = [{"apiVersion": version, "kind": kind, **labels} for kind, (version, *_) in KINDS.items()]
    others = [
        {"apiVersion": version, "kind": kind, **labels} for kind, (version, *_) in CLUSTER_KINDS.items()
    ]
    await hub.create(POLICIES, selecting("all", *mine))
    await hub.create(CLUSTER_POLICIES, selecting_anywhere("all", *others))
    for kind, api_version, plural, _, _, namespaced in ALL:
        path = path_of(api_version, plural, namespaced=namespaced)
        for client in place.members.values():
            await eventually(client, f"{path}/all", is_copy, within=90)  # all of it has just been started
        found = await eventually(hub, binding_path(kind, "all", namespaced=namespaced), is_well, within=60)
        assert len(found["status"]["aggregatedStatus"]) == 2, kind


def is_well(binding: Any) -> bool:
    """Tell whether each cluster of the binding has a healthy copy, and the status says so.

    The status follows the clusters a moment later: right after a member was added, which happens when it
    reported its API resources later than the other one, FullyApplied still tells of the clusters before.
    """
    status = (binding or {}).get("status", {})
    applied = {each["type"]: each["status"] for each in status.get("conditions", ())}.get("FullyApplied")
    copies = {each["clusterName"]: each["health"] for each in status.get("aggregatedStatus", ())}
    wanted = {each["name"] for each in (binding or {}).get("spec", {}).get("clusters", ())}
    return applied == "True" and bool(wanted) and copies == dict.fromkeys(wanted, "Healthy")


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("Deployment", {"replicas": 4, "availableReplicas": 4}),
        ("StatefulSet", {"replicas": 4, "readyReplicas": 4}),
        ("DaemonSet", {"desiredNumberScheduled": 4, "numberReady": 4}),
        ("Pod", {"phase": "Running"}),
        ("Job", {"succeeded": 4}),
    ],
)
async def test_the_template_has_the_status_of_its_copies(place: Place, kind: str, wanted: Object) -> None:
    api_version, plural, *_ = KINDS[kind]
    path = f"{path_of(api_version, plural)}/all"
    found = await eventually(
        place.hub, path, lambda one: contains(one["status"], wanted) and is_observed(one)
    )
    if kind == "Job":
        assert {each["type"] for each in found["status"]["conditions"]} >= {"Complete"}


def is_observed(found: Any) -> bool:
    """Tell whether the status is of the newest generation, where the kind says so."""
    if found["kind"] in ("Job", "Pod"):
        return True
    return bool(found["status"].get("observedGeneration") == found["metadata"]["generation"])


async def test_changes_on_the_hub_reach_the_members(place: Place) -> None:
    addresses = {name: await service_address(client) for name, client in place.members.items()}
    for _, api_version, plural, _, change, namespaced in ALL:
        path = path_of(api_version, plural, namespaced=namespaced)
        await place.hub.patch(f"{path}/all", change)
    for _, api_version, plural, _, change, namespaced in ALL:
        path = path_of(api_version, plural, namespaced=namespaced)
        for client in place.members.values():
            await eventually(client, f"{path}/all", holds(change))
    assert {name: await service_address(client) for name, client in place.members.items()} == addresses
    deployments = path_of("apps/v1", "deployments")
    await eventually(
        place.hub,
        f"{deployments}/all",
        lambda found: found["status"].get("availableReplicas") == 6 and is_observed(found),
    )


async def service_address(client: Client) -> str:
    found = await client.get(f"{path_of('v1', 'services')}/all")
    return str(found["spec"]["clusterIP"])


async def test_changes_in_a_member_are_reverted(place: Place) -> None:
    member = place.members["member1"]
    changes: list[tuple[str, Object, Object]] = [
        (path_of("v1", "configmaps"), {"data": {"tide": "wrong"}}, {"data": {"tide": "high"}}),
        (path_of("apps/v1", "statefulsets"), {"spec": {"replicas": 3}}, {"spec": {"replicas": 1}}),
        (path_of("example.com/v1", "berths"), {"spec": {"length": 1}}, {"spec": {"length": 40}}),
        (
            path_of("example.com/v1", "harbours", namespaced=False),
            {"spec": {"depth": 1}},
            {"spec": {"depth": 10}},
        ),
    ]
    for path, wrong, right in changes:
        await member.patch(f"{path}/all", wrong)
        await eventually(member, f"{path}/all", holds(right))
    services = path_of("v1", "services")
    await member.delete(f"{services}/all")
    await eventually(member, f"{services}/all", is_copy)


async def test_retained_replicas_are_those_set_in_the_member(place: Place) -> None:
    hub, member = place.hub, place.members["member2"]
    path = f"{path_of('apps/v1', 'deployments')}/all"
    await hub.patch(path, {"metadata": {"labels": {RETAIN: "true"}}})
    await eventually(member, path, holds({"metadata": {"labels": {RETAIN: "true"}}, "spec": {"replicas": 3}}))
    await member.request("PATCH", f"{path}/scale", {"spec": {"replicas": 5}})
    await hub.patch(path, {"spec": {"minReadySeconds": 1}})
    await eventually(member, path, holds({"spec": {"minReadySeconds": 1}}))
    assert (await member.get(path))["spec"]["replicas"] == 5
    await hub.patch(path, {"metadata": {"labels": {RETAIN: None}}})
    await eventually(member, path, holds({"spec": {"replicas": 3}}))


async def test_objects_deleted_on_the_hub_are_removed_from_members(place: Place) -> None:
    for _, api_version, plural, _, _, namespaced in ALL:
        path = path_of(api_version, plural, namespaced=namespaced)
        await place.hub.delete(f"{path}/all", {"propagationPolicy": "Background"})
    for _, api_version, plural, _, _, namespaced in ALL:
        path = path_of(api_version, plural, namespaced=namespaced)
        for client in place.members.values():
            await eventually(client, f"{path}/all", gone, within=60)
    await eventually(place.hub, WORKS, lambda found: not found["items"], within=60)
    await place.hub.delete(f"{POLICIES}/all")
    await place.hub.delete(f"{CLUSTER_POLICIES}/all")


async def test_a_namespace_comes_with_its_labels_when_it_is_needed(place: Place) -> None:
    hub, member = place.hub, place.members["member1"]
    await hub.create("/api/v1/namespaces", {"metadata": {"name": "quay", "labels": {"team": "dock"}}})
    maps = "/api/v1/namespaces/quay/configmaps"
    await hub.create(maps, {"metadata": {"name": "tides"}, "data": {"a": "b"}})
    chosen = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "quay"}
    await hub.create(CLUSTER_POLICIES, selecting_anywhere("quay", chosen, placement=on("member1")))
    await eventually(member, f"{maps}/tides", is_copy)
    assert (await member.get("/api/v1/namespaces/quay"))["metadata"]["labels"]["team"] == "dock"
    assert not is_copy(await get_or_none(member, f"{maps}/kube-root-ca.crt"))
    await hub.delete(f"{CLUSTER_POLICIES}/quay")
    await eventually(hub, f"{maps}/tides", lambda found: not claims(found))
    assert is_copy(await member.get(f"{maps}/tides"))
    await hub.delete(f"{maps}/tides")
    await eventually(member, f"{maps}/tides", gone)


async def test_the_pod_security_of_a_namespace_follows_that_on_the_hub(place: Place) -> None:
    hub, member = place.hub, place.members["member1"]
    path, enforced = "/api/v1/namespaces/mole", "pod-security.kubernetes.io/enforce"
    await hub.create("/api/v1/namespaces", {"metadata": {"name": "mole"}})
    await hub.create(f"{path}/configmaps", {"metadata": {"name": "tides"}})
    chosen = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "mole"}
    await hub.create(CLUSTER_POLICIES, selecting_anywhere("mole", chosen, placement=on("member1")))
    await eventually(member, f"{path}/configmaps/tides", is_copy)
    await member.patch(path, {"metadata": {"labels": {"theirs": "yes"}}})
    for level in ("baseline", "restricted", None):
        await hub.patch(path, {"metadata": {"labels": {enforced: level}}})
        found = await eventually(
            member, path, lambda one, level=level: one["metadata"]["labels"].get(enforced) == level
        )
        assert found["metadata"]["labels"]["theirs"] == "yes"
    await hub.delete(f"{CLUSTER_POLICIES}/mole")
    await hub.delete(f"{path}/configmaps/tides")


async def get_or_none(client: Client, path: str) -> Any:
    return await eventually(client, path, lambda _: True)


def claims(found: Any) -> set[str]:
    labels = (found or {}).get("metadata", {}).get("labels") or {}
    return {name.partition(".")[0] for name in labels if name.endswith("policy.karmada.io/permanent-id")}


def claimed_by(kind: str, name: str) -> Any:
    """The policy that has claimed the object, and no other."""
    return lambda found: (
        claims(found) == {kind} and found["metadata"]["annotations"].get(f"{kind}.karmada.io/name") == name
    )


async def test_policies_claim_and_release_templates(place: Place) -> None:
    hub = place.hub
    maps = path_of("v1", "configmaps")
    await hub.create(maps, {"metadata": {"name": "shore", "labels": {"app": "shore"}}, "data": {"a": "b"}})
    named = {"apiVersion": "v1", "kind": "ConfigMap", "name": "shore"}
    labelled = {"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"app": "shore"}}}
    shore, one, two = f"{maps}/shore", place.members["member1"], place.members["member2"]

    await hub.create(CLUSTER_POLICIES, selecting_anywhere("wide", named, placement=on("member1")))
    await eventually(hub, shore, claimed_by("clusterpropagationpolicy", "wide"))
    await eventually(one, shore, is_copy)
    # The claiming policy keeps it, even if a more specific one comes.
    await hub.create(POLICIES, selecting("low", named, placement=on("member2"), priority=1))
    await hub.create(POLICIES, selecting("high", labelled, placement=on("member2"), priority=5))
    # Wait for the next claim: the deletion of the wide policy comes by another watch, and may come first.
    await hub.create(maps, {"metadata": {"name": "reef", "labels": {"app": "shore"}}})
    await eventually(hub, f"{maps}/reef", claimed_by("propagationpolicy", "high"))
    await hub.delete(f"{maps}/reef")
    await hub.delete(f"{CLUSTER_POLICIES}/wide")
    await eventually(hub, shore, claimed_by("propagationpolicy", "high"))
    await eventually(two, shore, is_copy)
    await eventually(one, shore, gone)
    # One that preempts takes it, though another one has it.
    await hub.patch(f"{POLICIES}/low", {"spec": {"preemption": "Always", "placement": on("member1")}})
    await hub.patch(f"{POLICIES}/high", {"spec": {"priority": 0}})
    await eventually(hub, shore, claimed_by("propagationpolicy", "low"))
    await eventually(one, shore, is_copy)
    # One that selects something else leaves it to the next.
    await hub.patch(f"{POLICIES}/low", {"spec": {"resourceSelectors": [{**named, "name": "other"}]}})
    await eventually(hub, shore, claimed_by("propagationpolicy", "high"))
    await eventually(two, shore, is_copy)
    # Without any policy it has no claim, and stays.
    await hub.delete(f"{POLICIES}/high")
    await eventually(hub, shore, lambda found: not claims(found))
    binding = await eventually(hub, f"{BINDINGS}/shore-configmap", lambda found: not claims(found))
    assert [each["name"] for each in binding["spec"]["clusters"]] == ["member2"]
    assert is_copy(await two.get(shore))
    await hub.delete(f"{POLICIES}/low")
    await hub.delete(shore)
    await eventually(two, shore, gone)


async def test_existing_objects_are_taken_over_and_preserved_only_on_request(place: Place) -> None:
    hub, one, two = place.hub, *place.members.values()
    maps = path_of("v1", "configmaps")
    for client, owner in ((one, "theirs"), (two, "theirs"), (hub, "ours")):
        await client.create(maps, {"metadata": {"name": "pier"}, "data": {"owner": owner}})
    chosen = {"apiVersion": "v1", "kind": "ConfigMap", "name": "pier"}
    await hub.create(POLICIES, selecting("pier", chosen, placement=on("member1")))
    found = await eventually(hub, f"{BINDINGS}/pier-configmap", lambda one: "not managed by" in str(one))
    assert found["status"]["aggregatedStatus"][0]["applied"] is False
    assert (await one.get(f"{maps}/pier"))["data"] == {"owner": "theirs"}
    soon = {"handover": {"timeoutSeconds": 1}}  # the copy in member1 is not ours, and not kept for long
    await hub.patch(f"{POLICIES}/pier", {"spec": {"placement": on("member2"), "failover": soon}})
    await eventually(hub, WORKS, lambda works: works_of(works, "pier") == {"karmada-es-member2"})
    wanted = {"conflictResolution": "Overwrite", "preserveResourcesOnDeletion": True}
    await hub.patch(f"{POLICIES}/pier", {"spec": wanted})
    await eventually(two, f"{maps}/pier", holds({"data": {"owner": "ours"}}))
    assert (await one.get(f"{maps}/pier"))["data"] == {"owner": "theirs"}
    await hub.delete(f"{maps}/pier")
    await eventually(hub, WORKS, lambda works: not works_of(works, "pier"))
    assert (await two.get(f"{maps}/pier"))["data"] == {"owner": "ours"}
    await hub.delete(f"{POLICIES}/pier")


def works_of(works: Any, name: str) -> set[str]:
    found = (each["metadata"] for each in works["items"])
    return {each["namespace"] for each in found if each["name"].startswith(f"{name}-")}


async def test_a_rejection_by_a_member_is_reported_and_does_not_affect_others(place: Place) -> None:
    hub = place.hub
    berths = path_of("example.com/v1", "berths")
    for name in ("good", "bad"):
        await hub.create(berths, berth(name))
    chosen = {"apiVersion": "example.com/v1", "kind": "Berth"}
    await place.members["member1"].create(ADMISSION + "policies", REFUSAL)
    await place.members["member1"].create(ADMISSION + "policybindings", REFUSAL_BOUND)
    await refuses(place.members["member1"], f"{berths}?dryRun=All", berth("bad"))
    await hub.create(POLICIES, selecting("berths", chosen))
    for client in place.members.values():
        await eventually(client, f"{berths}/good", is_copy)
    await eventually(place.members["member2"], f"{berths}/bad", is_copy)
    found = await eventually(hub, binding_path("Berth", "bad"), lambda one: "too bad" in str(one))
    said = {
        each["clusterName"]: each.get("appliedMessage", "") for each in found["status"]["aggregatedStatus"]
    }
    assert "too bad" in said["member1"]
    assert not said["member2"]
    await eventually(
        hub,
        EVENTS,
        lambda events: any(
            "too bad" in each["note"]
            and each["regarding"]["kind"] == "Berth"
            and each["reason"] == "SyncFailed"
            for each in events["items"]
        ),
    )
    await place.members["member1"].delete(f"{ADMISSION}policybindings/no-bad")
    await eventually(hub, binding_path("Berth", "bad"), is_well)


async def test_a_member_without_the_kind_is_reported_and_the_others_go_on(place: Place) -> None:
    hub, lacking = place.hub, place.members["member1"]
    berths = path_of("example.com/v1", "berths")
    await lacking.delete(f"{CRDS}/berths.example.com")
    await eventually(lacking, f"{CRDS}/berths.example.com", gone)
    found = await eventually(hub, binding_path("Berth", "good"), lambda one: "not served" in str(one))
    said = {
        each["clusterName"]: each.get("appliedMessage", "") for each in found["status"]["aggregatedStatus"]
    }
    assert said == {"member1": "example.com/v1 Berth is not served in this cluster", "member2": ""}
    await hub.patch(f"{berths}/good", {"spec": {"length": 41}})
    await eventually(place.members["member2"], f"{berths}/good", holds({"spec": {"length": 41}}))
    await lacking.create(CRDS, definition("Berth", namespaced=True))
    await eventually(lacking, f"{berths}/good", holds({"spec": {"length": 41}}), within=60)
    await eventually(hub, binding_path("Berth", "good"), is_well, within=60)


def berth(name: str) -> Object:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Berth",
        "metadata": {"name": name},
        "spec": {"length": 40},
    }


async def refuses(client: Client, path: str, body: Object) -> None:
    """Wait until the API server has taken up what it is to refuse."""
    async with asyncio.timeout(30):
        while True:
            try:
                await client.create(path, body)
            except Refused:
                return
            await asyncio.sleep(0.1)


ADMISSION = "/apis/admissionregistration.k8s.io/v1/validatingadmission"
BERTHS: Object = {"apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["berths"]}
REFUSAL: Object = {
    "metadata": {"name": "no-bad"},
    "spec": {
        "matchConstraints": {"resourceRules": [{**BERTHS, "operations": ["CREATE", "UPDATE"]}]},
        "validations": [{"expression": "object.metadata.name != 'bad'", "message": "too bad"}],
    },
}
REFUSAL_BOUND: Object = {
    "metadata": {"name": "no-bad"},
    "spec": {"policyName": "no-bad", "validationActions": ["Deny"]},
}


async def test_the_api_server_accepts_the_manifests_of_the_hub(place: Place) -> None:
    paths = await manifests.apply(place.hub, MANIFESTS)
    configurations = [path for path in paths if "webhookconfigurations" in path]
    for path in configurations:  # no controller completes them here
        await place.hub.delete(path)
    assert len(configurations) == 2
    (found,) = [path for path in paths if path.endswith("/deployments/reberth-federation")]
    pod = (await place.hub.get(found))["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == FEDERATION_ACCOUNT.rpartition(":")[2]
