"""Run the project's checks one after another and report how long each took.

    python tests/suites.py              all suites of `make test`
    python tests/suites.py unit live    some of them
    python tests/suites.py soak         the long-running tests

A run also fails if a live test was skipped, if a process or a cluster folder is left behind, or if the tests
changed the working tree.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from localcluster.build.products import OTHER_KUBERNETES  # noqa: E402 - likewise
from localcluster.host import processes  # noqa: E402 - the tree is importable only from here on
from localcluster.realnodes import requirements  # noqa: E402 - likewise

BIN = Path(sys.executable).parent
BUILD = ROOT / ".build"
LEAST_COVERAGE_OF_PURE_CODE = 95  # percent of statements and branches, of each package by itself
PURITY = "decisions are pure"
PACKAGES = (
    "reberth",
    "extender",
    "rescheduler",
    "federation",
    "kubectl_reberth",
    "generating",
    "localcluster",
    "localproduct",
)
# Two at once: they wait more than they work. Tests of a file share a cluster, so they stay together.
LIVE = ("-n", "2", "--dist", "loadfile", "tests/live")
DEFAULT = ("lint", "types", "layers", "unit", "speed", "live")


class Red(Exception):
    """A check that failed, with the reason."""


def lint() -> None:
    run("ruff", "check", "--quiet", ".")
    run("ruff", "format", "--quiet", "--check", ".")


def types() -> None:
    run("mypy", *(argument for package in PACKAGES for argument in ("-p", package)))
    run(
        "mypy",
        *map(str, sorted((ROOT / "tests").glob("*.py"))),
        *map(str, sorted((ROOT / "tests" / "support").rglob("*.py"))),
        *map(str, sorted((ROOT / "bench").rglob("*.py"))),
    )


def layers() -> None:
    run("lint-imports", "--no-logo")


def unit() -> None:
    coverage = [f"--cov={package}" for package in PACKAGES]
    pytest(
        "unit",
        "-m",
        "not live and not soak and not speed",
        "-n",
        "auto",
        "--cov-branch",
        "--cov-report=",
        *coverage,
    )
    BUILD.mkdir(exist_ok=True)
    run("coverage", "json", "--quiet", "-o", str(BUILD / "coverage.json"))
    refuse_uncovered(json.loads((BUILD / "coverage.json").read_text()), list_pure_files())


def speed() -> None:
    # A process for each file: collected tests and the fleets of another file change what memory costs.
    for file in sorted((ROOT / "tests").rglob("test_speed.py")):
        pytest(f"speed-{file.parent.name}", "-m", "speed", str(file))


def live() -> None:
    refuse_skips(pytest("live", "-m", f"live and not soak{leave_out()}", *LIVE))


def leave_out() -> str:
    """Leave out the tests of real nodes where these cannot run, and say so; CI has to run them."""
    obstacle = requirements.find_obstacle()
    if not obstacle or os.environ.get("CI") == "true":
        return ""
    print(f"left out: the tests of real nodes (marker real_nodes), for {obstacle}", flush=True)
    return " and not real_nodes"


def soak() -> None:
    """The long-running tests, and all live tests on the other versions of Kubernetes too."""
    refuse_skips(pytest("soak", "-m", f"soak{leave_out()}", "-s", "tests"))
    for version in OTHER_KUBERNETES:
        os.environ["KUBERNETES"] = version
        refuse_skips(pytest(f"live-{version}", "-m", f"live and not soak{leave_out()}", *LIVE))
        del os.environ["KUBERNETES"]


def bench() -> None:
    for measurement in sorted((ROOT / "bench").glob("*/__main__.py")):
        run("python", "-m", f"bench.{measurement.parent.name}")


SUITES: Mapping[str, Callable[[], None]] = {
    suite.__name__: suite for suite in (lint, types, layers, unit, speed, live, soak, bench)
}


def run(program: str, *arguments: str) -> None:
    done = subprocess.run([BIN / program, *arguments], cwd=ROOT, check=False)
    if done.returncode:
        raise Red(f"{program} ended with {done.returncode}")


def pytest(name: str, *arguments: str) -> Path:
    """Run pytest; the path of its report."""
    BUILD.mkdir(exist_ok=True)
    report = BUILD / f"{name}.xml"
    report.unlink(missing_ok=True)
    run("pytest", "--quiet", "-p", "no:cacheprovider", f"--junitxml={report}", *arguments)
    return report


def refuse_skips(report: Path) -> None:
    """Fail on skipped tests, and if no test ran: neither proves anything."""
    cases = list(ET.parse(report).iter("testcase"))
    skipped = [case.get("name", "?") for case in cases if case.find("skipped") is not None]
    if skipped:
        raise Red(f"skipped: {', '.join(skipped)}")
    if not cases:
        raise Red("no test ran")


def list_pure_files() -> dict[str, list[str]]:
    """List the files of each package in the purity contract, the only list of pure packages."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    pure = next(contract for contract in settings["contracts"] if contract["name"] == PURITY)
    return {name: _list_files(ROOT / name.replace(".", "/")) for name in pure["source_modules"]}


