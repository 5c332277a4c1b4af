"""Check whether a kube-scheduler configuration fits the extender, and name what does not."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from extender.__main__ import main
from extender.answers.scheduler_check import find_faults
from reberth.forecast.state.profile import parse_scheduler
from tests.support.repository import ROOT

FILES = sorted((ROOT / "manifests" / "kube-scheduler").glob("*.yaml"))


def faults(
    avoid: Any = None, *, scores: bool = True, version: tuple[int, int] = (1, 36), **more: Any
) -> list[str]:
    """Look at the plain file of the manifests with something else in the place of what it says."""
    content = yaml.safe_load((ROOT / "manifests" / "kube-scheduler" / "plain.yaml").read_text())
    content["extenders"][0] |= avoid or {}
    if not scores:
        del content["extenders"][1]
    made = yaml.safe_dump({**content, **more}).encode()
    return find_faults(parse_scheduler(made, version=version))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
@pytest.mark.parametrize("version", [(1, 35), (1, 36), (1, 37)])
def test_the_files_of_the_manifests_fit(file: Path, version: tuple[int, int]) -> None:
    assert find_faults(parse_scheduler(file.read_bytes(), version=version)) == []


def test_the_weight_must_be_above_all_others_in_sum() -> None:
    assert faults({"weight": 17}) == []
    assert faults({"weight": 16}) == ["/avoid has the weight 16, profile default-scheduler needs at least 17"]
    assert faults({"weight": 16}, scores=False) == []


def test_each_profile_has_weights_of_its_own() -> None:
    heavy = {"score": {"enabled": [{"name": "ImageLocality", "weight": 11}]}}
    profiles = [{"schedulerName": "plain"}, {"schedulerName": "heavy", "plugins": heavy}]
    assert faults(profiles=profiles) == ["/avoid has the weight 20, profile heavy needs at least 27"]


@pytest.mark.parametrize(
    ("avoid", "fault"),
    [
        ({"urlPrefix": "http://127.0.0.1/other"}, "0 extenders have a urlPrefix that ends with /avoid"),
        ({"nodeCacheCapable": False}, "/avoid needs nodeCacheCapable: true"),
        ({"ignorable": False}, "/avoid needs ignorable: true"),
        ({"prioritizeVerb": ""}, "/avoid needs a prioritizeVerb"),
    ],
)
def test_settings_that_do_not_fit_the_scheduler_are_reported(avoid: Any, fault: str) -> None:
    (said,) = faults(avoid)
    assert said.startswith(fault)


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (FILES[0].read_text(), 0, "ok"),
        (FILES[0].read_text().replace("weight: 20", "weight: 2"), 1, "/avoid has the weight 2"),
        ("nonsense", 2, "expected a mapping"),
        (None, 2, "scheduler.yaml: cannot be read: No such file or directory"),
    ],
)
def test_a_file_is_checked_by_hand(tmp_path: Path, content: str | None, code: int, said: str) -> None:
    file = tmp_path / "scheduler.yaml"
    if content is not None:
        file.write_text(content)
    command = [sys.executable, "-m", "extender", "--check-scheduler", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--check-scheduler", "/nowhere"), "--check-scheduler: /nowhere: cannot be read"),
        (
            ("--check-scheduler", "f", "--kubernetes", "latest"),
            "--kubernetes: invalid version 'latest', e.g. 1.36",
        ),
    ],
)
def test_a_wrong_argument_is_named(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.setattr("sys.argv", ["extender", *arguments])
    try:
        code = main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code == 2
    assert said in capsys.readouterr().err
