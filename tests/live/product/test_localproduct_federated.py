"""`make up WITH=federation`: a hub, two members, a Deployment that fails back; `down` deletes all."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from localcluster import state_dir
from localcluster.cluster import Cluster
from localcluster.components import CONTROLLERS, KWOK, SCHEDULER
from localcluster.host import processes
from tests.support.repository import ROOT

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

PARTS = ("hub", "member1", "member2")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster() -> AsyncIterator[Cluster]:
    async with state_dir.running("federated", without=[CONTROLLERS, SCHEDULER, KWOK]) as cluster:
        try:
            yield cluster
        finally:
            await run("down", "--name", cluster.folder.name)


async def run(*arguments: str) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "localproduct.federated", *arguments),
        cwd=ROOT,
        env=dict(os.environ),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    return process.returncode, said.decode()


async def test_the_federation_comes_up_once_and_has_a_deployment_come_home(cluster: Cluster) -> None:
    name = cluster.folder.name
    code, said = await run("up", "--name", name)
    assert code == 0, said
    before, _, after = said.partition("a WorkloadRebalancer asks for it")
    assert "in member1: nothing" in before
    assert "in member2: 9 of 9 replicas available" in before
    assert "Successful, from {member2:9} to {member1:6, member2:3}" in after
    assert "rebalanced: 9 ready for 9 wanted, never fewer than 9" in after
    assert "Deployment shop on the hub: 9 of 9 replicas available" in after
    assert "in member1: 6 of 6 replicas available" in after
    assert "in member2: 3 of 3 replicas available" in after
    assert "\x1b" not in said
    assert str(state_dir.load(f"{name}-hub").kubeconfig) in said
    assert await run("up", "--name", name) == (0, f"{name}: the federation is already running\n")
    async with state_dir.load(f"{name}-member2").client() as member:
        assert (await member.get("/api/v1/namespaces/default/configmaps/shop"))["data"] == {"COLOUR": "blue"}


async def test_down_deletes_every_part_and_no_other_cluster(cluster: Cluster) -> None:
    name = cluster.folder.name
    code, said = await run("down", "--name", name)
    assert (code, said.splitlines()) == (0, [f"{name}: {part} deleted" for part in PARTS])
    for part in PARTS:
        assert f"{name}-{part}" not in state_dir.names()
        assert not processes.find(state_dir.clusters_folder() / f"{name}-{part}")
    async with cluster.client() as client:
        assert await client.get("/version")


async def test_without_a_cluster_there_is_one_clear_line() -> None:
    code, said = await run("up", "--name", "nowhere")
    assert code == 1
    assert said.startswith("localproduct: ")
    assert len(said.splitlines()) == 1
