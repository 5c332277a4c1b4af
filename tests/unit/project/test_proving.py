"""A proof that was stopped goes on where it was, and begins anew when the code is another."""

import subprocess
from pathlib import Path

import msgspec
import pytest

from reberth.forecast.state.proven_versions import ProofResult, read_results
from tests.live.support.prove_version import write_result
from tests.support import resumable_rounds
from tests.support.repository import ROOT
from tests.support.resumable_rounds import RESULTS_FILE, Proof


def test_rounds_that_passed_are_not_run_again(tmp_path: Path) -> None:
    Proof("p", tmp_path).note([1, 3])
    Proof("p", tmp_path).note([4])
    assert Proof("p", tmp_path).remaining(range(6)) == [0, 2, 5]
    assert Proof("other", tmp_path).remaining(range(2)) == [0, 1]


def test_other_code_or_another_version_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Proof("p", tmp_path).note([0])
    monkeypatch.setenv("KUBERNETES", "another")
    assert Proof("p", tmp_path).remaining(range(1)) == [0]
    monkeypatch.delenv("KUBERNETES")
    monkeypatch.setattr(resumable_rounds, "_fingerprint", lambda: "other")
    assert Proof("p", tmp_path).remaining(range(1)) == [0]


def test_the_results_that_proofs_write_are_no_other_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = tmp_path / RESULTS_FILE.relative_to(ROOT)
    results.parent.mkdir(parents=True)
    results.write_text("{}")
    for command in (["init", "-q"], ["add", "."], [*_AUTHOR, "commit", "-qm", "all"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    monkeypatch.setattr(resumable_rounds, "ROOT", tmp_path)
    monkeypatch.setattr(resumable_rounds, "RESULTS_FILE", results)
    Proof("p", tmp_path / "soak").note([0])
    results.write_text("{more}")
    assert Proof("p", tmp_path / "soak").remaining(range(1)) == []
    (tmp_path / "code").write_text("new")
    subprocess.run(["git", "add", "code"], cwd=tmp_path, check=True)
    assert Proof("p", tmp_path / "soak").remaining(range(1)) == [0]


_AUTHOR = ("-c", "user.name=n", "-c", "user.email=n@example.com")


@pytest.mark.parametrize(
    ("passed", "rounds", "is_written"), [(2, 2, False), (60, 60, False), (500, 500, True), (59, 60, True)]
)
def test_a_result_that_says_less_than_what_is_there_is_not_written(
    tmp_path: Path, passed: int, rounds: int, *, is_written: bool
) -> None:
    file, known = tmp_path / "results.json", ProofResult(100, 100, "2026-11-18")
    file.write_bytes(msgspec.json.encode({"1.36.3": {"forecast": known}}))
    found = ProofResult(passed, rounds, "2026-11-20")
    assert write_result(file, "1.36.3", "forecast", found) is is_written
    assert write_result(file, "1.37.1", "forecast", found) is (rounds > 2)
    written = read_results(file.read_bytes())
    assert written["1.36.3"]["forecast"] == (found if is_written else known)
    assert [*written] == (["1.37.1", "1.36.3"] if rounds > 2 else ["1.36.3"])
