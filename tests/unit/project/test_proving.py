"""A proof that was stopped goes on where it was, and begins anew when the code is another."""

from pathlib import Path

import pytest

from tests.support import resumable_rounds
from tests.support.resumable_rounds import Proof


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
