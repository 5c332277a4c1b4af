"""The cgroups of real nodes: one in each v1 hierarchy, whose name tells the node of which cluster it is.

Its processes are all that the node has started, whatever became of their parents.
"""

import contextlib
import hashlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from localcluster.errors import LocalClusterError

MARK = "reberth"
_SECONDS_TO_EMPTY = 10.0
_SECONDS_BETWEEN_TRIES = 0.02
_CPUSET = ("cpuset.cpus", "cpuset.mems")
_NO_CONTROLLERS = frozenset({"rw", "ro", "xattr", "noprefix", "clone_children", "cpuset_v2_mode"})


@dataclass(frozen=True)
class Hierarchy:
    folder: Path
    controllers: tuple[str, ...]
    """The options with which it is mounted; `name=systemd` stands for a hierarchy without controllers."""

    @property
    def options(self) -> str:
        named = any(each.startswith("name=") for each in self.controllers)
        return ",".join((*(("none",) if named else ()), *self.controllers))


def list_hierarchies(mounts: str | None = None) -> list[Hierarchy]:
    """The v1 hierarchies of this machine, each once; or those of the given content of mountinfo."""
    lines = (Path("/proc/self/mountinfo").read_text() if mounts is None else mounts).splitlines()
    found = (_read_mount(line) for line in lines if " - cgroup " in line)
    return list({each.controllers: each for each in found if each.controllers}.values())


def _read_mount(line: str) -> Hierarchy:
    place, _, filesystem = line.partition(" - ")
    options = filesystem.split()[2].split(",")
    controllers = (each for each in options if each not in _NO_CONTROLLERS and "release_agent" not in each)
    return Hierarchy(Path(place.split()[4]), tuple(controllers))


def name(cluster: Path, node: str) -> str:
    """Of the cgroup of a node; clusters in different folders may have the same name."""
    return f"{_prefix(cluster)}{node}"


def _prefix(cluster: Path) -> str:
    return f"{MARK}-{hashlib.sha256(os.fsencode(cluster)).hexdigest()[:12]}-"


def create(group: str) -> None:
    for hierarchy in list_hierarchies():
        folder = hierarchy.folder / group
        folder.mkdir(exist_ok=True)
        if "cpuset" in hierarchy.controllers:  # a new one has neither, and then takes no process
            for setting in _CPUSET:
                (folder / setting).write_text((hierarchy.folder / setting).read_text())


def join(group: str) -> None:
    """Move this process into the cgroup."""
    for hierarchy in list_hierarchies():
        (hierarchy.folder / group / "cgroup.procs").write_text(str(os.getpid()))


def list_processes(group: str) -> set[int]:
    """Pids of the cgroup and of all below it."""
    return set().union(*map(_list_below, _folders(group)))


def _folders(group: str) -> Iterator[Path]:
    folders = (hierarchy.folder / group for hierarchy in list_hierarchies())
    return (folder for folder in folders if folder.is_dir())


def _list_below(folder: Path) -> set[int]:
    pids: set[int] = set()
    for file in folder.rglob("cgroup.procs"):
        with contextlib.suppress(OSError):  # a pod's cgroup is removed while we read
            pids.update(map(int, file.read_text().split()))
    return pids


def signal_all(group: str, number: signal.Signals) -> None:
    """Signal every process once, also those that were started meanwhile."""
    done: set[int] = set()
    while fresh := list_processes(group) - done:
        for pid in fresh:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        done |= fresh


def remove(group: str) -> None:
    """Kill what is left in it, and remove it in every hierarchy."""
    deadline = time.monotonic() + _SECONDS_TO_EMPTY
    while True:
        signal_all(group, signal.SIGKILL)
        if all(map(_is_removed, list(_folders(group)))):
            return
        if time.monotonic() > deadline:
            raise LocalClusterError(f"cgroup {group} still has processes: {sorted(list_processes(group))}")
        time.sleep(_SECONDS_BETWEEN_TRIES)


def _is_removed(folder: Path) -> bool:
    try:
        for below in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
            below.rmdir()
        folder.rmdir()
    except FileNotFoundError:
        return not folder.exists()
    except OSError:  # its last process is on its way out
        return False
    return True


def remove_deserted() -> None:
    """Remove the cgroups of nodes that ended together with the process that would have removed them."""
    for group in find(f"{MARK}-*-*"):
        if not list_processes(group):
            remove(group)


def remove_all(cluster: Path) -> None:
    """Remove the cgroups of all nodes of a cluster."""
    for group in find_of(cluster):
        remove(group)


def find_of(cluster: Path) -> list[str]:
    return find(f"{_prefix(cluster)}*")


def find(pattern: str) -> list[str]:
    return sorted({path.name for each in list_hierarchies() for path in each.folder.glob(pattern)})
