"""The folders of the clusters: create, load, list and delete them.

async with running(nodes=50) as cluster:
    await cluster.stop("kube-scheduler")
"""

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from localcluster import credentials, design_files, kwok
from localcluster.build import products
from localcluster.cluster import Cluster, end_all
from localcluster.components import ALL, ETCD, KWOK_FILE, Design
from localcluster.errors import LocalClusterError
from localcluster.host import ports
from localcluster.realnodes import real_nodes
from localcluster.realnodes.node_files import NodeShape
from localcluster.virtualnodes import virtual_nodes

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def clusters_folder() -> Path:
    """The folder of this user's clusters: $LOCALCLUSTER_HOME, else in the user's state folder."""
    chosen = os.environ.get("LOCALCLUSTER_HOME")
    if chosen:
        return Path(chosen)
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "reberth" / "clusters"


def folder_of(name: str) -> Path:
    """The folder of a cluster, whether it exists or not."""
    if not _NAME.fullmatch(name):
        raise LocalClusterError(
            f"{name!r} is not a valid cluster name: use letters, digits, '.', '-' and '_'"
        )
    return clusters_folder() / name


def create(
    name: str,
    *,
    kubernetes: str | None = None,
    without: Sequence[str] = (),
    scheduler_configuration: Path | Mapping[str, Any] | None = None,
    shares_etcd_of: Cluster | None = None,
    flags: Mapping[str, Sequence[str]] | None = None,
    dies_with_parent: bool = False,
    real: int = 0,
    virtual: int = 0,
    real_shape: NodeShape | None = None,
) -> Cluster:
    """Create the folder of a new cluster with ports, certificates and configuration; start nothing."""
    real_nodes.refuse(real)
    virtual_nodes.refuse(virtual, beside=real)
    unknown = sorted((set(without) | set(flags or ())) - set(ALL))
    if unknown:
        raise LocalClusterError(f"unknown component: {', '.join(unknown)}; known: {', '.join(ALL)}")
    folder, scheduling = (
        folder_of(name),
        design_files.read_scheduler_configuration(scheduler_configuration or {}),
    )
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise LocalClusterError(
            f"cluster {name} already exists ({folder}); delete it first with `down`"
        ) from None
    skipped = {*without, ETCD} if shares_etcd_of else set(without)
    design = Design(
        folder=str(folder),
        first_port=ports.claim(folder),
        kubernetes=products.kubernetes(kubernetes).version,
        components=tuple(component for component in ALL if component not in skipped),
        etcd=shares_etcd_of.design.etcd_url if shares_etcd_of else None,
        prefix=f"/{name}" if shares_etcd_of else "/registry",
        flags={component: tuple(extra) for component, extra in (flags or {}).items()},
        real_nodes=real,
        virtual_nodes=virtual,
    )
    credentials.create(design)
    design.path(KWOK_FILE).write_text(kwok.configuration())
    design_files.write_scheduler_configuration(design, scheduling)
    design_files.write_egress(design)
    design_files.write(design)
    return Cluster(design, dies_with_parent=dies_with_parent, real_shape=real_shape)


def load(name: str) -> Cluster:
    """Load an existing cluster, whichever process started it."""
    folder = folder_of(name)
    try:
        return Cluster(design_files.read(folder))
    except FileNotFoundError:
        raise LocalClusterError(f"there is no cluster {name} in {clusters_folder()}") from None
    except (ValueError, KeyError, TypeError):  # written by another version, or incomplete
        raise LocalClusterError(f"cluster {name} cannot be read ({folder}); delete it with `down`") from None


def names() -> list[str]:
    """The names of all clusters that have a folder, complete or not."""
    home = clusters_folder()
    folders = [entry.name for entry in home.iterdir() if entry.is_dir()] if home.is_dir() else []
    return sorted(filter(_NAME.fullmatch, folders))


async def remove(name: str) -> None:
    """Take a cluster down, even if only its folder or only its processes are left."""
    folder = folder_of(name)
    try:
        await load(name).down()
    except LocalClusterError:
        await end_all(folder)
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.asynccontextmanager
async def running(name: str | None = None, *, nodes: int = 0, **options: Any) -> AsyncIterator[Cluster]:
    """A cluster for the duration of the context; it also ends with this process."""
    cluster = create(name or f"cluster-{secrets.token_hex(4)}", dies_with_parent=True, **options)
    try:
        await cluster.up()
        if nodes:
            await cluster.add_nodes(nodes)
        yield cluster
    finally:
        await cluster.down()
