"""What the machine must have so that real nodes can run on it."""

import os
import platform
import shutil
import sys

from localcluster.errors import LocalClusterError
from localcluster.realnodes import cgroups

_PROGRAMS = ("ip", "nsenter", "mount", "umount")
_CONTROLLERS = frozenset({"cpu", "cpuacct", "cpuset", "memory", "pids"})
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class NoRealNodes(LocalClusterError):
    """Real nodes cannot run on this machine, or not as this user."""


def refuse() -> None:
    obstacle = find_obstacle()
    if obstacle:
        raise NoRealNodes(f"real nodes cannot run here: {obstacle}")


def find_obstacle() -> str | None:
    """The first reason why real nodes cannot run here, None if they can."""
    return find_basic_obstacle() or _find_missing_controllers()


def find_basic_obstacle() -> str | None:
    """The first reason that concerns the network of the nodes, too."""
    if sys.platform != "linux":
        return f"they need Linux, and this is {sys.platform}"
    if platform.machine() not in ARCHITECTURES:
        return f"they need {' or '.join(ARCHITECTURES)}, and this is {platform.machine()}"
    if os.geteuid() != 0:
        return "they need root, for namespaces, mounts and cgroups"
    missing = [program for program in _PROGRAMS if not shutil.which(program)]
    if missing:
        return f"{', '.join(missing)} is not on PATH (Debian: iproute2, util-linux, mount)"
    return None


def _find_missing_controllers() -> str | None:
    missing = _CONTROLLERS.difference(*(each.controllers for each in cgroups.list_hierarchies()))
    if not missing:
        return None
    names = ", ".join(sorted(missing))
    return f"they need cgroup v1, and this machine has no v1 hierarchy for {names}"
