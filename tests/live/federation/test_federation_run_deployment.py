"""A Deployment of the hub runs in the members of its policy, through crashes of the process."""

import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.live.support.federation_pages import wait_for_page
from tests.live.support.hub_and_members import (
    MEMBERS,
    Place,
    deployment,
    eventually,
    federated,
    policy,
    weighted,
)
from tests.live.support.hub_paths import BINDINGS, CLUSTERS, DEPLOYMENTS, POLICIES

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place() -> AsyncIterator[Place]:
    async with federated("federation-run") as place:
        yield place


@pytest_asyncio.fixture(loop_scope="module")
async def federation(place: Place, tmp_path: Path) -> AsyncIterator[Place]:
    await place.start(tmp_path)
    yield place
    assert await place.stop() == 0
    assert " error " not in (tmp_path / "federation.log").read_text()


def conditions(found: Any) -> dict[str, Any]:
    return {each["type"]: each for each in (found or {}).get("status", {}).get("conditions", ())}


def has_replicas(count: int) -> Any:
    return lambda found: found is not None and found["spec"]["replicas"] == count


async def test_members_become_ready(federation: Place) -> None:
    for name in MEMBERS:
        found = await eventually(
            federation.hub,
            f"{CLUSTERS}/{name}",
            lambda one: (
                conditions(one).get("Ready", {}).get("status") == "True"
                and one["status"].get("apiEnablements")
            ),
        )
        assert found["status"]["kubernetesVersion"].startswith("v1.")
        assert {"groupVersion": "apps/v1"}.items() <= next(
            each for each in found["status"]["apiEnablements"] if each["groupVersion"] == "apps/v1"
        ).items()


async def test_a_deployment_is_divided_scaled_and_deleted(federation: Place, tmp_path: Path) -> None:
    hub, (one, two) = federation.hub, federation.members.values()
    await hub.create(DEPLOYMENTS, deployment("web", 3))
    await hub.create(POLICIES, policy("web", replicaScheduling=weighted(member1=2, member2=1)))
    await eventually(one, f"{DEPLOYMENTS}/web", has_replicas(2))
    await eventually(two, f"{DEPLOYMENTS}/web", has_replicas(1))

    await federation.stop(signal.SIGKILL)
    await hub.patch(f"{DEPLOYMENTS}/web", {"spec": {"replicas": 6}})
    await one.patch(f"{DEPLOYMENTS}/web", {"spec": {"replicas": 9}})
    await federation.start(tmp_path)
    await eventually(one, f"{DEPLOYMENTS}/web", has_replicas(4))
    await eventually(two, f"{DEPLOYMENTS}/web", has_replicas(2))

    for client, count in ((one, 4), (two, 2)):
        await be_healthy(client, "web", count)
    binding = await eventually(
        hub,
        f"{BINDINGS}/web-deployment",
        lambda found: {each["health"] for each in found["status"].get("aggregatedStatus", ())} == {"Healthy"},
    )
    assert conditions(binding)["Scheduled"]["reason"] == "Success"
    assert conditions(binding)["FullyApplied"]["status"] == "True"
    await eventually(hub, f"{DEPLOYMENTS}/web", lambda found: found["status"].get("availableReplicas") == 6)

    await hub.delete(f"{DEPLOYMENTS}/web")
    for client in (one, two):
        await eventually(client, f"{DEPLOYMENTS}/web", lambda found: found is None)
    await eventually(hub, f"{BINDINGS}/web-deployment", lambda found: found is None)
    works = "/apis/work.karmada.io/v1alpha1/works"
    await eventually(hub, works, lambda found: not found["items"])


async def test_a_foreign_change_is_put_back_and_a_foreign_object_is_left_alone(federation: Place) -> None:
    hub, (one, two) = federation.hub, federation.members.values()
    await one.create(DEPLOYMENTS, deployment("shop", 7, image="theirs:1"))
    await hub.create(DEPLOYMENTS, deployment("shop", 1))
    await hub.create(POLICIES, policy("shop"))
    await eventually(two, f"{DEPLOYMENTS}/shop", has_replicas(1))
    await two.patch(f"{DEPLOYMENTS}/shop", {"spec": {"replicas": 5}})
    await eventually(two, f"{DEPLOYMENTS}/shop", has_replicas(1))
    binding = await eventually(
        hub,
        f"{BINDINGS}/shop-deployment",
        lambda found: any(each.get("appliedMessage") for each in found["status"].get("aggregatedStatus", ())),
    )
    assert "not managed by the federation" in str(binding["status"]["aggregatedStatus"])
    assert (await one.get(f"{DEPLOYMENTS}/shop"))["spec"]["replicas"] == 7

    await hub.patch(
        f"{POLICIES}/shop", {"spec": {"placement": {"clusterAffinity": {"clusterNames": ["member1"]}}}}
    )
    await eventually(two, f"{DEPLOYMENTS}/shop", lambda found: found is None)
    assert (await one.get(f"{DEPLOYMENTS}/shop"))["spec"]["replicas"] == 7


async def test_only_copies_are_held_and_one_that_lost_its_label_is_decided_anew(federation: Place) -> None:
    hub, (one, _) = federation.hub, federation.members.values()
    maps = "/api/v1/namespaces/default/configmaps"
    for number in range(20):
        await one.create(maps, {"metadata": {"name": f"theirs{number}"}, "data": {"much": "x" * 10_000}})
    chosen = policy("quay", clusterAffinity={"clusterNames": ["member1"]})
    chosen["spec"]["resourceSelectors"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "quay"}]
    await hub.create(maps, {"metadata": {"name": "quay"}, "data": {"owner": "ours"}})
    await hub.create(POLICIES, chosen)
    await eventually(one, f"{maps}/quay", bool)
    held = 'reberth_watch_objects{resource="configmaps",server="member1"} 1.0'
    await wait_for_page(federation.cluster, "/metrics", saying=held)
    unlabelled = {"metadata": {"labels": {"karmada.io/managed": None}}, "data": {"owner": "theirs"}}
    await one.patch(f"{maps}/quay", unlabelled)
    await eventually(hub, f"{BINDINGS}/quay-configmap", lambda found: "not managed by" in str(found))
    assert (await one.get(f"{maps}/quay"))["data"] == {"owner": "theirs"}
    await hub.patch(f"{POLICIES}/quay", {"spec": {"conflictResolution": "Overwrite"}})
    await eventually(one, f"{maps}/quay", lambda found: found["data"] == {"owner": "ours"})
    await wait_for_page(federation.cluster, "/metrics", saying=held)
    await hub.delete(f"{POLICIES}/quay")
    await hub.delete(f"{maps}/quay")


async def be_healthy(client: Any, name: str, count: int) -> None:
    """Stand in for the controllers and kubelets that the member does not have."""
    found = await client.get(f"{DEPLOYMENTS}/{name}")
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), count)
    status = {"observedGeneration": found["metadata"]["generation"], **counts}
    await client.patch(f"{DEPLOYMENTS}/{name}/status", {"status": status})
