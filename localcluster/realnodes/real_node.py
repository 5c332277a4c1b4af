"""One real node: start it, and let happen to it what happens to nodes.

    node = cluster.real_node("real-1")
    node.cut_off()

As with the components, no state is kept in this process alone: any process can end what another one started.
"""

import asyncio
import dataclasses
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import yaml

from localcluster.build import download_cache
from localcluster.components import Design
from localcluster.errors import LocalClusterError
from localcluster.host import processes
from localcluster.realnodes import cgroups, links
from localcluster.realnodes.node_files import folder_of
from localcluster.realnodes.node_plan import KUBELET, SERVICES, NodePlan, read_plan

NETWORK = "real-network"
ACTIONS = ("kill", "start", "reboot", "freeze", "thaw", "cut-off", "reconnect", "press", "relieve")
"""What `python -m localcluster node` does: the methods below."""
_ROOT = Path(__file__).parents[2]
_SECONDS_TO_JOIN = 10.0
_SECONDS_BETWEEN_LOOKS = 0.01


class RealNode:
    def __init__(self, design: Design, name: str, *, dies_with_parent: bool = False) -> None:
        self._design = design
        self.name = name
        self._dies_with_parent = dies_with_parent

    @property
    def plan(self) -> NodePlan:
        try:
            return read_plan(folder_of(self._design, self.name))
        except FileNotFoundError:
            raise LocalClusterError(f"there is no real node {self.name} in {self._design.folder}") from None

    async def start(self) -> None:
        """Start the node or switch it on again; it is not Ready yet when this returns."""
        plan = dataclasses.replace(self.plan, network_pid=find_network(self._design).pid)
        plan.write()
        await asyncio.to_thread(self._start_process, plan.group)

    def _start_process(self, group: str) -> None:
        with download_cache.locked(download_cache.cache_folder() / "real-nodes.lock"):
            cgroups.remove_deserted()  # under the lock, so that none is removed before its node has joined it
            cgroups.create(group)
            running = start_module(
                self._design, self.name, "node_process", self.plan.folder, dies=self._dies_with_parent
            )
            deadline = time.monotonic() + _SECONDS_TO_JOIN
            while not cgroups.list_processes(group):
                if not processes.is_alive(running) or time.monotonic() > deadline:
                    raise LocalClusterError(f"real node {self.name} cannot start; see {self._log(running)}")
                time.sleep(_SECONDS_BETWEEN_LOOKS)

    def _log(self, running: processes.Running) -> Path:
        return self._design.path("logs", f"{running.name}.log")

    async def kill(self) -> None:
        """Switch it off at once, as if its power were cut: no process in it says goodbye."""
        await processes.kill(*find_processes(self._design, self.name))
        await asyncio.to_thread(cgroups.remove, self.plan.group)

    async def reboot(self) -> None:
        await self.kill()
        await self.start()

    async def configure(self, **fields: Any) -> None:
        """Start its kubelet again with these fields of the KubeletConfiguration; the pods run on."""
        file = self.plan.path("kubelet.yaml")
        file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), **fields}))
        await processes.kill(self.service(KUBELET))

    def freeze(self) -> None:
        """Stop every process in it, pods too; its network stays."""
        cgroups.signal_all(self.plan.group, signal.SIGSTOP)

    def thaw(self) -> None:
        cgroups.signal_all(self.plan.group, signal.SIGCONT)

    def cut_off(self) -> None:
        """Pull its cable: it runs on, and neither side hears of the other."""
        links.set_cable(self.name, "down", find_network(self._design).pid)

    def reconnect(self) -> None:
        links.set_cable(self.name, "up", find_network(self._design).pid)

    async def press(self) -> None:
        """Let a process outside all pods take all memory of the node, until `relieve`."""
        arguments = (self.plan.group, str(self.plan.memory))
        name = f"{self.name}/pressure"
        start_module(self._design, name, "pressure", *arguments, dies=self._dies_with_parent)

    async def relieve(self) -> None:
        await processes.kill(*find_processes(self._design, f"{self.name}/pressure"))

    def service(self, name: str) -> processes.Running:
        """Its kubelet or containerd, to freeze or kill that alone; a killed one is started again."""
        if name not in SERVICES:
            raise LocalClusterError(f"{name} is not a service of a node; known: {', '.join(SERVICES)}")
        for running in find_processes(self._design, f"{self.name}/{name}"):
            if os.path.basename(os.readlink(f"/proc/{running.pid}/exe")) == name:  # noqa: PTH119, PTH115
                return running  # the shims have containerd's tag
        raise LocalClusterError(f"{name} of {self.name} is not running")


def start_module(
    design: Design, name: str, module: str, *arguments: str, dies: bool = False
) -> processes.Running:
    """Start a module of this package as a process of the cluster."""
    return processes.start(
        [sys.executable, "-m", f"{__package__}.{module}", *arguments],
        folder=Path(design.folder),
        name=name,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        dies_with_parent=dies,
    )


def find_processes(design: Design, name: str) -> list[processes.Running]:
    """The processes of a node, of a service of it, or of the network."""
    found = processes.find(Path(design.folder))
    return [each for each in found if each.name == name or each.name.startswith(f"{name}/")]


def find_network(design: Design) -> processes.Running:
    found = find_processes(design, NETWORK)
    if not found:
        raise LocalClusterError(f"the network of the real nodes of {design.folder} is not running")
    return found[0]
