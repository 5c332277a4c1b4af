"""`make up`: Reberth on a local cluster, and a pod moved by hand with it."""

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from localcluster.client import Client
from localcluster.cluster import Cluster
from localcluster.state_dir import running
from tests.support.builders import container, deployment
from tests.support.repository import ROOT

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

PODS = "/api/v1/namespaces/default/pods"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster() -> AsyncIterator[Cluster]:
    async with running("product", nodes=8) as cluster:
        yield cluster


async def run(*command: str) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        *command,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    return process.returncode, said.decode()


async def start_workload(client: Client) -> Any:
    made = deployment("web", replicas=4, containers=[container(cpu="500m")])
    await client.create("/apis/apps/v1/namespaces/default/deployments", made)
    found = await client.wait(PODS, lambda listed: len(_running(listed)) == 4)
    return _running(found)[0]


async def test_make_up_is_idempotent_and_a_move_by_hand_lands_as_forecast(cluster: Cluster) -> None:
    name = cluster.folder.name
    code, said = await run("localproduct", "up", "--name", name)
    assert (code, "2 extenders behind kube-scheduler" in said) == (0, True), said
    assert await run("localproduct", "up", "--name", name) == (0, f"{name}: Reberth is already running\n")
    async with cluster.client() as client:
        pod = await start_workload(client)
        settings, way = (
            str(cluster.folder / "rescheduler.yaml"),
            str(cluster.design.path("kubeconfigs", "admin.yaml")),
        )
        code, said = await run(
            "rescheduler", "move", pod["metadata"]["name"], "--settings", settings, "--kubeconfig", way
        )
        assert code in {0, 1}, said
        begun, ended = said.splitlines()[0].split(), said.splitlines()[-1]
        first = begun[begun.index("to") + 1].rstrip(",")
        assert f"landed on {first}, Ready" in ended, said
        assert begun[begun.index("off") + 1] == pod["spec"]["nodeName"]


async def test_without_a_cluster_there_is_one_clear_line() -> None:
    code, said = await run("localproduct", "up", "--name", "nowhere")
    assert code == 1
    assert said.startswith("localproduct: ")
    assert len(said.splitlines()) == 1


def _running(listed: Any) -> list[Any]:
    return [each for each in listed["items"] if each["status"].get("phase") == "Running"]
