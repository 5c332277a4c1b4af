"""Virtual nodes: a real kubelet with cgroup v2, which knows how long its pods wait."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from localcluster import state_dir
from localcluster.client import Client
from localcluster.cluster import Cluster
from localcluster.components import CONTROLLERS
from localcluster.host import processes
from localcluster.nodes import is_ready
from localcluster.state_dir import running
from tests.live.support.machine_state import find_left_of, read_machine_state
from tests.live.support.real_pods import NODES, PODS, is_gone, real_pod

pytestmark = [
    pytest.mark.live,
    pytest.mark.real_nodes,
    pytest.mark.soak,
    pytest.mark.asyncio(loop_scope="module"),
]

VIRTUAL, REAL = "virtual-1", "real-1"
NOTICE = {CONTROLLERS: ["--node-monitor-grace-period=25s"]}
THROTTLED = {"resources": {"limits": {"cpu": "100m"}}}
EMULATED = 180  # seconds for what takes one on a processor
TEST_RUN = """
import asyncio, sys
from localcluster.state_dir import running

async def main():
    async with running(sys.argv[1], virtual=1):
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster() -> AsyncIterator[Cluster]:
    before, began = read_machine_state(), time.monotonic()
    async with running(real=1, virtual=1, flags=NOTICE) as cluster:
        print(f"\na virtual node beside a real one after {time.monotonic() - began:.1f} s")
        yield cluster
    assert find_left_of(cluster.folder) == []
    assert read_machine_state() == before


async def test_the_kubelet_tells_how_long_pods_wait_and_that_of_a_real_node_does_not(
    cluster: Cluster,
) -> None:
    async with cluster.client() as client:
        for node in (VIRTUAL, REAL):
            busy = real_pod(f"busy-{node}", "while :; do :; done", node=node, container=THROTTLED)
            await client.create(PODS, busy)
        for node in (VIRTUAL, REAL):
            await client.wait(f"{PODS}/busy-{node}", is_ready, seconds=EMULATED)
        told = await wait_for_pressure(client)
        print(f"a pod with a limit of 100m: cpu {told['pod']}, its node {told['node']}")
        assert told["node"]["some"]["total"] > 0
        assert (await read_pressure(client, REAL))["pod"] == CALM
        assert [await read_cgroup_version(client, node) for node in (VIRTUAL, REAL)] == [2, 1]
        for node in (VIRTUAL, REAL):
            await client.delete(f"{PODS}/busy-{node}", {"gracePeriodSeconds": 0})
            await client.wait(PODS, is_gone(f"busy-{node}"), seconds=EMULATED)


@pytest.mark.parametrize("how", ["frozen", "cut off"])
async def test_a_virtual_node_that_is_away_is_noticed_and_comes_back(cluster: Cluster, how: str) -> None:
    node = cluster.virtual_node(VIRTUAL)
    leave, return_ = (node.freeze, node.thaw) if how == "frozen" else (node.cut_off, node.reconnect)
    async with cluster.client() as client:
        leave()
        await client.wait(f"{NODES}/{VIRTUAL}", lambda found: not is_ready(found), seconds=EMULATED)
        return_()
        await client.wait(f"{NODES}/{VIRTUAL}", is_ready, seconds=EMULATED)


async def test_a_reboot_restarts_the_pods(cluster: Cluster) -> None:
    async with cluster.client() as client:
        await client.create(PODS, real_pod("stays", "sleep 1000", node=VIRTUAL))
        await client.wait(f"{PODS}/stays", is_ready, seconds=EMULATED)
        await cluster.virtual_node(VIRTUAL).reboot()
        # How its container ended may be lost: that was on its way to the disk when the power was cut.
        await client.wait(
            f"{PODS}/stays", lambda found: is_ready(found) and restarts(found) == 1, seconds=EMULATED
        )
        await client.delete(f"{PODS}/stays", {"gracePeriodSeconds": 0})
        await client.wait(PODS, is_gone("stays"), seconds=EMULATED)


async def test_a_killed_test_run_leaves_nothing() -> None:
    before, folder = read_machine_state(), state_dir.folder_of("machine")
    with subprocess.Popen([sys.executable, "-c", TEST_RUN, "machine"]) as run:
        async with asyncio.timeout(EMULATED):
            while not any(found.name == VIRTUAL for found in processes.find(folder)):
                await asyncio.sleep(0.1)
        run.kill()
    async with asyncio.timeout(20):
        while processes.find(folder):
            await asyncio.sleep(0.02)
    await state_dir.remove("machine")
    assert find_left_of(folder) == []
    assert read_machine_state() == before


NONE = {"total": 0, "avg10": 0, "avg60": 0, "avg300": 0}
CALM = {"full": NONE, "some": NONE}


async def wait_for_pressure(client: Client) -> dict[str, Any]:
    """Until most of the last ten seconds were waited; the kubelet looks every few seconds."""
    async with asyncio.timeout(EMULATED):
        while True:
            told = await read_pressure(client, VIRTUAL)
            if told["pod"]["full"]["avg10"] > 50:
                return told
            await asyncio.sleep(1)


async def read_pressure(client: Client, node: str) -> dict[str, Any]:
    """Of the processor: of the node, and of the pod that is busy there."""
    said = await client.get(f"{NODES}/{node}/proxy/stats/summary")
    summary = json.loads(said) if isinstance(said, str) else said
    pods = {each["podRef"]["name"]: each for each in summary["pods"]}
    found = pods.get(f"busy-{node}", {}).get("cpu", {})
    return {"node": summary["node"]["cpu"]["psi"], "pod": found.get("psi", CALM)}


async def read_cgroup_version(client: Client, node: str) -> int:
    """Zeros do not mean calm: on cgroup v1 nothing is measured."""
    metrics: str = await client.get(f"{NODES}/{node}/proxy/metrics")
    (line,) = (line for line in metrics.splitlines() if line.startswith("kubelet_cgroup_version"))
    return int(line.split()[1])


def restarts(found: Any) -> int:
    return sum(status["restartCount"] for status in found["status"].get("containerStatuses", ()))
