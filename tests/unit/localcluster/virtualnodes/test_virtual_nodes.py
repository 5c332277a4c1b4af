"""What virtual nodes need, how they are started, and what is on their disks."""

import argparse
import os
import platform
import shutil
from pathlib import Path

import pytest
import yaml

from localcluster import __main__, credentials, state_dir
from localcluster.cluster import Cluster
from localcluster.components import Design
from localcluster.errors import LocalClusterError
from localcluster.host import processes
from localcluster.realnodes import real_nodes
from localcluster.realnodes.programs import NodePrograms
from localcluster.realnodes.real_node import RealNode
from localcluster.virtualnodes import disk, programs, virtual_node, virtual_nodes
from localcluster.virtualnodes.programs import Emulator, Kernel
from localcluster.virtualnodes.virtual_node import VirtualNode


@pytest.fixture
def design(tmp_path: Path) -> Design:
    made = Design(
        folder=str(tmp_path / "it"), first_port=18000, kubernetes="1.36.3", real_nodes=2, virtual_nodes=2
    )
    Path(made.folder).mkdir()
    credentials.create(made)
    return made


@pytest.fixture
def provided(tmp_path: Path) -> NodePrograms:
    """Any programs; some of them need libraries of this machine."""
    paths = [
        tmp_path / name for name in ("kubelet", "containerd/containerd", "runc", "cni", "pause", "busybox")
    ]
    beside = [paths[1].with_name(name) for name in ("containerd-shim-runc-v2", "ctr")]
    plugins = [paths[3] / name for name in ("bridge", "host-local", "loopback")]
    for path in (paths[0], paths[1], *beside, *plugins, paths[4], paths[5]):
        path.parent.mkdir(exist_ok=True)
        path.write_text(path.name)
    shutil.copy("/bin/true", paths[2])
    return NodePrograms(*paths)


@pytest.fixture
def root(design: Design, provided: NodePrograms, tmp_path: Path) -> Path:
    """What is on the disk of the first one, which has the third address."""
    Path(design.folder, "nodes").mkdir()
    Path(design.folder, "nodes", "images.tar").write_text("images")
    plan = virtual_nodes._plan(design, VirtualNode(design, "virtual-1"))
    disk.lay_out(tmp_path / "root", design, plan, 3, provided)
    return tmp_path / "root"


def test_the_disk_has_programs_libraries_images_and_settings(root: Path, provided: NodePrograms) -> None:
    assert (root / "usr/bin/kubelet").read_text() == "kubelet"
    assert (root / "usr/lib/cni/bridge").read_text() == "bridge"
    assert (root / "images.tar").read_text() == "images"
    assert os.access(root / "sbin/init", os.X_OK)
    assert (root / "etc/node/node.env").read_text().splitlines() == [
        "NAME=virtual-1",
        "ADDRESS=192.0.2.13/24",
        "LABELS=localcluster.reberth.dev/real=,localcluster.reberth.dev/virtual=",
    ]
    libraries = disk._list_libraries([provided.runc])
    assert any(path.name.startswith("libc.so") for path in libraries)
    assert all((root / path.relative_to("/")).exists() for path in libraries)


def test_all_files_that_its_settings_name_are_those_of_the_node(root: Path) -> None:
    kubeconfig = yaml.safe_load((root / "etc/node/kubeconfig.yaml").read_text())
    kubelet = yaml.safe_load((root / "etc/node/kubelet.yaml").read_text())
    cluster, user = kubeconfig["clusters"][0]["cluster"], kubeconfig["users"][0]["user"]
    assert cluster["server"] == "https://192.0.2.1:6443"
    named = [cluster["certificate-authority"], *user.values(), kubelet["tlsCertFile"], kubelet["resolvConf"]]
    assert all(path.startswith("/etc/node/") and (root / path.lstrip("/")).exists() for path in named)
    assert kubelet["evictionHard"]["memory.available"] == str(100 << 20)


