"""What real nodes could change of this machine: kernel settings, mounts, links, processes, cgroups."""

import subprocess
from pathlib import Path

from localcluster.host import processes
from localcluster.realnodes import cgroups

_SETTINGS = ("kernel", "vm", "net")
_EVER_CHANGING = (
    "random",
    "ns_last_pid",
    "pty/nr",
    "conntrack_count",
    "sched_domain",
    "stat_refresh",
    "perf_event",
)


def read_machine_state() -> dict[str, object]:
    """What stays the same where real nodes come and go, also those of other clusters."""
    links = subprocess.run(["ip", "-o", "address"], capture_output=True, text=True, check=True).stdout
    return {
        "settings": _read_settings(),
        "mounts": sorted(Path("/proc/self/mountinfo").read_text().splitlines()),
        "links": sorted(line.split()[1] for line in links.splitlines()),
        "cgroups": _list_cgroups(),
        "namespaces": subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout,
    }


def _read_settings() -> dict[str, str]:
    files = (file for top in _SETTINGS for file in Path("/proc/sys", top).rglob("*") if file.is_file())
    steady = (file for file in files if not any(name in str(file) for name in _EVER_CHANGING))
    return {str(file): text for file in steady if (text := _read(file)) is not None}


def _list_cgroups() -> list[str]:
    """Those at the top of each hierarchy, but for those of nodes, which `find_left_of` finds."""
    tops = (entry for each in cgroups.list_hierarchies() for entry in each.folder.iterdir() if entry.is_dir())
    return sorted(str(entry) for entry in tops if not entry.name.startswith(f"{cgroups.MARK}-"))


def _read(file: Path) -> str | None:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError):
        return None


def find_left_of(folder: Path) -> list[object]:
    """What is still there of a cluster that was taken down."""
    left: list[object] = [*processes.find(folder), *cgroups.find_of(folder)]
    return [*left, folder] if folder.exists() else left
