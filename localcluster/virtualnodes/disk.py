"""The disk of a virtual node: its programs, its images, and its own settings and certificates."""

import json
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import yaml

from localcluster.components import Design
from localcluster.errors import LocalClusterError
from localcluster.realnodes import links, node_files
from localcluster.realnodes.node_files import NodeShape
from localcluster.realnodes.node_plan import NodePlan
from localcluster.realnodes.programs import NodePrograms

OWN = "/etc/node"
"""Where a virtual node has its settings and certificates."""
_INIT = Path(__file__).with_name("init.sh")
_SIZE = "2G"  # of a file with holes
_SHAPE = NodeShape(labels={"localcluster.reberth.dev/virtual": ""})
_FILES = {
    "group": "root:x:0:\n",
    "hosts": "127.0.0.1 localhost\n",  # containerd copies it for each pod
    "passwd": "root:x:0:0:root:/root:/bin/sh\n",  # the kubelet looks for a user of its name
    "resolv.conf": "",
}
_EMPTY = ("bin", "dev", "proc", "run", "sbin", "sys", "tmp", "var/lib/kubelet", "var/log")


def write(design: Design, plan: NodePlan, number: int, programs: NodePrograms, target: Path) -> None:
    """Write an ext4 file system without mounting one."""
    root = target.with_name("root")
    lay_out(root, design, plan, number, programs)
    command = ["mke2fs", "-q", "-F", "-t", "ext4", "-d", str(root), str(target), _SIZE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LocalClusterError(f"mke2fs cannot write the disk of {plan.name}: {done.stderr.strip()}")
    shutil.rmtree(root)


def lay_out(root: Path, design: Design, plan: NodePlan, number: int, programs: NodePrograms) -> None:
    for folder in _EMPTY:
        (root / folder).mkdir(parents=True)
    _put_programs(root, programs)
    shutil.copy(design.path("nodes", "images.tar"), root / "images.tar")
    _put_settings(root, design, plan, number)
    for name, text in _FILES.items():
        (root / "etc" / name).write_text(text)


def _put_programs(root: Path, programs: NodePrograms) -> None:
    beside = programs.containerd.parent
    shim, ctr = beside / "containerd-shim-runc-v2", beside / "ctr"
    plugins = [programs.cni / name for name in ("bridge", "host-local", "loopback")]
    _put(root / "usr/bin", [programs.kubelet, programs.containerd, shim, ctr, programs.runc])
    _put(root / "usr/lib/cni", plugins)
    _put(root / "bin", [programs.busybox])
    (root / "bin/sh").symlink_to("busybox")
    for library in _list_libraries([programs.runc, *plugins]):
        _put(root / library.parent.relative_to("/"), [library])
    shutil.copy(_INIT, root / "sbin/init")
    (root / "sbin/init").chmod(0o755)


def _put(folder: Path, files: Iterable[Path]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copy(file, folder)


def _list_libraries(programs: Iterable[Path]) -> set[Path]:
    """Debian's programs need some libraries of this machine."""
    said = "".join(
        subprocess.run(["ldd", str(each)], capture_output=True, text=True, check=False).stdout
        for each in programs
    )
    return {Path(word) for word in said.split() if word.startswith("/")}


def _put_settings(root: Path, design: Design, plan: NodePlan, number: int) -> None:
    own = root / OWN.lstrip("/")
    (own / "cni").mkdir(parents=True)
    for name, source in node_files.issue_certificates(design, plan).items():
        shutil.copy(source, own / name)
    kubelet = node_files.kubelet_configuration(plan, _SHAPE, _SHAPE.memory)
    (own / "kubelet.yaml").write_text(yaml.safe_dump(kubelet))
    (own / "containerd.toml").write_text(node_files.containerd_configuration("/usr/lib/cni", OWN))
    (own / "cni/10-bridge.conflist").write_text(json.dumps(node_files.cni_configuration(number)))
    (own / "resolv.conf").touch()
    (own / "kubeconfig.yaml").write_text(_move_kubeconfig(Path(plan.kubeconfig)))
    settings = {
        "NAME": plan.name,
        "ADDRESS": f"{plan.address}/{links.RANGE.prefixlen}",
        "LABELS": node_files.say_labels(_SHAPE.labels),
    }
    (own / "node.env").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))


def _move_kubeconfig(file: Path) -> str:
    """The kubeconfig of this machine, with the paths that its files have in the node."""
    content = yaml.safe_load(file.read_text())
    content["clusters"][0]["cluster"]["certificate-authority"] = f"{OWN}/ca.crt"
    own = {"client-certificate": f"{OWN}/client.crt", "client-key": f"{OWN}/client.key"}
    content["users"][0]["user"] = own
    return str(yaml.safe_dump(content, sort_keys=False))
