"""Programs of Debian packages, unpacked into the user's cache: nothing is installed, no root is needed."""

import shutil
import subprocess
import sys
import tempfile
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


def contents(package: str, *, only: str = "") -> list[Path]:
    """The folders of a package and of each other one that it needs and that is not installed here.

    With `only`, those alone whose names begin so, be they installed or not: what stands for the newest
    version has a package of its own.
    """
    listed = download_cache.cache_folder() / "programs" / f"debian-{package}.needs"
    with download_cache.locked(listed.with_suffix(".needs.lock")):
        if not listed.exists():
            names = _list_needed(package, installed_too=bool(only))
            theirs = [name for name in names if not only or (name.startswith(only) and name != package)]
            if not theirs:
                raise NoPackage(f"{package} cannot be unpacked: apt-get names nothing that it consists of")
            unfinished = listed.with_suffix(".unfinished")
            unfinished.write_text("\n".join(theirs))
            unfinished.rename(listed)
    return [content(name) for name in listed.read_text().split()]


def _list_needed(package: str, *, installed_too: bool) -> list[str]:
    """The packages that an installation of this one would add."""
    status = ["-oDir::State::status=/dev/null"] if installed_too else []
    command = [*status, "install", "--simulate", "--no-install-recommends", package]
    with tempfile.TemporaryDirectory() as folder:
        said = [line.split() for line in _ask_apt(command, package, Path(folder)).splitlines()]
    # "Inst NAME (VERSION ...)"; an older version that is installed stands before it in brackets.
    return [words[1] for words in said if words[:1] == ["Inst"] and words[2].startswith("(")]


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
    _ask_apt(["download", package], package, folder)
    return next(folder.glob(f"{package}_*.deb"))


def _ask_apt(command: Sequence[str], package: str, folder: Path) -> str:
    """Run apt-get with this machine's package lists, or with fresh ones if they do not know the package."""
    try:
        return _run(["apt-get", *command], package, folder)
    except NoPackage:
        own = [f"-oDir::State::Lists={folder / 'lists'}", f"-oDir::Cache={folder / 'cache'}"]
        (folder / "lists" / "partial").mkdir(parents=True)
        (folder / "cache" / "archives" / "partial").mkdir(parents=True)
        _run(["apt-get", *own, "update"], package, folder)
        return _run(["apt-get", *own, *command], package, folder)


def _run(command: Sequence[str], package: str, folder: Path) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise NoPackage(
            f"{command[0]} is not installed: install {package} yourself so that it is on PATH"
        ) from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise NoPackage(f"{package} cannot be downloaded with {' '.join(command)}: {last}")
    return done.stdout
