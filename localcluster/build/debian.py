"""Programs of Debian packages, unpacked into the user's cache: nothing is installed, no root is needed."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from localcluster.build import download_cache
from localcluster.errors import LocalClusterError


class NoPackage(LocalClusterError):
    """A package cannot be downloaded; the message says what to do."""


def program(package: str, name: str) -> Path:
    """Return the path of a program: on PATH, cached, or unpacked from its package."""
    on_path = shutil.which(name)
    if on_path:
        return Path(on_path)
    return content(package) / "usr" / "bin" / name


def content(package: str) -> Path:
    """The folder into which the package is unpacked."""
    folder = download_cache.cache_folder() / "programs" / f"debian-{package}"
    with download_cache.locked(folder.with_suffix(".lock")):
        if not folder.is_dir():
            _unpack(package, folder)
    return folder


def _unpack(package: str, folder: Path) -> None:
    print(f"localcluster: taking {package} from Debian", file=sys.stderr, flush=True)
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        unpacked = unfinished / "content"
        archive = str(_download(package, unfinished))
        _run(["dpkg-deb", "--extract", archive, str(unpacked)], package, unfinished)
        unpacked.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _download(package: str, folder: Path) -> Path:
    """Download the package with this machine's package lists, or with fresh ones if they do not know it."""
    try:
        _run(["apt-get", "download", package], package, folder)
    except NoPackage:
        own = [f"-oDir::State::Lists={folder / 'lists'}", f"-oDir::Cache={folder / 'cache'}"]
        (folder / "lists" / "partial").mkdir(parents=True)
        (folder / "cache" / "archives" / "partial").mkdir(parents=True)
        _run(["apt-get", *own, "update"], package, folder)
        _run(["apt-get", *own, "download", package], package, folder)
    return next(folder.glob(f"{package}_*.deb"))


def _run(command: Sequence[str], package: str, folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise NoPackage(
            f"{command[0]} is not installed: install {package} yourself so that it is on PATH"
        ) from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise NoPackage(f"{package} cannot be downloaded with {' '.join(command)}: {last}")
