"""Every module stands in the layers' contract: pure, or named as what the pure ones may not import."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("reberth", "extender", "rescheduler", "federation")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_has_its_layer(package: str) -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    pure = next(contract for contract in contracts if contract["name"] == "pure core")
    named = {*pure["source_modules"], *pure["forbidden_modules"]}
    assert list(unnamed(ROOT / package, package, named)) == []


def unnamed(folder: Path, package: str, named: set[str]) -> Iterator[str]:
    """Go through the modules of a package; one that is named as a whole is not opened."""
    for path in sorted(folder.iterdir()):
        name = f"{package}.{path.stem}"
        if name in named or path.stem.startswith("__"):
            continue
        if path.suffix == ".py":
            yield name
        elif (path / "__init__.py").exists():
            yield from unnamed(path, name, named)
