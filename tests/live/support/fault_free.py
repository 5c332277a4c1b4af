"""What the processes of a live test must not have met: a fault of ours, however well it was contained."""

from pathlib import Path

from reberth.runtime.faults import LEFT_OUT


def refuse_faults(log: Path) -> None:
    """Fail with the lines of a log that tell of objects that were left out by a fault."""
    found = [line for line in log.read_text().splitlines() if LEFT_OUT in line] if log.exists() else []
    assert not found, "\n".join(found[:3])
