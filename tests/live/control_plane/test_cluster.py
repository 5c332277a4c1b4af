"""The local cluster itself, on which all other live tests depend."""

import asyncio
import ssl
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from localcluster import state_dir
from localcluster.client import Client, Refused
from localcluster.cluster import Cluster
from localcluster.components import API_SERVER, CONTROLLERS, ETCD, KWOK, SCHEDULER
from localcluster.errors import LocalClusterError
from localcluster.host import processes
from localcluster.kwok import PREFIX
from localcluster.nodes import is_ready
from localcluster.state_dir import running
from tests.support.builders import Object, deployment, pod

pytestmark = pytest.mark.live

PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


async def test_fifty_nodes_in_three_zones_are_ready(shared: Cluster) -> None:
    async with shared.client() as client:
        nodes = (await client.get("/api/v1/nodes"))["items"]
    assert sum(map(is_ready, nodes)) == 50
    assert {node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes} == {
        "zone-0",
        "zone-1",
        "zone-2",
    }


async def test_a_deployment_of_a_hundred_replicas_runs_and_goes(shared: Cluster) -> None:
    async with shared.client() as client:
        await client.create(DEPLOYMENTS, deployment("hundred", replicas=100, cpu="100m"))
        path = f"{DEPLOYMENTS}/hundred"
        await client.wait(path, lambda found: found["status"].get("readyReplicas") == 100)
        await client.delete(path, {"propagationPolicy": "Foreground"})
        await client.wait(f"{PODS}?labelSelector=app=hundred", lambda found: not found["items"])


async def life_of(client: Client, name: str, **annotations: str) -> None:
    marks = {f"{PREFIX}{key.replace('_', '-')}": value for key, value in annotations.items()}
    await client.create(PODS, pod(name, annotations=marks))


@pytest.mark.parametrize(("life", "reason"), [("crash-loop", "Error"), ("oom-killed", "OOMKilled")])
async def test_a_pod_in_a_loop_ends_again_and_again(shared: Cluster, life: str, reason: str) -> None:
    async with shared.client() as client:
        await life_of(client, life, life=life, restarts_every="200ms")

        found = await client.wait(f"{PODS}/{life}", lambda found: restarts(found) >= 3)
        await client.delete(f"{PODS}/{life}")
    status = found["status"]["containerStatuses"][0]
    assert status["state"] == {"waiting": {"reason": "CrashLoopBackOff"}}
    assert status["lastState"]["terminated"]["reason"] == reason


def restarts(found: Object) -> int:
    return sum(status["restartCount"] for status in found["status"].get("containerStatuses", ()))


async def test_a_pod_may_never_get_ready(shared: Cluster) -> None:
    async with shared.client() as client:
        await life_of(client, "hangs", life="never-ready")
        found = await client.wait(f"{PODS}/hangs", lambda found: found["status"]["phase"] == "Running")
        await client.delete(f"{PODS}/hangs")
    assert not is_ready(found)


async def test_a_pod_may_start_slowly(shared: Cluster) -> None:
    async with shared.client() as client:
        await life_of(client, "slow", starts_after="2s")
        bound = await client.wait(f"{PODS}/slow", lambda found: "nodeName" in found["spec"])
        assert bound["status"]["phase"] == "Pending"
        found = await client.wait(f"{PODS}/slow", is_ready)
        await client.delete(f"{PODS}/slow")
    conditions = {each["type"]: each["lastTransitionTime"] for each in found["status"]["conditions"]}
    assert conditions["Ready"] > conditions["PodScheduled"]


async def test_termination_grace_is_honoured(shared: Cluster) -> None:
    loop = asyncio.get_running_loop()
    async with shared.client() as client:
        await client.create(PODS, pod("polite", terminationGracePeriodSeconds=3))
        await client.wait(f"{PODS}/polite", is_ready)
        await client.delete(f"{PODS}/polite")
        asked = loop.time()
        await client.wait(PODS, lambda found: all(p["metadata"]["name"] != "polite" for p in found["items"]))
    assert loop.time() - asked >= 2  # the API server cuts the end of the grace to whole seconds


