"""Runs the rescheduler beside a local cluster, with the account and the settings of the manifests."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from localcluster.cluster import Cluster
from localcluster.host.processes import Running
from localproduct.processes import HOST, start

RESCHEDULER_ACCOUNT = "system:serviceaccount:reberth-system:reberth-rescheduler"
NAME = "rescheduler"
_POLICY = Path(__file__).parent / "policy.yaml"
_MANIFEST = Path(__file__).parent.parent / "manifests" / "rescheduler" / "20-settings.yaml"


def write_settings(
    cluster: Cluster, *, port: int, extenders: Sequence[str], configuration: object, extender_settings: Path
) -> Path:
    """Write the settings of the manifests, with the addresses and files of this machine and without TLS."""
    known = cluster.folder / "scheduler-as-configured.yaml"
    known.write_text(yaml.safe_dump(configuration))
    settings: dict[str, Any] = yaml.safe_load(yaml.safe_load(_MANIFEST.read_text())["data"]["settings.yaml"])
    settings["extenderAccess"] = {"addresses": list(extenders)}
    settings["scheduler"] = {"configuration": str(known), "extender": str(extender_settings)}
    settings["server"] = {"host": HOST, "port": port}
    file = settings_of(cluster)
    file.write_text(yaml.safe_dump(settings, sort_keys=False))
    return file


def start_rescheduler(cluster: Cluster, settings: Path) -> Running:
    """Start it as the account that the manifests give it, with a policy that may be changed meanwhile."""
    policy = Path(shutil.copy(_POLICY, policy_of(cluster)))
    way = cluster.user(RESCHEDULER_ACCOUNT)
    files = ["--settings", str(settings), "--policy", str(policy), "--kubeconfig", str(way)]
    return start(cluster, NAME, "rescheduler", "run", *files)


def settings_of(cluster: Cluster) -> Path:
    return cluster.folder / f"{NAME}.yaml"


def policy_of(cluster: Cluster) -> Path:
    return cluster.folder / "policy.yaml"
