"""The real nodes of a cluster together: their files, their network, their start."""

import asyncio
from pathlib import Path
from typing import Any

from localcluster.client import Client
from localcluster.components import API_SERVER, NODES_SOCKET, Design
from localcluster.errors import LocalClusterError
from localcluster.host import processes
from localcluster.nodes import is_ready
from localcluster.realnodes import images, links, node_files, programs, requirements
from localcluster.realnodes.node_files import NodeShape
from localcluster.realnodes.real_node import NETWORK, RealNode, start_module

_SECONDS_TO_START = 60.0
_SECONDS_BETWEEN_LOOKS = 0.02


def refuse(count: int) -> None:
    """Refuse what this machine cannot do, before anything is begun."""
    if not count:
        return
    if count > links.MOST_NODES:
        raise LocalClusterError(
            f"{count} real nodes are too many: there are addresses for {links.MOST_NODES}"
        )
    requirements.refuse()


def names(design: Design) -> list[str]:
    return [node_files.node_name(number) for number in range(1, design.real_nodes + 1)]


def is_ours(running: processes.Running) -> bool:
    """Whether a process is of a node with a real kubelet: they are killed, for their data go too."""
    return running.name.startswith(("real-", "virtual-"))


async def start(design: Design, shape: NodeShape, *, dies_with_parent: bool) -> None:
    """Start network and nodes; they are not Ready yet when this returns."""
    provided = await asyncio.to_thread(programs.provide, design.kubernetes)
    design.path("nodes").mkdir(exist_ok=True)
    await asyncio.to_thread(images.write, provided, design.path("nodes", "images.tar"))
    await _start_network(design, dies_with_parent=dies_with_parent)
    for number in range(1, design.real_nodes + 1):
        node_files.write(design, number, provided, shape)
    nodes = [RealNode(design, name, dies_with_parent=dies_with_parent) for name in names(design)]
    await asyncio.gather(*(node.start() for node in nodes))


async def _start_network(design: Design, *, dies_with_parent: bool) -> None:
    socket = design.path(NODES_SOCKET)
    arguments = (str(socket), str(design.port(API_SERVER)))
    running = start_module(design, NETWORK, "network", *arguments, dies=dies_with_parent)
    async with asyncio.timeout(_SECONDS_TO_START):
        while not socket.exists():
            if not processes.is_alive(running):
                raise LocalClusterError(
                    f"the network of the real nodes ended: {_last_words(design, NETWORK)}"
                )
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)


async def wait_until_usable(client: Client, design: Design) -> None:
    for name in names(design):
        await wait_for_node(client, design, name, _SECONDS_TO_START)


async def wait_for_node(client: Client, design: Design, name: str, seconds: float) -> None:
    try:
        await client.wait(f"/api/v1/nodes/{name}", _is_usable, seconds=seconds, every=0.05)
    except LocalClusterError as error:
        words = "\n".join(_last_words(design, log) for log in (name, f"{name}-kubelet"))
        raise LocalClusterError(f"{name} is not Ready: {error}\n{words}") from error


def _is_usable(node: Any) -> bool:
    return is_ready(node) and not node["spec"].get("taints")


def _last_words(design: Design, log: str) -> str:
    path: Path = design.path("logs", f"{log}.log")
    lines = path.read_text(errors="replace").strip().splitlines() if path.exists() else []
    return "\n".join([*lines[-5:], f"(full log: {path})"])
