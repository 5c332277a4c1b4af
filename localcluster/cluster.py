"""A cluster: its folder, its components, and the operations on them.

No state is kept in this process alone: any other process can take the cluster down.
"""

import asyncio
import dataclasses
import shutil
import signal
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp

from localcluster import components, credentials, design_files
from localcluster.build import build, products
from localcluster.client import Client
from localcluster.components import API_SERVER, CONTROLLERS, ETCD, KWOK, SCHEDULER, Design
from localcluster.errors import LocalClusterError
from localcluster.host import ports, processes
from localcluster.nodes import add_nodes
from localcluster.realnodes import cgroups, real_nodes
from localcluster.realnodes.node_files import NodeShape
from localcluster.realnodes.real_node import RealNode
from localcluster.virtualnodes import virtual_nodes
from localcluster.virtualnodes.virtual_node import PREFIX, VirtualNode

_SECONDS_TO_START = 60.0
_SECONDS_BETWEEN_LOOKS = 0.03


class Cluster:
    """One control plane on this machine. Every operation can be cancelled: `down` cleans up."""

    def __init__(
        self, design: Design, *, dies_with_parent: bool = False, real_shape: NodeShape | None = None
    ) -> None:
        self.design = design
        self._dies_with_parent = dies_with_parent
        self._real_shape = real_shape or NodeShape()

    @property
    def folder(self) -> Path:
        return Path(self.design.folder)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.design.kubeconfig(credentials.ADMIN)

    def client(self) -> Client:
        return Client(self.design)

    def user(self, name: str, groups: Sequence[str] = ()) -> Path:
        """Kubeconfig of any user in any groups."""
        return credentials.certify(self.design, name, groups)

    def spare_port(self, number: int = 0) -> int:
        """A loopback port of the cluster's block that no component uses."""
        if not 0 <= number < ports.BLOCK - components.FIRST_SPARE_PORT:
            raise ValueError(f"spare port {number} does not exist")
        return self.design.first_port + components.FIRST_SPARE_PORT + number

    async def up(self) -> None:
        """Start all components of the design and wait until they are ready."""
        base = [name for name in (ETCD, API_SERVER) if name in self.design.components]
        await asyncio.gather(*(self.start(name) for name in base))
        rest = [name for name in self.design.components if name not in base]
        await asyncio.gather(*(self.start(name) for name in rest), self._start_kubelets())
        async with self.client() as client:
            if CONTROLLERS in self.design.components:  # pods are refused until their account exists
                await client.wait("/api/v1/namespaces/default/serviceaccounts/default", bool)
            await real_nodes.wait_until_usable(client, self.design)
            await virtual_nodes.wait_until_usable(client, self.design)

    async def _start_kubelets(self) -> None:
        if self.design.has_kubelets:
            await real_nodes.start(self.design, self._real_shape, dies_with_parent=self._dies_with_parent)
            await virtual_nodes.start(self.design, dies_with_parent=self._dies_with_parent)

    def real_node(self, name: str) -> RealNode:
        return RealNode(self.design, name, dies_with_parent=self._dies_with_parent)

    def virtual_node(self, name: str) -> VirtualNode:
        return VirtualNode(self.design, name, dies_with_parent=self._dies_with_parent)

    def node(self, name: str) -> RealNode | VirtualNode:
        return self.virtual_node(name) if name.startswith(PREFIX) else self.real_node(name)

    async def down(self) -> None:
        """Stop all processes with this cluster's tag, free its ports, delete its folder."""
        await end_all(self.folder)
        ports.release(self.design.first_port, self.folder)
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)

    async def start(self, component: str, *flags: str) -> None:
        """Start one component, with these flags after its own, and wait until it is ready."""
        if flags:
            self.design = dataclasses.replace(self.design, flags={**self.design.flags, component: flags})
            design_files.write(self.design)
        program = await asyncio.to_thread(_program, self.design, component)
        running = processes.start(
            [str(program), *components.arguments(self.design, component)],
            folder=self.folder,
            name=component,
            dies_with_parent=self._dies_with_parent,
        )
        await self._wait_until_ready(component, running)

    async def stop(self, component: str) -> None:
        """SIGTERM and wait for the end."""
        await processes.stop(self.process(component))

    async def kill(self, component: str) -> None:
        """SIGKILL and wait for the end."""
        await processes.kill(self.process(component))

    def freeze(self, component: str) -> None:
        processes.send(self.process(component), signal.SIGSTOP)

    def thaw(self, component: str) -> None:
        processes.send(self.process(component), signal.SIGCONT)

    async def restart(self, component: str, *flags: str) -> None:
        await self.stop(component)
        await self.start(component, *flags)

    async def schedule_with(self, configuration: Path | Mapping[str, Any], *flags: str) -> None:
        """Restart kube-scheduler with another configuration; the connection to the API server is added."""
        design_files.write_scheduler_configuration(self.design, configuration)
        await self.restart(SCHEDULER, *flags)

    def process(self, component: str) -> processes.Running:
        found = [running for running in processes.find(self.folder) if running.name == component]
        if not found:
            raise LocalClusterError(f"{component} of {self.folder.name} is not running")
        return found[0]

    def log(self, component: str) -> Path:
        return self.folder / "logs" / f"{component}.log"

    async def add_nodes(self, count: int, **shape: Any) -> list[str]:
        """Nodes that pods may land on; see `localcluster.nodes.add_nodes`."""
        async with self.client() as client:
            return await add_nodes(client, count, **shape)

    async def _wait_until_ready(self, component: str, running: processes.Running) -> None:
        url = components.ready_url(self.design, component)
        try:
            async with asyncio.timeout(_SECONDS_TO_START):
                while not await _answers(url):
                    if not processes.is_alive(running):
                        raise LocalClusterError(
                            f"{component} ended while starting: {self._last_words(component)}"
                        )
                    await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
        except TimeoutError as error:
            words = self._last_words(component)
            raise LocalClusterError(
                f"{component} not ready after {_SECONDS_TO_START:g} s: {words}"
            ) from error

    def _last_words(self, component: str) -> str:
        lines = self.log(component).read_text(errors="replace").strip().splitlines()
        # An error about flags comes before the usage text; any other error is at the end.
        telling = [line for line in lines if "rror" in line or "unknown" in line or "flag provided" in line]
        return "\n".join([*(telling or lines)[-5:], f"(full log: {self.log(component)})"])


async def end_all(folder: Path) -> None:
    """Stop other processes of the folder with SIGTERM, the components with SIGKILL: their data goes too."""
    found = processes.find(folder)
    ours = [running for running in found if running.name in components.ALL or real_nodes.is_ours(running)]
    await processes.stop(*(running for running in found if running not in ours))
    await processes.kill(*ours)
    await asyncio.to_thread(cgroups.remove_all, folder)


def _program(design: Design, component: str) -> Path:
    kubernetes = products.kubernetes(design.kubernetes)
    made_by = {ETCD: products.ETCD, KWOK: products.KWOK}
    return build.programs(made_by.get(component, kubernetes))[component]


async def _answers(url: str) -> bool:
    """Whether the URL answers 200. The certificate is not verified: it is a loopback port of ours."""
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    timeout = aiohttp.ClientTimeout(total=2)
    connector = aiohttp.TCPConnector(ssl=trust)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        try:
            async with session.get(url) as answer:
                return answer.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False
