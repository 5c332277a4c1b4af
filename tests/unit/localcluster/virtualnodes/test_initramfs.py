"""The first file system of a virtual node is an archive as the kernel unpacks it."""

import gzip
import subprocess
from pathlib import Path

import pytest

from localcluster.virtualnodes import initramfs
from localcluster.virtualnodes.initramfs import CpioArchive
from localcluster.virtualnodes.programs import Kernel

HEADER = 110  # bytes: the magic number and 13 numbers of 8 digits


def read(content: bytes) -> dict[str, tuple[int, bytes]]:
    """Mode and content of each file, by its name."""
    found, at = dict[str, tuple[int, bytes]](), 0
    while True:
        assert content[at : at + 6] == b"070701"
        numbers = [int(content[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        mode, size, length = numbers[1], numbers[6], numbers[11]
        name = content[at + HEADER : at + HEADER + length - 1].decode()
        start = at + HEADER + length + (-(at + HEADER + length) % 4)
        if name == "TRAILER!!!":
            return found
        found[name] = mode, content[start : start + size]
        at = start + size + (-(start + size) % 4)


def test_files_folders_and_the_console_are_what_was_added() -> None:
    archive = CpioArchive()
    archive.add_folder("bin")
    archive.add_file("bin/odd", b"three")
    archive.add_file("even", b"four", mode=0o644)
    archive.add_console()
    found = read(archive.end())
    assert found == {
        "bin": (0o040755, b""),
        "bin/odd": (0o100755, b"three"),
        "even": (0o100644, b"four"),
        "dev/console": (0o020600, b""),
    }


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    modules = tmp_path / "modules"
    (modules / "deep").mkdir(parents=True)
    for name in initramfs._MODULES:
        (modules / "deep" / f"{name}.ko").write_bytes(name.encode())
    return Kernel(tmp_path / "vmlinuz", modules)


def test_the_modules_are_there_in_the_order_in_which_they_need_each_other(
    kernel: Kernel, tmp_path: Path
) -> None:
    (tmp_path / "busybox").write_bytes(b"it")
    initramfs.write(kernel, tmp_path / "busybox", tmp_path / "made.gz")
    found = read(gzip.decompress((tmp_path / "made.gz").read_bytes()))
    order = found["modules/order"][1].decode().split()
    assert order[0] == "virtio_ring.ko"
    assert order.index("stp.ko") < order.index("bridge.ko")
    assert all(found[f"modules/{name}"][1] == name.removesuffix(".ko").encode() for name in order)
    assert found["bin/busybox"] == (0o100755, b"it")


def test_a_module_that_the_kernel_does_not_have_is_named(kernel: Kernel) -> None:
    with pytest.raises(FileNotFoundError, match=r"no module toy in .*modules"):
        kernel.find_module("toy")


@pytest.mark.parametrize("script", ["first-init.sh", "init.sh"])
def test_the_scripts_of_the_node_are_valid(script: str) -> None:
    file = Path(initramfs.__file__).with_name(script)
    assert subprocess.run(["sh", "-n", str(file)], check=False).returncode == 0
