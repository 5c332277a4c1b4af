"""Times are the API server's: what reads this machine's clock is named here, with the reason why it may."""

import re
from pathlib import Path

import pytest

from tests.support.repository import ROOT

LOCAL = {
    "reberth/cli/inputs.py": "the time of a file's objects is given, or now: there is no API server",
    "reberth/client/server_clock.py": "its own clock is the first guess",
    "reberth/runtime/certificates.py": "a metric of when a file was loaded",
    "reberth/runtime/live_files.py": "a metric of when a file was loaded",
    "rescheduler/__main__.py": "lines of a log",
}
_CLOCK = re.compile(r"\btime\.time(_ns)?\b|\bfrom time import|\b(datetime|date)\.(now|utcnow|today)\b")
_PARTS = ("reberth", "extender", "rescheduler")
FILES = [file for part in _PARTS for file in sorted((ROOT / part).rglob("*.py"))]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_nothing_else_reads_this_machines_clock(file: Path) -> None:
    assert bool(_CLOCK.search(file.read_text())) == (str(file.relative_to(ROOT)) in LOCAL)
