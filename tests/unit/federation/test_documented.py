"""What pages on the federation show is what is printed: their files are written and their commands run."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.repository import ROOT

PAGES = ("federation.md", "federation-plan.md", "federation-interpreters.md")
TEXT = "\n".join((ROOT / "docs" / name).read_text() for name in PAGES)
BLOCK = re.compile(r"^```(?P<kind>\w+)(?: (?P<file>\S+))?\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


def files() -> dict[str, str]:
    return {block["file"]: block["body"] for block in BLOCK.finditer(TEXT) if block["file"]}


def commands() -> Iterator[tuple[str, str]]:
    """Each command with all that it prints."""
    for block in BLOCK.finditer(TEXT):
        if block["kind"] == "console":
            command, _, output = block["body"].partition("\n")
            yield command.removeprefix("$ "), output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("documented")
    for name, body in files().items():
        (made / name).write_text(body)
    return made


def test_there_is_something_to_compare() -> None:
    assert len(list(commands())) >= 12


@pytest.mark.parametrize(("command", "output"), list(commands()))
def test_a_documented_command_prints_the_documented_output(command: str, output: str, folder: Path) -> None:
    _python, *arguments = shlex.split(command)
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout + done.stderr == output
