"""`python -m reberth check` for an operator: one clear message, and an exit code."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from localcluster import credentials
from localcluster.cluster import Cluster
from localcluster.credentials import Authority

pytestmark = pytest.mark.live


def check(kubeconfig: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [
        sys.executable,
        "-m",
        "reberth",
        "check",
        "--kubeconfig",
        str(kubeconfig),
        "--wait",
        "5",
        *arguments,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def line_of(output: str, resource: str) -> str:
    return next(line for line in output.splitlines() if line.startswith(f"{resource} "))


def test_every_kind_is_named_with_its_objects_or_its_trouble(shared: Cluster) -> None:
    done = check(shared.kubeconfig)
    assert done.stdout.startswith(f"{shared.design.url}, Kubernetes 1.3")
    assert line_of(done.stdout, "nodes").split() == ["nodes", "50", "ok"]
    assert "not installed in this cluster" in line_of(done.stdout, "moveledgers")
    assert line_of(done.stdout, "scaledobjects").split() == ["scaledobjects", "0", "ok"]
    assert (done.returncode, done.stderr) == (1, "")


def test_a_missing_right_is_named_and_the_rest_is_read(shared: Cluster) -> None:
    done = check(shared.user("without-rights"))
    assert 'User "without-rights" cannot list resource "nodes"' in line_of(done.stdout, "nodes")
    assert done.returncode == 1


def test_an_expired_token_is_named(shared: Cluster) -> None:
    done = check(credentials.write_kubeconfig(shared.design, "late", {"token": "expired"}))
    assert done.stderr == f"reberth: {shared.design.url}: get /version: Unauthorized\n"
    assert (done.returncode, done.stdout) == (1, "")


def test_a_wrong_authority_is_named(shared: Cluster, tmp_path: Path) -> None:
    content = yaml.safe_load(shared.kubeconfig.read_text())
    stranger = Authority(tmp_path / "stranger").create()
    content["clusters"][0]["cluster"]["certificate-authority"] = str(stranger.certificate)
    path = tmp_path / "wrong-ca.yaml"
    path.write_text(yaml.safe_dump(content))
    done = check(path)
    assert "certificate verify failed" in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.returncode == 1


def test_a_server_that_is_not_there_is_named(shared: Cluster) -> None:
    token = {"token": "t"}
    path = credentials.write_kubeconfig(
        shared.design, "n", token, server="https://127.0.0.1:1", name="nowhere"
    )
    done = check(path)
    assert done.stderr.startswith("reberth: https://127.0.0.1:1: get /version: cannot connect")
    assert done.stderr.count("\n") == 1
    assert done.returncode == 1


def test_no_kubeconfig_is_bad_input(tmp_path: Path) -> None:
    done = check(tmp_path / "none")
    assert done.stderr.startswith(f"reberth: {tmp_path}/none: cannot connect to the API server: ")
    assert done.stderr.count("\n") == 1
    assert done.returncode == 2
