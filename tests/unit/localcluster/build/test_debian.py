"""Programs of Debian's packages are unpacked once. Shell scripts stand for apt-get and dpkg-deb."""

import os
import subprocess
from pathlib import Path

import pytest

from localcluster.build import debian

APT = """#!/bin/sh
echo "$@" >> {calls}
case "$*" in
  *Lists=*" download "*) touch tool_1.0_all.deb ;;
  "download "*) {download} ;;
  *" update") {update} ;;
esac
"""
DPKG = """#!/bin/sh
mkdir -p "$3/usr/bin" && printf '#!/bin/sh\\necho tool\\n' > "$3/usr/bin/tool" && chmod +x "$3/usr/bin/tool"
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REBERTH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.defpath}")
    (tmp_path / "bin").mkdir()
    _write(tmp_path / "bin" / "dpkg-deb", DPKG)
    return tmp_path / "calls"


def apt(calls: Path, *, download: str = "touch tool_1.0_all.deb", update: str = "true") -> None:
    _write(calls.parent / "bin" / "apt-get", APT.format(calls=calls, download=download, update=update))


def test_a_package_is_taken_once(calls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    apt(calls)
    first = debian.program("tool", "tool")
    assert subprocess.run([first], capture_output=True, text=True, check=True).stdout == "tool\n"
    assert "taking tool from Debian" in capsys.readouterr().err
    assert debian.program("tool", "tool") == first
    assert calls.read_text() == "download tool\n"
    assert [path.name for path in first.parents[3].iterdir() if path.is_dir()] == ["debian-tool"]


def test_where_the_lists_know_nothing_own_ones_are_fetched(calls: Path) -> None:
    apt(calls, download="echo 'E: Unable to locate package' >&2; exit 100")
    assert debian.program("tool", "tool").exists()
    assert [line.split()[-1] for line in calls.read_text().splitlines()] == ["tool", "update", "tool"]


def test_a_program_on_path_is_used(calls: Path) -> None:
    _write(calls.parent / "bin" / "tool", "#!/bin/sh\n")
    assert debian.program("tool", "tool") == calls.parent / "bin" / "tool"


def test_a_failed_download_is_one_line_and_leaves_no_folder(calls: Path) -> None:
    apt(calls, download="exit 100", update="echo 'E: no network' >&2; exit 100")
    with pytest.raises(debian.NoPackage, match=r"tool cannot be downloaded with .*update: E: no network"):
        debian.program("tool", "tool")
    assert not [path for path in (calls.parent / "cache" / "programs").iterdir() if path.is_dir()]


def test_a_machine_without_apt_asks_for_a_manual_install(
    calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(calls.parent / "bin"))
    with pytest.raises(debian.NoPackage, match="apt-get is not installed: install tool yourself"):
        debian.program("tool", "tool")


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
