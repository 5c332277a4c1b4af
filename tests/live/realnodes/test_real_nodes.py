"""Real nodes: a real kubelet beside kwok's nodes, and what can happen to it."""

import asyncio
import signal
from collections.abc import Callable

import pytest

from localcluster.client import Client
from localcluster.cluster import Cluster
from localcluster.host import processes
from localcluster.nodes import is_ready
from tests.live.support.real_pods import LEASES, NODES, PODS, is_gone, real_pod
from tests.support.builders import Object, deployment, pod

pytestmark = [pytest.mark.live, pytest.mark.real_nodes, pytest.mark.asyncio(loop_scope="module")]


async def test_real_nodes_stand_beside_those_of_kwok(real: Cluster) -> None:
    async with real.client() as client:
        nodes = (await client.get(NODES))["items"]
        assert sum(map(is_ready, nodes)) == 32
        runtimes = {node["status"]["nodeInfo"]["containerRuntimeVersion"].partition(":")[0] for node in nodes}
        assert runtimes == {"kwok", "containerd"}
        await client.create(PODS, real_pod("says", "echo hello; sleep 1000", node="real-2"))
        await client.create(PODS, pod("simulated", nodeName="node-00001"))
        found = await client.wait(f"{PODS}/says", is_ready)
        await client.wait(f"{PODS}/simulated", is_ready)
        assert await client.get(f"{PODS}/says/log") == "hello\n"
        assert found["status"]["hostIP"] == "192.0.2.12"
        await remove(client, "says", "simulated")


async def test_a_deployment_runs_on_real_nodes(real: Cluster) -> None:
    made = deployment("several", replicas=6, cpu="10m")
    template = made["spec"]["template"]["spec"]
    template["nodeSelector"] = {"localcluster.reberth.dev/real": ""}
    template["containers"] = real_pod("several", "sleep 1000")["spec"]["containers"]
    path = "/apis/apps/v1/namespaces/default/deployments"
    async with real.client() as client:
        await client.create(path, made)
        await client.wait(f"{path}/several", lambda found: found["status"].get("readyReplicas") == 6)
        pods = (await client.get(f"{PODS}?labelSelector=app=several"))["items"]
        assert len({each["status"]["podIP"] for each in pods}) == 6
        await client.delete(f"{path}/several", {"propagationPolicy": "Foreground"})
        await client.wait(PODS, lambda found: not found["items"])


async def test_a_reboot_restarts_the_pods(real: Cluster) -> None:
    async with real.client() as client:
        await client.create(PODS, real_pod("stays", "sleep 1000", node="real-1"))
        before = await client.wait(f"{PODS}/stays", is_ready)
        booted = (await client.get(f"{NODES}/real-1"))["status"]["nodeInfo"]["bootID"]
        await real.real_node("real-1").reboot()
        await client.wait(f"{PODS}/stays", lambda found: restarts(found) == 1 and is_ready(found))
        node = await client.wait(f"{NODES}/real-1", lambda found: boot_of(found) != booted)
        assert before["spec"]["nodeName"] == node["metadata"]["name"]
        await remove(client, "stays")


async def test_a_killed_kubelet_is_started_again_and_its_pods_run_on(real: Cluster) -> None:
    async with real.client() as client:
        await client.create(PODS, real_pod("survives", "sleep 1000", node="real-1"))
        await client.wait(f"{PODS}/survives", is_ready)
        killed = real.real_node("real-1").service("kubelet")
        await processes.kill(killed)
        await wait_for(lambda: real.real_node("real-1").service("kubelet").pid != killed.pid)
        await client.delete(f"{PODS}/survives")
        await client.wait(PODS, is_gone("survives"))


@pytest.mark.parametrize("how", ["frozen", "cut off"])
async def test_a_node_that_is_away_is_noticed_and_comes_back(real: Cluster, how: str) -> None:
    node = real.real_node("real-2")
    leave, return_ = (node.freeze, node.thaw) if how == "frozen" else (node.cut_off, node.reconnect)
    async with real.client() as client:
        await client.create(PODS, real_pod("waits", "sleep 1000", node="real-2"))
        await client.wait(f"{PODS}/waits", is_ready)
        leave()
        await client.wait(f"{NODES}/real-2", lambda found: not is_ready(found))
        lease = (await client.get(f"{LEASES}/real-2"))["spec"]["renewTime"]
        found = await client.get(f"{PODS}/waits")
        assert found["status"]["containerStatuses"][0]["ready"]  # nobody is there to say otherwise
        return_()
        await client.wait(f"{NODES}/real-2", is_ready, seconds=60)
        await client.wait(f"{LEASES}/real-2", lambda found: found["spec"]["renewTime"] != lease)
        await client.wait(f"{PODS}/waits", is_ready)
        assert restarts(await client.get(f"{PODS}/waits")) == 0
        await remove(client, "waits")


async def test_a_node_under_memory_pressure_evicts_and_recovers(real: Cluster) -> None:
    node = real.real_node("real-1")
    async with real.client() as client:
        await client.create(PODS, real_pod("victim", "sleep 1000", node="real-1"))
        await client.wait(f"{PODS}/victim", is_ready)
        await node.press()
        found = await client.wait(f"{PODS}/victim", lambda found: found["status"].get("reason") == "Evicted")
        conditions = {each["type"]: each.get("reason") for each in found["status"]["conditions"]}
        assert found["status"]["phase"] == "Failed"
        assert conditions["DisruptionTarget"] == "TerminationByKubelet"
        assert "deletionTimestamp" not in found["metadata"]
        await client.wait(f"{NODES}/real-1", lambda found: has(found, "MemoryPressure"))
        await node.relieve()
        await client.wait(
            f"{NODES}/real-1",
            lambda found: not has(found, "MemoryPressure") and not found["spec"].get("taints"),
            seconds=60,
        )
        await remove(client, "victim")


async def test_a_node_without_power_ends_all_its_processes(real: Cluster) -> None:
    node = real.real_node("real-2")
    await node.kill()
    left = [found for found in processes.find(real.folder) if found.name.startswith("real-2")]
    assert left == []
    await node.start()
    async with real.client() as client:
        await client.wait(f"{NODES}/real-2", is_ready)


async def test_a_service_is_frozen_alone(real: Cluster) -> None:
    kubelet = real.real_node("real-1").service("kubelet")
    processes.send(kubelet, signal.SIGSTOP)
    async with real.client() as client:
        await client.wait(f"{NODES}/real-1", lambda found: not is_ready(found))
        processes.send(kubelet, signal.SIGCONT)
        await client.wait(f"{NODES}/real-1", is_ready)


def restarts(found: Object) -> int:
    return sum(status["restartCount"] for status in found["status"].get("containerStatuses", ()))


def boot_of(node: Object) -> str:
    boot: str = node["status"]["nodeInfo"]["bootID"]
    return boot


def has(node: Object, condition: str) -> bool:
    return any(
        each["type"] == condition and each["status"] == "True" for each in node["status"]["conditions"]
    )


async def remove(client: Client, *names: str) -> None:
    for name in names:
        await client.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})
        await client.wait(PODS, is_gone(name))


async def wait_for(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not _holds(holds):
            await asyncio.sleep(0.05)


def _holds(condition: Callable[[], bool]) -> bool:
    try:
        return condition()
    except Exception:  # noqa: BLE001 - the service is not running at this moment
        return False
