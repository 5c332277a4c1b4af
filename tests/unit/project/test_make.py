"""What make does with an environment that is not its own."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.support.repository import ROOT

MAKEFILE = ROOT / "Makefile"


def test_a_linked_environment_is_not_cleared(tmp_path: Path) -> None:
    """To clear it through the link would take it away from all who share it."""
    shared, tree = tmp_path / "shared", tmp_path / "tree"
    shared.mkdir()
    (tree / "requirements").mkdir(parents=True)
    (shared / "installed").touch()
    os.utime(shared / "installed", (0, 0))
    (tree / "requirements" / "dev.txt").touch()
    (tree / ".venv").symlink_to(shared)
    shutil.copy(MAKEFILE, tree)
    made = subprocess.run(["make", "lint"], cwd=tree, capture_output=True, text=True, check=False)
    assert made.returncode != 0
    assert ".venv is a link" in made.stderr
    assert (shared / "installed").exists()
