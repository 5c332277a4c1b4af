"""The comparison of two commits: its work can be done by this one, and its section says what differs."""

import json
import subprocess
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from bench.commits import inputs
from bench.commits.compare import NoCommit, _command, _name
from bench.commits.reporting import COSTS, RESULTS, describe
from tests.support.repository import ROOT

OPTIONS = Namespace(rounds=2, pods=10, nodes=2, asked=3, fleet=4)


def figures(*, cost: float, moves: int) -> dict[str, Any]:
    return dict.fromkeys(COSTS, cost) | dict.fromkeys(RESULTS, 7) | {"underUtilisedNodes moves": moves}


def test_the_work_is_done_with_the_files_of_the_commit(tmp_path: Path) -> None:
    inputs.write(tmp_path / "inputs", pods=20, nodes=4, fleet=20, asked=30)
    done = subprocess.run(_command(ROOT, tmp_path / "inputs"), capture_output=True, check=True, cwd=tmp_path)
    found = json.loads(done.stdout)
    assert found.keys() == {*COSTS, *RESULTS}
    assert all(found[name] > 0 for name in found)


def test_another_place_than_the_files_of_the_commit_is_refused(tmp_path: Path) -> None:
    command = _command(tmp_path, tmp_path / "inputs")
    command[1] = f"PYTHONPATH={tmp_path}:{ROOT}"
    done = subprocess.run(command, capture_output=True, check=False)
    assert b"the programs are not those of" in done.stderr


def test_a_commit_that_is_not_there_is_named() -> None:
    with pytest.raises(NoCommit, match="nothing"):
        _name("nothing")


def test_the_section_has_the_ratios_and_what_differs() -> None:
    turns = {
        "aaaa": [figures(cost=1e-3, moves=3)] * 2,
        "bbbb": [figures(cost=2e-3, moves=4), figures(cost=4e-3, moves=4)],
    }
    text = describe(turns, OPTIONS, "Measured.")
    assert "| a snapshot | 1 ms (1 to 1) | 3 ms (2 to 4) | 3.00 | 3 (2 to 4) |" in text
    assert "Different are moves of underUtilisedNodes: 3 and 4." in text
