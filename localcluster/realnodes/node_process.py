"""The process that becomes a real node, and the first process in it.

It joins the node's cgroup, leaves this machine's namespaces, and forks: the child is pid 1 of the node,
mounts what belongs to it, and keeps containerd and kubelet running as systemd would. When either of the two
is killed, the kernel kills everything in the node, and what it mounted and linked is gone with it.

    python -m localcluster.realnodes.node_process FOLDER
"""

import os
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from localcluster.host import kernel, processes
from localcluster.host.kernel import Mount, Namespaces
from localcluster.realnodes import cgroups, links
from localcluster.realnodes.node_plan import CONTAINERD, CONTAINERD_SOCKET, KUBELET, NodePlan, read_plan

_SECONDS_BETWEEN_STARTS = 0.2
_SECONDS_BETWEEN_LOOKS = 0.02
# The kubelet sets these for the whole machine unless it finds them so.
_KERNEL_SETTINGS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
_DATA = {"kubelet": "/var/lib/kubelet", "containerd": "/var/lib/containerd", "podlogs": "/var/log/pods"}
_APART = Namespaces.MOUNT | Namespaces.CGROUP | Namespaces.UTS | Namespaces.IPC | Namespaces.PID


def main(folder: Path) -> None:
    plan = read_plan(folder)
    hierarchies = cgroups.list_hierarchies()
    cgroups.join(plan.group)
    kernel.unshare(Namespaces.NETWORK)
    links.connect_node(plan.name, plan.address, plan.network_pid)
    kernel.unshare(_APART)
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    kernel.die_with_parent()
    socket.sethostname(plan.name)
    mount_all(plan, hierarchies)
    NodeInit(plan).run()


def mount_all(plan: NodePlan, hierarchies: list[cgroups.Hierarchy]) -> None:
    """Give the node its own /proc, /sys, /run and /var; all else of this machine is read-only for it."""
    kernel.mount("none", "/", flags=Mount.RECURSIVE | Mount.PRIVATE)
    kernel.mount("none", "/", flags=Mount.RECURSIVE | Mount.SHARED)  # volumes have to reach the pods
    kernel.mount(plan.cluster, plan.cluster, flags=Mount.BIND)
    cluster = os.open(plan.cluster, os.O_PATH)
    kernel.mount("/", "/", flags=Mount.BIND | Mount.REMOUNT | Mount.READ_ONLY)
    kernel.mount("proc", "/proc", "proc")
    kernel.mount("sysfs", "/sys", "sysfs")
    _mount_cgroups(hierarchies)
    kernel.mount("tmpfs", "/run", "tmpfs", options="mode=755")
    _mount_var()
    Path(plan.cluster).mkdir(parents=True, exist_ok=True)
    kernel.mount(f"/proc/self/fd/{cluster}", plan.cluster, flags=Mount.BIND)  # it may be below /run or /var
    _mount_data(plan)
    _shield_kernel_settings(plan)


def _shield_kernel_settings(plan: NodePlan) -> None:
    """Show the node the settings that it would write, its own boot, and /proc/sys without a way to write."""
    kernel.mount("/proc/sys", "/proc/sys", flags=Mount.BIND)
    kernel.mount("/proc/sys/net", "/proc/sys/net", flags=Mount.BIND)  # of the network namespace: writable
    for name, value in {**_KERNEL_SETTINGS, "kernel/random/boot_id": str(uuid.uuid4())}.items():
        shown = plan.path("sysctl", name.replace("/", "."))
        shown.write_text(f"{value}\n")
        kernel.mount(shown, f"/proc/sys/{name}", flags=Mount.BIND)
    kernel.mount("/proc/sys", "/proc/sys", flags=Mount.BIND | Mount.REMOUNT | Mount.READ_ONLY)


def _mount_cgroups(hierarchies: list[cgroups.Hierarchy]) -> None:
    """Mount the hierarchies again: in this cgroup namespace their root is the node's own cgroup."""
    kernel.mount("tmpfs", "/sys/fs/cgroup", "tmpfs", options="mode=755")
    for hierarchy in hierarchies:
        target = Path("/sys/fs/cgroup") / hierarchy.folder.name
        target.mkdir()
        kernel.mount("cgroup", target, "cgroup", options=hierarchy.options)


def _mount_var() -> None:
    upper, work = Path("/run/var/upper"), Path("/run/var/work")
    for each in (upper, work):
        each.mkdir(parents=True)
    kernel.mount("overlay", "/var", "overlay", options=f"lowerdir=/var,upperdir={upper},workdir={work}")
    Path("/var/log/containers").mkdir(parents=True, exist_ok=True)
    Path("/run/lock").mkdir()


def _mount_data(plan: NodePlan) -> None:
    """What outlasts a reboot is on the disk; containerd's snapshots cannot stand on an overlay either."""
    for part, target in _DATA.items():
        Path(target).mkdir(parents=True, exist_ok=True)
        kernel.mount(plan.path("data", part), target, flags=Mount.BIND)


class NodeInit:
    """Pid 1: starts the services, starts again what ends, and reaps."""

    def __init__(self, plan: NodePlan) -> None:
        self._plan = plan
        self._services: dict[int, str] = {}

    def run(self) -> None:
        self._start(CONTAINERD)
        self._import_images()
        self._start(KUBELET)
        while True:
            pid, _ = os.wait()
            ended = self._services.pop(pid, None)
            if ended:
                time.sleep(_SECONDS_BETWEEN_STARTS)
                self._start(ended)

    def _start(self, service: str) -> None:
        log = Path(self._plan.cluster, "logs", f"{self._plan.name}-{service}.log")
        with log.open("ab") as out:
            started = subprocess.Popen(
                arguments(self._plan, service),
                env=environment(self._plan, service, os.environ),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        self._services[started.pid] = service
        started.returncode = 0  # `run` waits for it: its object must not

    def _import_images(self) -> None:
        """Once for the life of the node; a reboot finds them."""
        while not _accepts_connections(CONTAINERD_SOCKET):
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        imported = self._plan.path("data", "images-imported")
        if not imported.exists():
            archive = str(Path(self._plan.cluster, "nodes", "images.tar"))
            command = ["ctr", "--namespace", "k8s.io", "images", "import", "--local", archive]
            env = environment(self._plan, "images", os.environ)
            subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
            imported.touch()


def arguments(plan: NodePlan, service: str) -> list[str]:
    if service == CONTAINERD:
        return [CONTAINERD, f"--config={plan.path('containerd.toml')}", "--log-level=warn"]
    return [
        KUBELET,
        f"--config={plan.path('kubelet.yaml')}",
        f"--kubeconfig={plan.kubeconfig}",
        f"--hostname-override={plan.name}",
        f"--node-ip={plan.address}",
        "--cert-dir=/var/lib/kubelet/pki",
        "-v=2",
        *plan.kubelet_flags,
    ]


def environment(plan: NodePlan, service: str, given: Mapping[str, str]) -> dict[str, str]:
    return {
        **given,
        processes.TAG: f"{plan.cluster}#{plan.name}/{service}",
        "PATH": f"{plan.search_path}:{given.get('PATH', os.defpath)}",
        "TMPDIR": "/run",
    }


def _accepts_connections(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
    return True


if __name__ == "__main__":
    main(Path(sys.argv[1]))
