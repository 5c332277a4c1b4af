"""What the process that becomes a real node must know, as a file in the node's folder."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
CONTAINERD, KUBELET = SERVICES = ("containerd", "kubelet")
"""In the order of their start."""
_PLAN = "node.json"


@dataclass(frozen=True)
class NodePlan:
    name: str
    address: str
    folder: str
    cluster: str
    group: str
    kubeconfig: str
    network_pid: int
    memory: int
    search_path: str
    kubelet_flags: tuple[str, ...] = ()

    def path(self, *parts: str) -> Path:
        return Path(self.folder).joinpath(*parts)

    def write(self) -> None:
        self.path(_PLAN).write_text(json.dumps(dataclasses.asdict(self), indent=1))


def read_plan(folder: Path) -> NodePlan:
    content = json.loads((folder / _PLAN).read_text())
    return NodePlan(**{**content, "kubelet_flags": tuple(content["kubelet_flags"])})
