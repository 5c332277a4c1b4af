"""The scripts that make certificates: what they make is whole, and what they cannot make is named."""

import subprocess
from pathlib import Path

import pytest

from tests.support.repository import MANIFESTS

SCRIPTS = [MANIFESTS / "extender" / "certificates.sh", MANIFESTS / "federation" / "certificates.sh"]

pytestmark = pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.parent.name)


def run(script: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([script, *arguments], check=False, capture_output=True, text=True)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_existing_pairs_stay_and_a_deleted_pair_is_renewed(script: Path, tmp_path: Path) -> None:
    assert run(script, str(tmp_path)).returncode == 0
    first = contents(tmp_path)
    assert {Path(name).suffix for name in first} == {".crt", ".key"}
    assert all(file.stat().st_mode & 0o077 == 0 for file in tmp_path.iterdir())
    (tmp_path / "tls.crt").unlink()
    (tmp_path / "tls.key").unlink()
    assert run(script, str(tmp_path)).returncode == 0
    second = contents(tmp_path)
    assert second.keys() == first.keys()
    assert {name for name in first if first[name] != second[name]} == {"tls.crt", "tls.key"}


def test_an_authority_without_its_key_signs_nothing_and_reports_it(script: Path, tmp_path: Path) -> None:
    run(script, str(tmp_path))
    (tmp_path / "ca.key").rename(tmp_path / "elsewhere")
    (tmp_path / "tls.crt").unlink()
    done = run(script, str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.startswith("certificates.sh: ca.key is missing, and tls.crt cannot be signed")
    assert not (tmp_path / "tls.crt").exists()
    (tmp_path / "elsewhere").rename(tmp_path / "ca.key")
    assert run(script, str(tmp_path)).returncode == 0
    command = ["openssl", "verify", "-CAfile", "ca.crt", "tls.crt"]
    assert subprocess.run(command, cwd=tmp_path, check=False, capture_output=True).returncode == 0


def test_an_invalid_key_is_reported_with_openssls_message(script: Path, tmp_path: Path) -> None:
    run(script, str(tmp_path))
    (tmp_path / "ca.key").write_text("no key")
    (tmp_path / "tls.crt").unlink()
    done = run(script, str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.startswith("certificates.sh: cannot create tls.crt: ")
    assert "ca.key" in done.stderr
    assert not (tmp_path / "tls.crt").exists()


def test_a_key_without_its_authority_is_not_overwritten(script: Path, tmp_path: Path) -> None:
    (tmp_path / "ca.key").write_text("precious")
    done = run(script, str(tmp_path))
    assert (done.returncode, contents(tmp_path)) == (2, {"ca.key": b"precious"})
    assert "ca.key exists without ca.crt" in done.stderr


@pytest.mark.parametrize("days", ["0", "00", "-1", "soon"])
def test_invalid_days_are_refused_before_any_file_is_written(script: Path, tmp_path: Path, days: str) -> None:
    done = run(script, str(tmp_path / "certificates"), days)
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])
    assert "is not a whole number above 0" in done.stderr
