"""The extenders that are compared, each a process of its own, and kube-scheduler's way to them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import aiohttp

from bench.extender.populating import MANIFESTS, SCORE, SOURCE, Table
from bench.reading.arms import Failed
from localcluster.build import build
from localcluster.build.products import Product
from localcluster.client import Object
from localcluster.cluster import Cluster
from localcluster.host import processes
from localcluster.host.ports import HOST
from localproduct.processes import EXTENDER_ACCOUNT, Replica, asking_here, start

NONE = "no extender"
FLOOR = "bare asyncio"
DUTIFUL = "asyncio with a mirror"
OURS = "Reberth"
PEER = "Go net/http"
ARMS = (NONE, FLOOR, DUTIFUL, OURS, PEER)

_PROGRAM = Product("peer", "1", "bench/extender/peer", {"peer": "."}, folder=Path(__file__).parent / "peer")
_SETTINGS: Object = {"scores": {"scores": [{"source": SOURCE, "name": SCORE}]}}
_PATIENCE = 300.0
_BETWEEN_LOOKS = 0.05


class Serving(NamedTuple):
    """An extender that is ready."""

    port: int
    process: processes.Running


@asynccontextmanager
async def serving(cluster: Cluster, arm: str, table: Table) -> AsyncIterator[Serving]:
    """Start the extender of an arm and wait until it knows all it needs."""
    extender = await asyncio.to_thread(_STARTS[arm], cluster, table)
    try:
        await wait_for_page(extender, "/readyz")
        yield extender
    finally:
        await processes.stop(extender.process)


def configure(port: int | None) -> Object:
    """Return kube-scheduler's configuration from the manifests; without a port, its defaults."""
    if port is None:
        return {}
    return asking_here(MANIFESTS / "kube-scheduler" / "plain.yaml", f"http://{HOST}:{port}")


async def read_page(port: int, path: str) -> str:
    """Ask any of the extenders; nothing unless it answers with 200."""
    async with aiohttp.ClientSession() as session:
        try:
            async with session.get(f"http://{HOST}:{port}{path}") as answer:
                return await answer.text() if answer.status == 200 else ""
        except aiohttp.ClientError:
            return ""


async def wait_for_page(extender: Serving, path: str) -> None:
    """Wait until an extender answers with 200."""
    async with asyncio.timeout(_PATIENCE):
        while not await read_page(extender.port, path):
            if not processes.is_alive(extender.process):
                raise Failed(f"{extender.process.name} of {extender.process.folder} ended")
            await asyncio.sleep(_BETWEEN_LOOKS)


def _start_floor(cluster: Cluster, _: Table) -> Serving:
    port = cluster.spare_port(1)
    return Serving(port, start(cluster, "floor", "bench.extender.floor", str(port), dies_with_parent=True))


def _start_dutiful(cluster: Cluster, _: Table) -> Serving:
    port, kubeconfig = cluster.spare_port(1), cluster.user(EXTENDER_ACCOUNT)
    arguments = ("bench.extender.dutiful", str(port), str(kubeconfig))
    return Serving(port, start(cluster, "dutiful", *arguments, dies_with_parent=True))


def _start_ours(cluster: Cluster, _: Table) -> Serving:
    replica = Replica(cluster, 0, _SETTINGS, cluster.user(EXTENDER_ACCOUNT))
    replica.start(dies_with_parent=True)
    return Serving(replica.port, replica.process)


def _start_peer(cluster: Cluster, table: Table) -> Serving:
    port, file = cluster.spare_port(2), cluster.folder / "table.json"
    table.write(file)
    command = [str(build.programs(_PROGRAM)["peer"]), f"-listen={HOST}:{port}", f"-table={file}"]
    running = processes.start(command, folder=cluster.folder, name="peer", dies_with_parent=True)
    return Serving(port, running)


_STARTS: dict[str, Callable[[Cluster, Table], Serving]] = {
    FLOOR: _start_floor,
    DUTIFUL: _start_dutiful,
    OURS: _start_ours,
    PEER: _start_peer,
}
