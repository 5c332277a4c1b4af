"""The first file system of a virtual node: a shell and the modules without which it would find no disk."""

import gzip
import stat
from dataclasses import dataclass, field
from pathlib import Path

from localcluster.virtualnodes.programs import Kernel

_MODULES = (
    *("virtio_ring", "virtio", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci", "virtio_blk"),
    *("failover", "net_failover", "virtio_net", "llc", "stp", "bridge", "veth", "overlay"),
)
"""In the order in which they need each other."""
_INIT = Path(__file__).with_name("first-init.sh")
_CONSOLE = (5, 1)  # /dev/console: the kernel opens it before anything is mounted
_MAGIC, _END = "070701", "TRAILER!!!"


@dataclass
class CpioArchive:
    """What the kernel unpacks: the format `newc` of cpio."""

    content: bytearray = field(default_factory=bytearray)
    _entries: int = 0

    def add_file(self, name: str, data: bytes, mode: int = 0o755) -> None:
        self._add(name, stat.S_IFREG | mode, data)

    def add_folder(self, name: str) -> None:
        self._add(name, stat.S_IFDIR | 0o755)

    def add_console(self) -> None:
        self._add("dev/console", stat.S_IFCHR | 0o600, device=_CONSOLE)

    def end(self) -> bytes:
        self._add(_END, 0)
        return bytes(self.content)

    def _add(self, name: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)) -> None:
        self._entries += 1
        path = name.encode() + b"\0"
        fields = (self._entries, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(path), 0)
        self.content += _MAGIC.encode() + b"".join(b"%08X" % number for number in fields) + path
        self._pad()
        self.content += data
        self._pad()

    def _pad(self) -> None:
        self.content += b"\0" * (-len(self.content) % 4)


def write(kernel: Kernel, busybox: Path, target: Path) -> None:
    archive = CpioArchive()
    for folder in ("bin", "dev", "disk", "modules", "proc"):
        archive.add_folder(folder)
    archive.add_console()
    archive.add_file("bin/busybox", busybox.read_bytes())
    archive.add_file("init", _INIT.read_bytes())
    archive.add_file("modules/order", "\n".join(f"{name}.ko" for name in _MODULES).encode())
    for name in _MODULES:
        archive.add_file(f"modules/{name}.ko", kernel.find_module(name).read_bytes(), mode=0o644)
    target.write_bytes(gzip.compress(archive.end(), compresslevel=1))
