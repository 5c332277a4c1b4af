"""The wheel holds only what runs, and can be imported where nothing else is installed."""

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from reberth import __version__
from tests.support.repository import ROOT

PACKAGES = ("reberth", "extender", "rescheduler", "federation", "kubectl_reberth")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(out), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    return next(out.glob("*.whl"))


def test_the_wheel_holds_our_packages_alone(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(PACKAGES)


def test_the_wheel_has_the_version_that_the_programs_tell(wheel: Path) -> None:
    assert wheel.name.split("-")[:2] == ["reberth", __version__]


def test_the_wheel_is_imported_from_a_clean_environment(wheel: Path, tmp_path: Path) -> None:
    """Its dependencies are taken from here by path; the package itself only from the wheel."""
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-index", "--no-deps"]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    here = next(path for path in sys.path if path.endswith("site-packages"))
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if path.stem not in ("__init__", "__main__")
    ]
    program = f"import sys; sys.path.append({here!r}); import {', '.join(names)}"
    program += "; assert 'site-packages/reberth' in reberth.records.__file__, reberth.records.__file__"
    subprocess.run([str(python), "-I", "-c", program], check=True, cwd=tmp_path)
