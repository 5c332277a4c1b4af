"""The programs of a real node: built from Go modules, or unpacked from Debian's packages."""

from dataclasses import dataclass
from pathlib import Path

from localcluster.build import build, debian, products


@dataclass(frozen=True)
class NodePrograms:
    kubelet: Path
    containerd: Path
    """Beside it: its shim and ctr."""
    runc: Path
    cni: Path
    """The folder of the CNI plugins."""
    pause: Path
    busybox: Path

    @property
    def search_path(self) -> str:
        return ":".join(str(each.parent) for each in (self.kubelet, self.containerd, self.runc))


def provide(kubelet_version: str) -> NodePrograms:
    """Build and download what is not there yet."""
    built = build.programs(products.kubelet(kubelet_version), products.CONTAINERD, products.PAUSE)
    return NodePrograms(
        kubelet=built["kubelet"],
        containerd=built["containerd"],
        runc=debian.content("runc") / "usr/sbin/runc",
        cni=debian.content("containernetworking-plugins") / "usr/lib/cni",
        pause=built["pause"],
        busybox=debian.content("busybox-static") / "bin/busybox",
    )
