"""One virtual node: a real kubelet in QEMU, and what happens to nodes.

    node = cluster.virtual_node("virtual-1")
    node.cut_off()

The processor is emulated, so it runs everywhere alike, and slowly.
"""

import os
import signal
from pathlib import Path

from localcluster.components import Design
from localcluster.errors import LocalClusterError
from localcluster.host import processes
from localcluster.realnodes import links
from localcluster.realnodes.node_files import folder_of
from localcluster.realnodes.real_node import find_network
from localcluster.virtualnodes import programs

DISK, INITRAMFS, CABLE = "disk.img", "initramfs.gz", "connect.sh"
PREFIX = "virtual-"
MEMORY = 2560 << 20
_PROCESSORS = 2
_CONNECT = f"""#!/bin/sh
exec ip link set "$1" master {links.BRIDGE} up
"""


class VirtualNode:
    def __init__(self, design: Design, name: str, *, dies_with_parent: bool = False) -> None:
        self._design = design
        self.name = name
        self._dies_with_parent = dies_with_parent

    @property
    def number(self) -> int:
        """Of its address; real nodes come first."""
        return self._design.real_nodes + int(self.name.removeprefix(PREFIX))

    @property
    def folder(self) -> Path:
        return folder_of(self._design, self.name)

    async def start(self) -> None:
        """Switch it on; it is not Ready yet when this returns. Its console is its log."""
        if not (self.folder / DISK).exists():
            raise LocalClusterError(f"there is no virtual node {self.name} in {self._design.folder}")
        connect = self.folder / CABLE
        connect.write_text(_CONNECT)
        connect.chmod(0o755)
        emulator, kernel = programs.provide_emulator(), programs.provide_kernel()
        inside = ["nsenter", "--target", str(find_network(self._design).pid), "--net", "--"]
        processes.start(
            [*inside, *self._list_arguments(emulator, kernel)],
            folder=Path(self._design.folder),
            name=self.name,
            env=emulator.environment(os.environ),
            dies_with_parent=self._dies_with_parent,
        )

    def _list_arguments(self, emulator: programs.Emulator, kernel: programs.Kernel) -> list[str]:
        firmware = [word for folder in emulator.firmware for word in ("-L", str(folder))]
        return [
            *(str(emulator.program), *firmware),
            *("-machine", "pc", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", str(_PROCESSORS)),
            *("-m", f"{MEMORY >> 20}M", "-display", "none", "-nodefaults", "-no-reboot", "-serial", "stdio"),
            *("-kernel", str(kernel.image), "-initrd", str(self.folder / INITRAMFS)),
            *("-append", "console=ttyS0 quiet psi=1 panic=1 mitigations=off"),
            *("-drive", f"file={self.folder / DISK},if=virtio,format=raw,cache=unsafe"),
            *("-netdev", f"tap,id=cable,ifname={self.name},script={self.folder / CABLE},downscript=no"),
            *("-device", f"virtio-net-pci,netdev=cable,mac=52:54:00:00:00:{self.number:02x},romfile="),
        ]

    async def kill(self) -> None:
        """Cut its power: no process in it says goodbye. Its cable goes with it."""
        await processes.kill(self.process())

    async def reboot(self) -> None:
        await self.kill()
        await self.start()

    def freeze(self) -> None:
        """Stop its processors."""
        processes.send(self.process(), signal.SIGSTOP)

    def thaw(self) -> None:
        processes.send(self.process(), signal.SIGCONT)

    def cut_off(self) -> None:
        """Pull its cable: it runs on, and neither side hears of the other."""
        links.set_cable(self.name, "down", find_network(self._design).pid)

    def reconnect(self) -> None:
        links.set_cable(self.name, "up", find_network(self._design).pid)

    @property
    def is_running(self) -> bool:
        return bool(self._find())

    def process(self) -> processes.Running:
        found = self._find()
        if not found:
            raise LocalClusterError(f"{self.name} is not running")
        return found[0]

    def _find(self) -> list[processes.Running]:
        return [each for each in processes.find(Path(self._design.folder)) if each.name == self.name]