def test_it_is_a_machine_of_its_own_with_a_cable_of_its_name(design: Design, tmp_path: Path) -> None:
    node = VirtualNode(design, "virtual-2")
    emulator = Emulator(Path("/q/qemu"), (Path("/q/share"),), (Path("/q/lib"),), Path("/q/modules"))
    words = node._list_arguments(emulator, Kernel(Path("/k/vmlinuz"), tmp_path))
    assert words[:3] == ["/q/qemu", "-L", "/q/share"]
    assert any(word.startswith("tap,id=cable,ifname=virtual-2,") for word in words)
    assert any("mac=52:54:00:00:00:04" in word for word in words)
    assert "psi=1" in words[words.index("-append") + 1]
    assert emulator.environment({"A": "b"}) == {
        "A": "b",
        "LD_LIBRARY_PATH": "/q/lib",
        "QEMU_MODULE_DIR": "/q/modules",
    }
    assert Emulator(Path("/usr/bin/qemu")).environment({"A": "b"}) == {"A": "b"}


async def test_one_that_was_never_made_or_does_not_run_is_named(design: Design) -> None:
    with pytest.raises(LocalClusterError, match="there is no virtual node virtual-7"):
        await VirtualNode(design, "virtual-7").start()
    with pytest.raises(LocalClusterError, match="virtual-1 is not running"):
        await VirtualNode(design, "virtual-1").kill()


def test_an_emulator_on_path_needs_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = tmp_path / "qemu-system-x86_64"
    found.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert programs.provide_emulator() == Emulator(found)


def test_they_are_refused_where_they_cannot_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(virtual_nodes, "find_basic_obstacle", lambda: None)
    monkeypatch.setattr(virtual_nodes, "_TUN", tmp_path)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(shutil, "which", lambda _program: "/it")
    monkeypatch.setattr(virtual_nodes, "_MEMINFO", tmp_path / "meminfo")
    (tmp_path / "meminfo").write_text(f"MemTotal: 1 kB\nMemAvailable: {5 << 20} kB\n")
    virtual_nodes.refuse(2, beside=6)
    with pytest.raises(virtual_nodes.NoVirtualNodes, match=r"they need 7\.5 GiB of memory, and 5\.0 GiB are"):
        virtual_nodes.refuse(3, beside=0)
    with pytest.raises(LocalClusterError, match="9 real and virtual nodes are too many"):
        virtual_nodes.refuse(3, beside=6)
    monkeypatch.setattr(virtual_nodes, "_TUN", tmp_path / "tun")
    with pytest.raises(virtual_nodes.NoVirtualNodes, match=r"there is no .*tun for their cables"):
        virtual_nodes.refuse(1, beside=0)
    monkeypatch.setattr(shutil, "which", lambda _program: None)
    with pytest.raises(virtual_nodes.NoVirtualNodes, match="mke2fs is not on PATH"):
        virtual_nodes.refuse(1, beside=0)
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(virtual_nodes.NoVirtualNodes, match="they need x86_64, and this is aarch64"):
        virtual_nodes.refuse(1, beside=0)
    virtual_nodes.refuse(0, beside=0)


def test_its_processes_are_those_of_nodes() -> None:
    assert real_nodes.is_ours(processes.Running("/it", "virtual-1", 1))
    assert virtual_node.PREFIX == "virtual-"


async def test_a_node_is_found_by_its_name_and_what_it_cannot_do_is_refused(
    design: Design, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(design)
    assert isinstance(cluster.node("virtual-1"), VirtualNode)
    assert isinstance(cluster.node("real-1"), RealNode)
    monkeypatch.setattr(state_dir, "load", lambda _name: cluster)
    asked = argparse.Namespace(name="it", action="press", node="virtual-1")
    with pytest.raises(LocalClusterError, match="press is not possible with a virtual node"):
        await __main__._node(asked)
