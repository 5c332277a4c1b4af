"""The files that describe a cluster: its design and the configuration of its kube-scheduler."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from localcluster.components import EGRESS_FILE, NODES_SOCKET, SCHEDULER_FILE, Design
from localcluster.manifests import read_object

_DESIGN_FILE = "cluster.json"


def read(folder: Path) -> Design:
    content = json.loads((folder / _DESIGN_FILE).read_text())
    content["components"] = tuple(content["components"])
    content["flags"] = {component: tuple(extra) for component, extra in content["flags"].items()}
    return Design(**content)


def write(design: Design) -> None:
    path = design.path(_DESIGN_FILE)
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(dataclasses.asdict(design), indent=1))
    unfinished.rename(path)


def read_scheduler_configuration(given: Path | Mapping[str, Any]) -> dict[str, Any]:
    return read_object(given) if isinstance(given, Path) else dict(given)


def write_scheduler_configuration(design: Design, given: Path | Mapping[str, Any]) -> None:
    """Complete a configuration with the kubeconfig, without leader election and client-side rate limit."""
    content = read_scheduler_configuration(given)
    kubeconfig = str(design.kubeconfig("system:kube-scheduler"))
    connection = {"qps": 5000, "burst": 5000, **content.get("clientConnection", {}), "kubeconfig": kubeconfig}
    complete = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        **content,
        "clientConnection": connection,
        "leaderElection": {"leaderElect": False},
    }
    path = design.path(SCHEDULER_FILE)
    path.write_text(yaml.safe_dump(complete, sort_keys=False))


def write_egress(design: Design) -> None:
    """What the API server asks of kubelets goes through the network of the real nodes."""
    connection = {
        "proxyProtocol": "HTTPConnect",
        "transport": {"uds": {"udsName": str(design.path(NODES_SOCKET))}},
    }
    content = {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{"name": "cluster", "connection": connection}],
    }
    design.path(EGRESS_FILE).write_text(yaml.safe_dump(content, sort_keys=False))
