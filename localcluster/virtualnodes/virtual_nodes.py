"""The virtual nodes of a cluster together: their disks, and their start."""

import asyncio
import platform
import shutil
from pathlib import Path

from localcluster.client import Client
from localcluster.components import Design
from localcluster.errors import LocalClusterError
from localcluster.realnodes import links, real_nodes
from localcluster.realnodes import programs as node_programs
from localcluster.realnodes.node_files import folder_of
from localcluster.realnodes.node_plan import NodePlan
from localcluster.realnodes.requirements import find_basic_obstacle
from localcluster.virtualnodes import disk, initramfs, programs
from localcluster.virtualnodes.virtual_node import DISK, INITRAMFS, MEMORY, PREFIX, VirtualNode

_SECONDS_TO_START = 300.0  # for the processor is emulated
_SECONDS_BETWEEN_LOOKS = 5.0
_TUN = Path("/dev/net/tun")
_MEMINFO = Path("/proc/meminfo")


class NoVirtualNodes(LocalClusterError):
    """Virtual nodes cannot run on this machine, or not as this user."""


def refuse(count: int, *, beside: int) -> None:
    """Refuse what this machine cannot do beside so many real nodes, before anything is begun."""
    if not count:
        return
    if count + beside > links.MOST_NODES:
        many = f"{count + beside} real and virtual nodes are too many"
        raise LocalClusterError(f"{many}: there are addresses for {links.MOST_NODES}")
    obstacle = find_basic_obstacle() or _find_obstacle() or _find_lack(count * MEMORY)
    if obstacle:
        raise NoVirtualNodes(f"virtual nodes cannot run here: {obstacle}")


def _find_obstacle() -> str | None:
    if platform.machine() != "x86_64":
        return f"they need x86_64, and this is {platform.machine()}"
    if not shutil.which("mke2fs"):
        return "mke2fs is not on PATH (Debian: e2fsprogs)"
    return None if _TUN.exists() else f"there is no {_TUN} for their cables"


def _find_lack(needed: int) -> str | None:
    """Too many would make the kernel end other programs of this machine."""
    lines = _MEMINFO.read_text().splitlines()
    free = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    if needed <= free:
        return None
    return f"they need {needed / 2**30:.1f} GiB of memory, and {free / 2**30:.1f} GiB are available"


def names(design: Design) -> list[str]:
    return [f"{PREFIX}{number}" for number in range(1, design.virtual_nodes + 1)]


def provide() -> None:
    """Take what virtual nodes need beside the programs of real nodes, before anything is begun."""
    programs.provide_emulator()
    programs.provide_kernel()


async def start(design: Design, *, dies_with_parent: bool) -> None:
    """Start them on the network of the real nodes; they are not Ready yet when this returns."""
    for name in names(design):
        node = VirtualNode(design, name, dies_with_parent=dies_with_parent)
        await asyncio.to_thread(_prepare, design, node)
        await node.start()


async def wait_until_usable(client: Client, design: Design) -> None:
    for name in names(design):
        async with asyncio.timeout(_SECONDS_TO_START):
            await _wait_until_usable(client, design, name)


async def _wait_until_usable(client: Client, design: Design, name: str) -> None:
    """Wait for as long as its machine runs."""
    while True:
        try:
            return await real_nodes.wait_for_node(client, design, name, _SECONDS_BETWEEN_LOOKS)
        except LocalClusterError:
            if not VirtualNode(design, name).is_running:
                raise


def _prepare(design: Design, node: VirtualNode) -> None:
    provided = node_programs.provide(design.kubernetes)
    folder = folder_of(design, node.name)
    folder.mkdir(parents=True)
    initramfs.write(programs.provide_kernel(), provided.busybox, folder / INITRAMFS)
    disk.write(design, _plan(design, node), node.number, provided, folder / DISK)


def _plan(design: Design, node: VirtualNode) -> NodePlan:
    """As the node sees itself."""
    return NodePlan(
        name=node.name,
        address=links.address_of(node.number),
        folder=disk.OWN,
        cluster="",
        group="",
        kubeconfig=str(design.kubeconfig(f"system:node:{node.name}")),
        network_pid=0,
        memory=MEMORY,
        search_path="",
    )
