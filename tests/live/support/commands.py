"""Commands of the programs, run as processes of their own, as a user of a kubeconfig runs them."""

import asyncio
import sys
from pathlib import Path
from typing import NamedTuple

from tests.support.repository import ROOT


class Answer(NamedTuple):
    code: int
    out: str
    err: str


async def run_command(kubeconfig: Path, *command: str) -> Answer:
    """Run `python -m COMMAND` to its end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        *command,
        "--kubeconfig",
        str(kubeconfig),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return Answer(process.returncode or 0, out.decode(), err.decode())
