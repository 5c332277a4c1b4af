"""A machine or a user that cannot have real nodes is told why, before anything is begun."""

import os
import shutil
from pathlib import Path

import pytest

from localcluster.realnodes import cgroups, real_nodes, requirements
from localcluster.realnodes.cgroups import Hierarchy
from localcluster.realnodes.links import MOST_NODES

ALL = tuple(sorted(requirements._CONTROLLERS))


@pytest.fixture(autouse=True)
def able(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements.sys, "platform", "linux")
    monkeypatch.setattr(requirements.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda program: f"/bin/{program}")
    monkeypatch.setattr(cgroups, "list_hierarchies", lambda: [Hierarchy(Path("/x"), ALL)])


def test_nothing_is_in_the_way() -> None:
    assert requirements.find_obstacle() is None
    requirements.refuse()


def test_another_system_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements.sys, "platform", "darwin")
    assert requirements.find_obstacle() == "they need Linux, and this is darwin"


def test_another_processor_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements.platform, "machine", lambda: "riscv64")
    assert requirements.find_obstacle() == "they need x86_64 or aarch64, and this is riscv64"


def test_a_user_who_is_not_root_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(requirements.NoRealNodes, match="^real nodes cannot run here: they need root"):
        requirements.refuse()


def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: None if program == "nsenter" else program)
    assert (requirements.find_obstacle() or "").startswith("nsenter is not on PATH")


def test_a_machine_without_cgroup_v1_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "list_hierarchies", lambda: [Hierarchy(Path("/x"), ("cpu", "cpuacct"))])
    obstacle = requirements.find_obstacle()
    assert obstacle == "they need cgroup v1, and this machine has no v1 hierarchy for cpuset, memory, pids"


def test_more_nodes_than_addresses_are_refused() -> None:
    with pytest.raises(Exception, match=f"{MOST_NODES + 1} real nodes are too many"):
        real_nodes.refuse(MOST_NODES + 1)
    real_nodes.refuse(0)
