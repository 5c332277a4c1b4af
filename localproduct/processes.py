"""Processes of Reberth that belong to a local cluster, and go down with it."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from localcluster.cluster import Cluster
from localcluster.host import processes
from localcluster.host.processes import Running

EXTENDER_ACCOUNT = "system:serviceaccount:reberth-system:reberth-extender"
HOST = "127.0.0.1"
NO_CHANGES: Mapping[str, str] = MappingProxyType({})
_API_VERSION = "reberth.dev/v1alpha1"


class Replica:
    """One process of the extender, with the rights that the manifests give it."""

    def __init__(self, cluster: Cluster, number: int, settings: Mapping[str, Any], kubeconfig: Path) -> None:
        self.port = cluster.spare_port(number)
        self.name = f"extender-{number}"
        self._cluster = cluster
        self._kubeconfig = kubeconfig
        self.file = cluster.folder / f"{self.name}.yaml"
        self._running: Running | None = None
        self.set(settings)

    def set(self, settings: Mapping[str, Any]) -> None:
        """Write its settings; a running process reloads them."""
        server = {"host": HOST, **settings.get("server", {}), "port": self.port}
        write_settings(self.file, "ExtenderSettings", {**settings, "server": server})

    def start(self, *, dies_with_parent: bool = False, env: Mapping[str, str] = NO_CHANGES) -> None:
        files = ["--settings", str(self.file), "--kubeconfig", str(self._kubeconfig)]
        self._running = start(
            self._cluster, self.name, "extender", *files, dies_with_parent=dies_with_parent, env=env
        )

    @property
    def log(self) -> str:
        return self._cluster.log(self.name).read_text()

    @property
    def process(self) -> Running:
        if self._running is None:
            raise RuntimeError(f"{self.name} is not running")
        return self._running


def start(
    cluster: Cluster,
    name: str,
    module: str,
    *arguments: str,
    dies_with_parent: bool = False,
    env: Mapping[str, str] = NO_CHANGES,
) -> Running:
    """Start one of our programs as a component of the cluster; `env` changes its environment."""
    command = [sys.executable, "-m", module, *arguments]
    return processes.start(
        command,
        folder=cluster.folder,
        name=name,
        env={**os.environ, **env},
        dies_with_parent=dies_with_parent,
    )


def write_settings(file: Path, kind: str, settings: Mapping[str, Any]) -> None:
    file.write_text(yaml.safe_dump({"apiVersion": _API_VERSION, "kind": kind, **settings}))


def asking_here(file: Path, url: str) -> dict[str, Any]:
    """Read a configuration of kube-scheduler and let it ask for its extenders at this address."""
    content: dict[str, Any] = yaml.safe_load(file.read_text())
    for extender in content["extenders"]:
        part = extender["urlPrefix"].rpartition("/")[2]
        extender["urlPrefix"] = f"{url}/{part}"
    content.pop("clientConnection", None)
    return content
