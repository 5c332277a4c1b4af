"""The cgroups of real nodes: which hierarchies there are, whose cgroup is whose. A folder stands for them."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster.realnodes import cgroups
from localcluster.realnodes.cgroups import Hierarchy

MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 29 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:2 - cgroup cgroup rw,cpu,cpuacct
31 29 0:27 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,release_agent=/lib/agent,name=systemd
32 29 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
33 29 0:26 / /elsewhere/cpu rw - cgroup cgroup rw,cpu,cpuacct
"""


def test_hierarchies_are_read_with_their_options_each_once() -> None:
    found = cgroups.list_hierarchies(MOUNTS)
    assert [each.options for each in found] == ["cpu,cpuacct", "none,name=systemd"]
    assert {each.folder for each in found} <= {
        Path("/sys/fs/cgroup/cpu,cpuacct"),
        Path("/sys/fs/cgroup/systemd"),
        Path("/elsewhere/cpu"),
    }


def test_a_machine_with_cgroup_v2_alone_has_none() -> None:
    assert cgroups.list_hierarchies("32 29 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n") == []


def test_nodes_of_clusters_with_one_name_have_different_cgroups() -> None:
    names = {cgroups.name(Path(home, "same"), "real-1") for home in ("/a", "/b")}
    assert len(names) == 2
    assert all(name.startswith("reberth-") and name.endswith("-real-1") for name in names)


@pytest.fixture
def hierarchy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = [Hierarchy(tmp_path, ("pids",))]
    monkeypatch.setattr(cgroups, "list_hierarchies", lambda: found)
    return tmp_path


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(["sleep", "100"]) as process:
        yield process
        process.kill()


def test_every_process_below_a_cgroup_is_signalled_once(
    hierarchy: Path, sleeper: "subprocess.Popen[bytes]"
) -> None:
    pod = hierarchy / "reberth-x-real-1" / "kubepods" / "pod"
    pod.mkdir(parents=True)
    (pod / "cgroup.procs").write_text(f"{sleeper.pid}\n")
    assert cgroups.list_processes("reberth-x-real-1") == {sleeper.pid}
    cgroups.signal_all("reberth-x-real-1", signal.SIGTERM)
    assert sleeper.wait(10) == -signal.SIGTERM


def test_only_cgroups_without_processes_are_deserted(
    hierarchy: Path, sleeper: "subprocess.Popen[bytes]"
) -> None:
    for group in ("reberth-x-real-1/kubepods", "reberth-y-real-1", "somebody-else"):
        (hierarchy / group).mkdir(parents=True)
    used = hierarchy / "reberth-y-real-1" / "cgroup.procs"
    used.write_text(f"{sleeper.pid}\n")
    cgroups.remove_deserted()
    assert {path.name for path in hierarchy.iterdir()} == {"reberth-y-real-1", "somebody-else"}
    used.unlink()


def test_all_cgroups_of_one_cluster_are_removed(hierarchy: Path) -> None:
    mine = [cgroups.name(Path("/mine"), f"real-{number}") for number in (1, 2)]
    other = cgroups.name(Path("/other"), "real-1")
    for group in (*mine, other):
        (hierarchy / group).mkdir()
    assert cgroups.find_of(Path("/mine")) == sorted(mine)
    cgroups.remove_all(Path("/mine"))
    assert [path.name for path in hierarchy.iterdir()] == [other]
