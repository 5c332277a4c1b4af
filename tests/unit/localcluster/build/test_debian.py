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
  *"install --simulate"*) {simulate} ;;
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


def apt(
    calls: Path,
    *,
    download: str = "touch tool_1.0_all.deb",
    update: str = "true",
    simulate: str = "false",
) -> None:
    content = APT.format(calls=calls, download=download, update=update, simulate=simulate)
    _write(calls.parent / "bin" / "apt-get", content)


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


NEEDED = r"printf 'Inst old [1] (2 Debian)\nInst lib-7 (1 Debian)\nInst tool (1.0 Debian)\nConf tool\n'"


def test_what_a_package_needs_and_is_not_installed_comes_with_it(calls: Path) -> None:
    apt(calls, download='touch "$2_1.0_all.deb"', simulate=NEEDED)
    found = debian.contents("tool")
    assert [folder.name for folder in found] == ["debian-lib-7", "debian-tool"]
    assert debian.contents("tool") == found
    asked = calls.read_text().splitlines()
    assert asked == ["install --simulate --no-install-recommends tool", "download lib-7", "download tool"]


def test_one_of_what_a_package_needs_is_taken_alone_be_it_installed_or_not(calls: Path) -> None:
    apt(calls, download='touch "$2_1.0_all.deb"', simulate=NEEDED)
    assert [folder.name for folder in debian.contents("tool", only="lib-")] == ["debian-lib-7"]
    assert "Dir::State::status=/dev/null install" in calls.read_text()


def test_a_package_that_consists_of_nothing_is_refused_and_asked_for_again(calls: Path) -> None:
    apt(calls, simulate="true")
    with pytest.raises(debian.NoPackage, match="tool cannot be unpacked: apt-get names nothing"):
        debian.contents("tool")
    apt(calls, download='touch "$2_1.0_all.deb"', simulate=NEEDED)
    assert debian.contents("tool")


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
