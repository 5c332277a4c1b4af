"""The contracts of import-linter can fail, and name every folder."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests import suites
from tests.support.repository import ROOT

PACKAGES = ("reberth", "extender", "rescheduler", "federation")
LINT = Path(sys.executable).parent / "lint-imports"


def contracts() -> list[dict[str, Any]]:
    found = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return list(found)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_contract_lists_every_layer_of_a_package(package: str) -> None:
    layers = [each for each in contracts() if each.get("containers") == [package]]
    assert [each["exhaustive"] for each in layers] == [True]


@pytest.mark.parametrize(
    ("module", "content", "broken"),
    [
        ("rescheduler/attic/__init__.py", "", "the layers of the rescheduler"),
        ("rescheduler/planning/clock.py", "import asyncio\n", "decisions are pure"),
        ("rescheduler/model/upwards.py", "from rescheduler.execution import store\n", "the layers of the"),
        ("extender/answers/across.py", "from rescheduler.model import plan\n", "the programs stand on"),
        ("rescheduler/above.py", "import kubectl_reberth.__main__\n", "the programs stand on"),
    ],
    ids=[
        "folder in no layer",
        "impure decision",
        "import of a higher layer",
        "import of another program",
        "import of the command above the programs",
    ],
)
def test_a_broken_contract_is_red(tmp_path: Path, module: str, content: str, broken: str) -> None:
    for package in suites.PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / module).parent.mkdir(exist_ok=True)
    (tmp_path / module).write_text(content)
    done = subprocess.run(
        [LINT, "--no-logo", "--no-cache"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert any(broken in line and "BROKEN" in line for line in done.stdout.splitlines()), done.stdout
