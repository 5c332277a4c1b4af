"""Each check of the project must be able to fail."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from localcluster.host import processes
from tests import suites

SKIPPED = '<testsuites><testsuite><testcase name="test_a"/><testcase name="test_b"><skipped/></testcase>'
PASSED = '<testsuites><testsuite><testcase name="test_a"/>'
END = "</testsuite></testsuites>"


def report(tmp_path: Path, content: str) -> Path:
    path = tmp_path / "report.xml"
    path.write_text(content + END)
    return path


def test_a_skipped_live_test_is_red(tmp_path: Path) -> None:
    with pytest.raises(suites.Red, match="skipped: test_b"):
        suites.refuse_skips(report(tmp_path, SKIPPED))


def test_no_live_test_at_all_is_red(tmp_path: Path) -> None:
    with pytest.raises(suites.Red, match="no test ran"):
        suites.refuse_skips(report(tmp_path, "<testsuites><testsuite>"))


def test_live_tests_that_ran_are_green(tmp_path: Path) -> None:
    suites.refuse_skips(report(tmp_path, PASSED))


def test_a_real_skip_is_seen_in_a_real_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test_it.py").write_text("import pytest\n\n@pytest.mark.skip\ndef test_it(): ...\n")
    monkeypatch.setattr(suites, "BUILD", tmp_path)
    with pytest.raises(suites.Red, match="skipped: test_it"):
        suites.refuse_skips(suites.pytest("skips", str(tmp_path)))


def test_every_pure_file_is_counted() -> None:
    counted = {file for files in suites.list_pure_files().values() for file in files}
    assert "reberth/selectors/labels.py" in counted  # of a package
    assert "federation/scheduling/__init__.py" in counted
    assert all((suites.ROOT / file).is_file() for file in counted)
    assert all(suites.list_pure_files().values())  # a package that was renamed has no files


def measured(taken: int, of: int) -> dict[str, Any]:
    summary = {"num_statements": of, "covered_lines": taken, "num_branches": 0, "covered_branches": 0}
    return {"summary": summary}


def test_a_pure_file_that_was_not_measured_is_red() -> None:
    report = {"files": {"a/one.py": measured(10, 10)}}
    with pytest.raises(suites.Red, match="no coverage was measured of a/two.py"):
        suites.refuse_uncovered(report, {"a": ["a/one.py", "a/two.py"]})


def test_each_pure_package_is_covered_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    report = {"files": {"a/one.py": measured(100, 100), "b/one.py": measured(94, 100)}}
    pure = {"a": ["a/one.py"], "b": ["b/one.py"]}
    with pytest.raises(suites.Red, match="less than 95 % covered: b$"):
        suites.refuse_uncovered(report, pure)
    assert " 94.0 % of b (1 files)" in capsys.readouterr().out
    report["files"]["b/one.py"] = measured(95, 100)
    suites.refuse_uncovered(report, pure)


async def test_a_process_left_behind_is_red(tmp_path: Path) -> None:
    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    left = processes.start(sleep, folder=tmp_path / "cluster", name="stray", dies_with_parent=True)
    try:
        with pytest.raises(suites.Red, match=rf"left behind: stray \(pid {left.pid}\), folder cluster"):
            suites.refuse_leftovers(tmp_path)
    finally:
        await processes.kill(left)


def test_a_cluster_folder_left_behind_is_red(tmp_path: Path) -> None:
    (tmp_path / "cluster").mkdir()
    with pytest.raises(suites.Red, match="left behind: folder cluster"):
        suites.refuse_leftovers(tmp_path)


def test_a_changed_tree_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "changes", lambda: " M README.md\n")
    with pytest.raises(suites.Red, match="README.md"):
        suites.refuse_changes("")


@pytest.mark.parametrize(("suite", "content"), [("lint", "import os\n"), ("types", "x: int = 'a'\n")])
def test_a_fault_in_the_code_is_red(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suite: str, content: str
) -> None:
    (tmp_path / "reberth").mkdir()
    (tmp_path / "reberth" / "__init__.py").write_text(content)
    (tmp_path / "pyproject.toml").write_text((suites.ROOT / "pyproject.toml").read_text())
    monkeypatch.setattr(suites, "ROOT", tmp_path)
    monkeypatch.setattr(suites, "PACKAGES", ("reberth",))
    with pytest.raises(suites.Red, match="ended with 1"):
        suites.SUITES[suite]()


def test_a_red_suite_makes_the_whole_run_red() -> None:
    done = subprocess.run([sys.executable, "tests/suites.py", "nonsense"], cwd=suites.ROOT, check=False)
    assert done.returncode == 2


def test_the_rest_runs_after_a_red_suite(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def red() -> None:
        raise suites.Red("because")

    monkeypatch.setattr(suites, "SUITES", {"one": red, "two": lambda: None})
    monkeypatch.setattr(suites, "changes", lambda: "")
    assert suites.main(["one", "two"]) == 1
    assert "one: RED" in (out := capsys.readouterr().out)
    assert "two: green" in out
    assert "3 passed, 1 failed" in out


@pytest.mark.parametrize(
    ("obstacle", "ci", "expression"),
    [
        (None, None, ""),
        ("they need root", None, " and not real_nodes"),
        ("they need root", "false", " and not real_nodes"),
        ("they need root", "true", ""),  # where they have to run they fail, and say why
    ],
)
def test_tests_of_real_nodes_are_left_out_where_they_cannot_run(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    obstacle: str | None,
    ci: str | None,
    expression: str,
) -> None:
    monkeypatch.setattr(suites.requirements, "find_obstacle", lambda: obstacle)
    monkeypatch.delenv("CI", raising=False)
    if ci:
        monkeypatch.setenv("CI", ci)
    assert suites.leave_out() == expression
    assert capsys.readouterr().out.count("they need root") == bool(expression)
