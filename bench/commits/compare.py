"""python -m bench.commits.compare BEFORE [AFTER]: the same work at two commits, and the ratios of its cost.

Both read the same bytes, in processes of their own that take turns: other load then affects both alike.
"""

import argparse
import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from bench import calling
from bench.commits import inputs, reporting
from bench.reading import arms
from bench.reading.conditions import Conditions
from tests.support.repository import ROOT

_WORKLOAD = Path(__file__).parent / "workload.py"


class NoCommit(Exception):
    """The repository has no such commit."""


async def measure(options: argparse.Namespace) -> str:
    conditions = Conditions()
    with tempfile.TemporaryDirectory(prefix="bench-commits-") as folder:
        given = Path(folder, "inputs")
        inputs.write(given, pods=options.pods, nodes=options.nodes, fleet=options.fleet, asked=options.asked)
        commands = {
            _name(commit): _command(_take_out(commit, Path(folder, str(place))), given)
            for place, commit in enumerate((options.before, options.after))
        }
        if len(commands) < 2:
            raise NoCommit(f"{options.before} and {options.after} are the same commit")
        measured = await arms.interleave(commands, runs=options.rounds)
    return reporting.describe(measured, options, conditions.describe())


def _name(commit: str) -> str:
    return _ask("rev-parse", "--short=8", f"{commit}^{{commit}}").decode().strip()


def _take_out(commit: str, folder: Path) -> Path:
    """Write the files of a commit to a folder."""
    with tarfile.open(fileobj=io.BytesIO(_ask("archive", commit))) as archive:
        archive.extractall(folder, filter="data")
    return folder


def _ask(*arguments: str) -> bytes:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False)  # noqa: S603, S607 - git alone
    if done.returncode:
        raise NoCommit(f"git {' '.join(arguments)}: {done.stderr.decode().strip()}")
    return done.stdout


def _command(files: Path, given: Path) -> list[str]:
    return ["env", f"PYTHONPATH={files}", sys.executable, "-P", str(_WORKLOAD), str(given)]


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.commits.compare", description=__doc__.partition(":")[2].strip()
    )
    parser.add_argument("before", help="a commit")
    parser.add_argument("after", nargs="?", default="HEAD", help="a commit (default HEAD)")
    numbers = (
        ("--pods", 10_000, "to be read"),
        ("--nodes", 1_000, "to be read"),
        ("--fleet", 1_000, "nodes to plan for"),
        ("--asked", 5_000, "nodes in a call of kube-scheduler"),
        ("--rounds", 7, "turns of each commit"),
    )
    calling.add_numbers(parser, numbers)
    return parser.parse_args()


def main() -> int:
    return calling.run("commits", measure(_parse()), NoCommit, arms.Failed)


if __name__ == "__main__":
    sys.exit(main())
