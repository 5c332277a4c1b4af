"""Build the programs of a product once, into a user cache keyed by versions and toolchain.

Starts that need the same product at the same time wait for one build; an interrupted build leaves
nothing that looks like a program.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from localcluster.build import download_cache, toolchain
from localcluster.build.products import Product
from localcluster.errors import LocalClusterError

_SECONDS_BETWEEN_REPORTS = 15.0


class BuildFailed(LocalClusterError):
    """A program cannot be built; the message says what to do."""


def programs(*products: Product) -> dict[str, Path]:
    """Return the path of each program: from $KUBE_BINARIES, the cache, or a build."""
    found: dict[str, Path] = {}
    for product in products:
        given = _given(product)
        found |= given if given.keys() == product.programs.keys() else _cached(product) | given
    return found


def _given(product: Product) -> dict[str, Path]:
    folder = os.environ.get("KUBE_BINARIES")
    if not folder:
        return {}
    if not Path(folder).is_dir():
        raise BuildFailed(f"KUBE_BINARIES={folder} is not a folder")
    paths = {name: Path(folder) / name for name in product.programs}
    return {name: path for name, path in paths.items() if os.access(path, os.X_OK)}


def _cached(product: Product) -> dict[str, Path]:
    go = toolchain.find()
    home = download_cache.cache_folder() / "programs"
    folder = home / f"{product.name}-{product.version}-{_key(product, go)}"
    if not folder.is_dir():
        lock = home / f"{folder.name}.lock"
        with download_cache.locked(lock, lambda: _say(f"waiting for another build of {product.title}")):
            if not folder.is_dir():
                _build(product, go, folder)
    return {name: folder / name for name in product.programs}


def _key(product: Product, go: toolchain.Go) -> str:
    digest = hashlib.sha256(go.version.encode())
    own = sorted(product.folder.glob("*.go")) if product.folder else ()
    for path in (product.sources / "go.mod", product.sources / "go.sum", *own):
        digest.update(path.read_bytes())
    digest.update(" ".join(_flags(product)).encode())
    return digest.hexdigest()[:12]


def _flags(product: Product) -> tuple[str, ...]:
    return ("-trimpath", "-ldflags", " ".join(("-s", "-w", *product.link)))


def _build(product: Product, go: toolchain.Go, folder: Path) -> None:
    names = ", ".join(product.programs)
    _say(f"building {product.title} ({names}): about {product.minutes} min on 2 cores, once per version")
    started = time.monotonic()
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)  # we hold the lock, so the process that left this is dead
    unfinished.mkdir(parents=True)
    packages = list(product.programs.values())
    # -v prints each package as it is compiled: the only progress that go reports.
    command = [go.path, "build", "-v", *_flags(product), "-o", f"{unfinished}/", *packages]
    log = folder.with_name(f"{folder.name}.log")
    _run(command, product, go=go, log=log)
    for name, package in product.programs.items():
        _rename_module_root(unfinished, name, package)
    unfinished.rename(folder)
    _say(f"built {product.title} in {time.monotonic() - started:.0f} s")


def _rename_module_root(folder: Path, name: str, package: str) -> None:
    """Go names a program after the last part of its package, for a module's root the part before /vN."""
    if not (folder / name).exists():
        built = [part for part in package.split("/") if (folder / part).exists()]
        (folder / built[-1]).rename(folder / name)


def _run(command: list[str], product: Product, *, go: toolchain.Go, log: Path) -> None:
    env = _environment(os.environ)
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=product.sources, env=env, stdout=out, stderr=out)
        try:
            _report(process, product, log)
        except BaseException:
            process.kill()
            process.wait()
            raise
    if process.returncode:
        last = "\n".join(log.read_text(errors="replace").strip().splitlines()[-5:])
        raise BuildFailed(
            f"cannot build {product.title} with {go.path} ({go.version}): {last}\n"
            f"The full output is in {log}. Make the Go module proxy reachable, "
            "or set KUBE_BINARIES to a folder with the programs."
        )


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    return {**env, "CGO_ENABLED": "0", "GOWORK": "off", "GOTOOLCHAIN": "local"}


def _report(process: "subprocess.Popen[bytes]", product: Product, log: Path) -> None:
    started = time.monotonic()
    while True:
        try:
            process.wait(_SECONDS_BETWEEN_REPORTS)
        except subprocess.TimeoutExpired:
            seconds, lines = time.monotonic() - started, log.read_bytes().count(b"\n")
            _say(f"  {product.title}: {seconds:.0f} s, {lines} steps")
        else:
            return


def _say(text: str) -> None:
    print(f"localcluster: {text}", file=sys.stderr, flush=True)
