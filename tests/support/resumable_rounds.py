"""Run long proofs in rounds: a stopped proof resumes with the rounds that this code has not yet passed."""

import hashlib
import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.support.repository import ROOT

RESULTS_FILE = ROOT / "reberth" / "forecast" / "state" / "proven_versions.json"
"""Proofs write it, so it is no part of the code that they prove: else each would begin the next one anew."""


class Proof:
    """Rounds by number, and which of them have passed; kept in `.build/soak`, for this code."""

    def __init__(self, name: str, folder: Path = ROOT / ".build" / "soak") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / f"{name}-{_fingerprint()}.txt"

    def passed(self) -> set[int]:
        return set(map(int, self._file.read_text().split())) if self._file.exists() else set()

    def remaining(self, rounds: Iterable[int]) -> Sequence[int]:
        passed = self.passed()
        return [number for number in rounds if number not in passed]

    def note(self, rounds: Iterable[int]) -> None:
        with self._file.open("a") as file:
            file.writelines(f"{number}\n" for number in rounds)


def _fingerprint() -> str:
    """Of the code as it stands, committed or not, and of the version of Kubernetes."""
    digest = hashlib.sha256(os.environ.get("KUBERNETES", "").encode())
    changed = ["git", "diff", "HEAD", "--", ".", f":!{RESULTS_FILE.relative_to(ROOT)}"]
    for command in (["git", "rev-parse", "HEAD"], changed):
        digest.update(subprocess.run(command, cwd=ROOT, capture_output=True, check=False).stdout)
    return digest.hexdigest()[:12]
