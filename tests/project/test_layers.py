"""Every module stands in the layers' contract: pure, or named as what the pure ones may not import."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


PACKAGES = ("reberth", "extender", "rescheduler", "federation")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_has_its_layer(package: str) -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    pure = next(contract for contract in contracts if contract["name"] == "pure core")
    named = {*pure["source_modules"], *pure["forbidden_modules"]}
    found = {
        f"{package}.{path.stem}"
        for path in (ROOT / package).iterdir()
        if (path.suffix == ".py" and not path.stem.startswith("__")) or (path / "__init__.py").exists()
    }
    assert found <= named
