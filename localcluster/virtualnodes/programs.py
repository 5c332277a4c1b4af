"""The programs of a virtual node: QEMU and a kernel from Debian's packages, beside those of a real node."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from localcluster.build import debian

_EMULATOR = "qemu-system-x86_64"
_KERNEL = "linux-image-cloud-amd64"
_LIBRARIES = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")
_MODULES = "usr/lib/x86_64-linux-gnu/qemu/accel-tcg-x86_64.so"
_FIRMWARE = ("usr/share/qemu", "usr/share/seabios")


@dataclass(frozen=True)
class Emulator:
    program: Path
    firmware: tuple[Path, ...] = ()
    libraries: tuple[Path, ...] = ()
    modules: Path | None = None

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """Where it finds its parts if it is not installed."""
        if self.modules is None:
            return dict(given)
        libraries = ":".join(map(str, self.libraries))
        return {**given, "LD_LIBRARY_PATH": libraries, "QEMU_MODULE_DIR": str(self.modules)}


@dataclass(frozen=True)
class Kernel:
    image: Path
    modules: Path
    """The folder of its modules, by the parts of the kernel."""

    def find_module(self, name: str) -> Path:
        found = next(self.modules.rglob(f"{name}.ko"), None)
        if found is None:
            raise FileNotFoundError(f"there is no module {name} in {self.modules}")
        return found


def provide_emulator() -> Emulator:
    """QEMU on PATH, or from its package with what that needs."""
    on_path = shutil.which(_EMULATOR)
    if on_path:
        return Emulator(Path(on_path))
    folders = debian.contents("qemu-system-x86")
    return Emulator(
        _find(folders, (f"usr/bin/{_EMULATOR}",))[0],
        _find(folders, _FIRMWARE),
        _find(folders, _LIBRARIES),
        _find(folders, (_MODULES,))[0].parent,
    )


def _find(folders: list[Path], parts: tuple[str, ...]) -> tuple[Path, ...]:
    return tuple(path for each in folders for part in parts if (path := each / part).exists())


def provide_kernel() -> Kernel:
    """The newest kernel for virtual machines that the package lists have, and the cached one from then on."""
    (folder,) = debian.contents(_KERNEL, only="linux-image-")
    return Kernel(next(folder.glob("boot/vmlinuz-*")), next(folder.glob("lib/modules/*/kernel")))