def _list_files(package: Path) -> list[str]:
    return [str(file.relative_to(ROOT)) for file in sorted(package.rglob("*.py"))]


def refuse_uncovered(report: Mapping[str, Any], pure: Mapping[str, list[str]]) -> None:
    """Fail on packages with too low coverage, and on files without a measurement."""
    unmeasured = [file for files in pure.values() for file in files if file not in report["files"]]
    if unmeasured:
        raise Red(f"no coverage was measured of {', '.join(unmeasured)}")
    covered = {
        name: measure_coverage([report["files"][file] for file in files]) for name, files in pure.items()
    }
    for name, percent in covered.items():
        print(f"{percent:6.1f} % of {name} ({len(pure[name])} files)")
    low = [name for name, percent in covered.items() if percent < LEAST_COVERAGE_OF_PURE_CODE]
    if low:
        raise Red(f"less than {LEAST_COVERAGE_OF_PURE_CODE} % covered: {', '.join(low)}")


def measure_coverage(files: Iterable[Mapping[str, Any]]) -> float:
    """Return the covered share of statements and branches in percent."""
    sums = [file["summary"] for file in files]
    all_of = sum(each["num_statements"] + each["num_branches"] for each in sums)
    taken = sum(each["covered_lines"] + each["covered_branches"] for each in sums)
    return 100 * taken / all_of if all_of else 100.0


def refuse_leftovers(home: Path) -> None:
    """Fail if processes or folders of the run's clusters are left."""
    left = [f"{found.name} (pid {found.pid})" for found in processes.find() if is_under(found.folder, home)]
    left += [f"folder {entry.name}" for entry in home.iterdir()]
    if left:
        raise Red(f"left behind: {', '.join(left)}")


def is_under(folder: str, home: Path) -> bool:
    return Path(folder).is_relative_to(home)


def changes() -> str:
    """Return the output of git status, empty without git."""
    done = subprocess.run(
        ["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout


def refuse_changes(before: str) -> None:
    after = changes()
    if after != before:
        raise Red(f"the tests changed the working tree:\n{after}")


def timed(name: str, suite: Callable[[], None]) -> bool:
    print(f"\n=== {name}", flush=True)
    started = time.monotonic()
    try:
        suite()
    except Red as red:
        print(f"=== {name}: RED after {time.monotonic() - started:.1f} s: {red}", flush=True)
        return False
    print(f"=== {name}: green in {time.monotonic() - started:.1f} s", flush=True)
    return True


def main(names: list[str]) -> int:
    unknown = set(names) - SUITES.keys()
    if unknown:
        print(f"no such suite: {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
        return 2
    before = changes()
    with tempfile.TemporaryDirectory(prefix="reberth-clusters-") as home:
        os.environ["LOCALCLUSTER_HOME"] = home
        green = [timed(name, SUITES[name]) for name in names or DEFAULT]
        green.append(timed("nothing left behind", lambda: refuse_leftovers(Path(home))))
    if "bench" not in names:  # which writes its figures into the docs
        green.append(timed("tree unchanged", lambda: refuse_changes(before)))
    print(f"\n{sum(green)} passed, {green.count(False)} failed", flush=True)
    return 0 if all(green) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
