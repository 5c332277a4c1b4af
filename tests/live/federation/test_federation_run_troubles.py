"""Problems with one member are reported on the hub, and the other members are not affected."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.live.support.hub_and_members import (
    Place,
    cluster_of,
    deployment,
    eventually,
    federated,
    policy,
    secret_of,
)
from tests.live.support.hub_paths import BINDINGS, CLUSTERS, DEPLOYMENTS, EVENTS, POLICIES, SECRETS

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def federation(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    folder: Path = tmp_path_factory.mktemp("federation")
    async with federated("federation-troubles") as place:
        await place.start(folder, sessions={"lookAtSecretEvery": "500ms", "longestPause": "500ms"})
        yield place
        assert await place.stop() == 0
        assert " error " not in (folder / "federation.log").read_text()


def ready(found: Any) -> dict[str, Any]:
    conditions = (found or {}).get("status", {}).get("conditions", ())
    return next((each for each in conditions if each["type"] == "Ready"), {})


async def test_an_unreachable_member_is_tainted_and_its_condition_names_the_cause(federation: Place) -> None:
    hub = federation.hub
    address, elsewhere = (
        (await hub.get(f"{CLUSTERS}/member1"))["spec"]["apiEndpoint"],
        federation.cluster.design.url,
    )
    authority = {"caBundle": (await hub.get(f"{SECRETS}/member1"))["data"]["caBundle"]}
    token = {**authority, "token": "bm9ib2R5"}
    for name, where, data, wanted in (
        ("no-token", address, authority, "data.token: is missing"),
        ("wrong-token", address, token, "Unauthorized"),
        ("wrong-authority", elsewhere, token, "certificate verify failed"),
    ):
        await hub.create(SECRETS, secret_of(name, where, data))
        await hub.create(CLUSTERS, cluster_of(name, where))
        found = await eventually(hub, f"{CLUSTERS}/{name}", lambda one: one["spec"].get("taints"))
        assert ready(found)["status"] == "False"
        assert wanted in ready(found)["message"]
        assert found["spec"]["taints"][0]["key"] == "cluster.karmada.io/not-ready"
    for name in ("member1", "member2"):
        found = await eventually(hub, f"{CLUSTERS}/{name}", lambda one: ready(one).get("status") == "True")
        assert not found["spec"].get("taints")


async def test_a_second_cluster_for_the_same_member_is_told_and_never_touches_it(federation: Place) -> None:
    hub, member = federation.hub, federation.members["member1"]
    first = await eventually(hub, f"{CLUSTERS}/member1", lambda one: one["spec"].get("id"))
    kube_system = await member.get("/api/v1/namespaces/kube-system")
    assert first["spec"]["id"] == kube_system["metadata"]["uid"]
    await hub.create(DEPLOYMENTS, deployment("twice", 1))
    await hub.create(POLICIES, policy("twice", clusterAffinity={"clusterNames": ["member1", "twin"]}))
    await eventually(member, f"{DEPLOYMENTS}/twice", lambda one: one is not None)
    address, data = first["spec"]["apiEndpoint"], (await hub.get(f"{SECRETS}/member1"))["data"]
    await hub.create(SECRETS, secret_of("twin", address, data))
    await hub.create(CLUSTERS, cluster_of("twin", address))
    found = await eventually(hub, f"{CLUSTERS}/twin", lambda one: one["spec"].get("taints"))
    assert (ready(found)["status"], ready(found)["reason"]) == ("False", "SameMemberAsAnotherCluster")
    assert "its API server is that of Cluster member1" in ready(found)["message"]
    await eventually(hub, EVENTS, lambda all_of: "SameMemberAsAnotherCluster" in reasons(all_of))
    before = await eventually(member, f"{DEPLOYMENTS}/twice", lambda one: one["metadata"].get("annotations"))
    chosen = [{"name": "member1", "replicas": 1}, {"name": "twin", "replicas": 1}]
    await hub.patch(f"{BINDINGS}/twice-deployment", {"spec": {"clusters": chosen}})
    works = "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-twin/works"
    await eventually(hub, works, lambda all_of: all_of["items"])
    await hub.patch(f"{DEPLOYMENTS}/twice", {"spec": {"paused": True}})
    after = await eventually(member, f"{DEPLOYMENTS}/twice", lambda one: one["spec"].get("paused"))
    assert marks(after) == marks(before), "the second Cluster has taken the copy over"
    assert "id" not in (await hub.get(f"{CLUSTERS}/twin"))["spec"]
    await hub.patch(f"{BINDINGS}/twice-deployment", {"spec": {"clusters": chosen[:1]}})
    await hub.delete(f"{CLUSTERS}/twin")
    await eventually(hub, f"{CLUSTERS}/twin", lambda one: one is None)
    assert (await member.get(f"{DEPLOYMENTS}/twice"))["metadata"]["uid"] == before["metadata"]["uid"]
    assert ready(await hub.get(f"{CLUSTERS}/member1"))["status"] == "True"


def reasons(events: Any) -> set[str]:
    return {each["reason"] for each in events["items"]}


def marks(copy: Any) -> Any:
    """Return which Work a copy says that it comes from."""
    said = copy["metadata"]["annotations"]
    return {name: value for name, value in said.items() if name.startswith("work.karmada.io/")}


async def test_an_unreachable_member_gets_no_replicas_and_the_others_do(federation: Place) -> None:
    hub = federation.hub
    await hub.create(DEPLOYMENTS, deployment("web", 2))
    await hub.create(POLICIES, policy("web"))
    for client in federation.members.values():
        await eventually(client, f"{DEPLOYMENTS}/web", lambda found: found is not None)
    binding = await hub.get(f"{BINDINGS}/web-deployment")
    assert [each["name"] for each in binding["spec"]["clusters"]] == ["member1", "member2"]
    found = await eventually(
        hub, EVENTS, lambda events: {each["regarding"]["kind"] for each in events["items"]} >= {"Deployment"}
    )
    notes = {each["note"] for each in found["items"] if each["reason"] == "ScheduleBindingSucceed"}
    assert "Binding has been scheduled successfully. Result: {member1:2, member2:2}" in notes


async def test_a_manifest_rejected_by_members_is_reported_and_does_no_harm(federation: Place) -> None:
    hub = federation.hub
    for client in federation.members.values():
        quotas = "/api/v1/namespaces/default/resourcequotas"
        await client.create(quotas, NO_CONFIGURATIONS)
        await client.patch(f"{quotas}/none/status", {"status": USED_UP})
    path = "/api/v1/namespaces/default/configmaps"
    await hub.create(path, {"metadata": {"name": "odd"}, "data": {"a": "b"}})
    selector = {"apiVersion": "v1", "kind": "ConfigMap", "name": "odd"}
    wanted = policy("odd", clusterAffinity={"clusterNames": ["member2"]})
    wanted["spec"]["resourceSelectors"] = [selector]
    await hub.create(POLICIES, wanted)
    found = await eventually(
        hub,
        f"{BINDINGS}/odd-configmap",
        lambda one: one and one.get("status", {}).get("aggregatedStatus", [{}])[0].get("appliedMessage"),
    )
    assert "exceeded quota" in found["status"]["aggregatedStatus"][0]["appliedMessage"]


async def test_a_member_that_recovers_gets_the_copies_meant_for_it(federation: Place) -> None:
    hub = federation.hub
    token = (await hub.get(f"{SECRETS}/member2"))["data"]["token"]
    await hub.patch(f"{SECRETS}/member2", {"data": {"token": "bm9ib2R5"}})
    await eventually(hub, f"{CLUSTERS}/member2", lambda one: one["spec"].get("taints"))
    await hub.create(DEPLOYMENTS, deployment("late", 2))
    await hub.create(POLICIES, policy("late"))
    found = await eventually(
        hub, f"{BINDINGS}/late-deployment", lambda one: one and one["spec"].get("clusters")
    )
    assert [each["name"] for each in found["spec"]["clusters"]] == ["member1"]
    await hub.patch(f"{SECRETS}/member2", {"data": {"token": token}})
    await eventually(
        hub,
        f"{CLUSTERS}/member2",
        lambda one: ready(one)["status"] == "True" and not one["spec"].get("taints"),
    )
    await eventually(
        federation.members["member2"], f"{DEPLOYMENTS}/late", lambda copy: copy is not None, within=60
    )


# Without a controller manager nothing else counts what is used.
USED_UP = {"hard": {"count/configmaps": "0"}, "used": {"count/configmaps": "0"}}
NO_CONFIGURATIONS = {"metadata": {"name": "none"}, "spec": {"hard": USED_UP["hard"]}}
