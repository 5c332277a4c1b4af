"""The files of a real node: its certificates, and the settings of kubelet, containerd and CNI.

A node sees its own folder at the same path as this machine does.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from localcluster import credentials
from localcluster.components import REAL_NODE_LABEL, Design
from localcluster.credentials import Authority
from localcluster.realnodes import cgroups, images, links
from localcluster.realnodes.node_plan import CONTAINERD_SOCKET, NodePlan
from localcluster.realnodes.programs import NodePrograms

_MEMORY = 2 << 30
_CONTAINERD = """version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "{socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{pause}"
[plugins."io.containerd.cri.v1.runtime"]
  # Without CAP_SYS_RESOURCE no score can be lowered, and every pod would fail.
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["{plugins}"]
    conf_dir = "{folder}/cni"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      SystemdCgroup = false
"""


@dataclass(frozen=True)
class NodeShape:
    """How a real node differs from the usual one."""

    memory: int = _MEMORY
    """Bytes. The kubelet sees all of the machine's; it evicts pods when less than the difference is left."""
    kubelet: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the KubeletConfiguration."""
    labels: Mapping[str, str] = field(default_factory=dict)


def write(design: Design, number: int, programs: NodePrograms, shape: NodeShape) -> NodePlan:
    name = node_name(number)
    plan = NodePlan(
        name=name,
        address=links.address_of(number),
        folder=str(folder_of(design, name)),
        cluster=design.folder,
        group=cgroups.name(Path(design.folder), name),
        kubeconfig=str(design.kubeconfig(f"system:node:{name}")),
        network_pid=0,
        memory=shape.memory,
        search_path=programs.search_path,
        kubelet_flags=(f"--node-labels={say_labels(shape.labels)}",),
    )
    for part in ("cni", "data/kubelet", "data/containerd", "data/podlogs", "sysctl"):
        plan.path(part).mkdir(parents=True, exist_ok=True)
    _write_certificates(design, plan)
    plan.path("kubelet.yaml").write_text(yaml.safe_dump(kubelet_configuration(plan, shape, _total_memory())))
    plan.path("cni", "10-bridge.conflist").write_text(json.dumps(cni_configuration(number)))
    plan.path("containerd.toml").write_text(containerd_configuration(str(programs.cni), plan.folder))
    plan.path("resolv.conf").touch()
    plan.write()  # the network is found when the node is started
    return plan


def node_name(number: int) -> str:
    return f"real-{number}"


def folder_of(design: Design, name: str) -> Path:
    return design.path("nodes", name)


def say_labels(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in {REAL_NODE_LABEL: "", **labels}.items())


def _write_certificates(design: Design, plan: NodePlan) -> None:
    issued = issue_certificates(design, plan)
    for name in ("ca.crt", "server.crt", "server.key"):
        shutil.copy(issued[name], plan.path(name))


def issue_certificates(design: Design, plan: NodePlan) -> dict[str, Path]:
    """Issue the certificates of a node and write its kubeconfig; the files by their names in the node."""
    authority, user = Authority(design.path("pki")), f"system:node:{plan.name}"
    client = authority.issue(user, organizations=["system:nodes"])
    server = authority.issue(f"{plan.name}-kubelet", hosts=[plan.name, plan.address])
    paths = {"client-certificate": str(client.certificate), "client-key": str(client.key)}
    url = f"https://{links.GATEWAY}:{links.API_SERVER_PORT}"
    credentials.write_kubeconfig(design, user, paths, server=url)
    return {
        "ca.crt": authority.certificate,
        "server.crt": server.certificate,
        "server.key": server.key,
        "client.crt": client.certificate,
        "client.key": client.key,
    }


def containerd_configuration(plugins: str, folder: str) -> str:
    return _CONTAINERD.format(socket=CONTAINERD_SOCKET, pause=images.PAUSE, plugins=plugins, folder=folder)


def kubelet_configuration(plan: NodePlan, shape: NodeShape, total_memory: int) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": plan.address,
        "authentication": {
            "x509": {"clientCAFile": str(plan.path("ca.crt"))},
            "webhook": {"enabled": True},
            "anonymous": {"enabled": False},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": "/",  # of its cgroup namespace: the node's own cgroup, so statistics count only that
        "clusterDNS": ["10.97.0.10"],
        "clusterDomain": "cluster.local",
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        # Percentages of the machine's disk would make a node of a full machine useless.
        "evictionHard": {
            "memory.available": str(max(total_memory - shape.memory, 100 << 20)),
            "nodefs.available": "1Mi",
            "imagefs.available": "1Mi",
        },
        "evictionPressureTransitionPeriod": "10s",
        "failCgroupV1": False,
        "failSwapOn": False,
        "healthzPort": 0,
        "imageGCHighThresholdPercent": 100,
        "makeIPTablesUtilChains": False,
        "maxPods": links.MOST_PODS,
        "nodeStatusReportFrequency": "10s",
        "resolvConf": str(plan.path("resolv.conf")),
        "rotateCertificates": False,
        "tlsCertFile": str(plan.path("server.crt")),
        "tlsPrivateKeyFile": str(plan.path("server.key")),
        "volumePluginDir": "/var/lib/kubelet/volumeplugins",
        **shape.kubelet,
    }


def cni_configuration(number: int) -> dict[str, Any]:
    """A bridge inside the node: pods reach their node, and nothing else."""
    ranges = [[{"subnet": links.pod_range_of(number)}]]
    bridge = {
        "type": "bridge",
        "bridge": "pods",
        "isGateway": True,
        "ipMasq": False,
        "hairpinMode": True,
        "ipam": {"type": "host-local", "ranges": ranges, "dataDir": "/run/cni"},
    }
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge]}


def _total_memory() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("MemTotal:")) << 10