async def test_the_scheduler_takes_any_configuration(shared: Cluster) -> None:
    profiles = [{"schedulerName": "default-scheduler"}, {"schedulerName": "packed"}]
    await shared.schedule_with({"profiles": profiles})
    async with shared.client() as client:
        await client.create(PODS, pod("packed", schedulerName="packed"))
        await client.wait(f"{PODS}/packed", lambda found: "nodeName" in found["spec"])
        await client.delete(f"{PODS}/packed")
    await shared.schedule_with({})


async def test_a_new_user_has_no_rights(shared: Cluster) -> None:
    shared.user("somebody", groups=["some-group"])
    pki = shared.design.path("pki")
    trust = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    trust.load_cert_chain(pki / "somebody.crt", pki / "somebody.key")
    async with (
        aiohttp.ClientSession(shared.design.url) as session,
        session.get("/api/v1/pods", ssl=trust) as answer,
    ):
        assert answer.status == 403
        assert 'User "somebody" cannot list resource "pods"' in (await answer.json())["message"]


async def test_components_are_stopped_frozen_and_restarted() -> None:
    async with running(without=[CONTROLLERS, KWOK]) as cluster, cluster.client() as client:
        await client.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
        cluster.freeze(API_SERVER)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await client.get("/api/v1/nodes")
        cluster.thaw(API_SERVER)
        assert len((await client.get("/api/v1/nodes"))["items"]) == 1
        await cluster.kill(API_SERVER)
        await cluster.start(API_SERVER, "--max-requests-inflight=77")
        assert (
            b"--max-requests-inflight=77"
            in Path(f"/proc/{cluster.process(API_SERVER).pid}/cmdline").read_bytes()
        )
        await cluster.restart(ETCD)
        assert len((await client.get("/api/v1/nodes"))["items"]) == 1
        await cluster.stop(SCHEDULER)
        with pytest.raises(LocalClusterError, match="kube-scheduler .* is not running"):
            cluster.process(SCHEDULER)


async def test_a_component_that_cannot_start_is_named_with_its_last_log_line() -> None:
    cluster = state_dir.create("hopeless", flags={ETCD: ["--no-such-flag"]}, dies_with_parent=True)
    try:
        with pytest.raises(LocalClusterError, match="etcd ended while starting: .*no-such-flag"):
            await cluster.up()
    finally:
        await cluster.down()
    assert "hopeless" not in state_dir.names()


async def test_three_clusters_at_once_share_an_etcd_by_prefix_and_nothing_else() -> None:
    async with running("hub", without=[KWOK, SCHEDULER]) as hub:
        slim = [KWOK, SCHEDULER, CONTROLLERS]
        async with (
            running("member-1", shares_etcd_of=hub, without=slim) as one,
            running("member-2", shares_etcd_of=hub, without=slim) as two,
            hub.client() as hub_client,
            one.client() as one_client,
            two.client() as two_client,
        ):
            await hub_client.create("/api/v1/namespaces", {"metadata": {"name": "only-here"}})
            for stranger in (one_client, two_client):
                with pytest.raises(Refused, match="404"):
                    await stranger.get("/api/v1/namespaces/only-here")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "localcluster", *arguments]


@pytest.mark.parametrize("kill_when", ["etcd", "kube-apiserver", "kube-scheduler"])
async def test_down_cleans_up_after_a_killed_parent(kill_when: str) -> None:
    """`up` is killed as soon as the named component runs; its children know nothing of it."""
    name = f"orphans-{kill_when}"
    folder = state_dir.clusters_folder() / name
    up = subprocess.Popen(command("up", "--name", name), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    async with asyncio.timeout(60):
        while not any(found.name == kill_when for found in processes.find(folder)):
            await asyncio.sleep(0.01)
    up.kill()
    up.communicate()
    assert processes.find(folder)
    done = subprocess.run(command("down", "--name", name), capture_output=True, text=True, check=True)
    assert f"{name}: deleted" in done.stderr
    assert not processes.find(folder)
    assert not folder.exists()


async def test_up_and_down_twice_in_a_row() -> None:
    await rounds(2)


@pytest.mark.soak
async def test_up_and_down_twenty_times_in_a_row() -> None:
    await rounds(20)


async def rounds(count: int) -> None:
    for _ in range(count):
        async with running("round", nodes=5) as cluster:
            folder = cluster.folder
        assert not processes.find(folder)
        assert not folder.exists()
