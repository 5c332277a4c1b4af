"""Runs that were measured, put down one by one: a measurement that is broken off has lost one run."""

from pathlib import Path

import msgspec

from bench.federation.following import Run
from bench.reading.arms import Failed


def put_down(file: Path, run: Run) -> None:
    """Add a run to those in the file."""
    with file.open("ab") as stream:
        stream.write(msgspec.json.encode(run) + b"\n")


def read(file: Path) -> list[Run]:
    """Read all runs in the order of their measurement. Raises Failed for another kind of file."""
    lines = file.read_bytes().splitlines() if file.exists() else []
    try:
        return [msgspec.json.decode(line, type=Run) for line in lines]
    except msgspec.DecodeError as error:
        raise Failed(f"{file}: {error}") from error
