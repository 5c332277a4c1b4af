"""What several calls have measured, in one file: sizes that take too long together are measured apart."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.planning.descheduling import DryRun
from bench.planning.reporting import Measured
from bench.reading.arms import Figures

Theirs = Mapping[int, Mapping[str, DryRun]]
"""The descheduler's figures, by number of nodes and arm."""


class Found(NamedTuple):
    """What was measured, and under which conditions, by number of nodes: one call has one text."""

    ours: Measured
    theirs: Theirs
    conditions: Mapping[int, str]
    beside: Mapping[int, str]


class _Kept(msgspec.Struct):
    ours: dict[int, dict[str, list[Figures]]] = {}
    theirs: dict[int, dict[str, DryRun]] = {}
    conditions: dict[int, str] = {}
    beside: dict[int, str] = {}


def join(file: Path, found: Found) -> Found:
    """Merge new figures into the stored ones, replacing those of the same sizes; returns all."""
    kept = msgspec.json.decode(file.read_bytes(), type=_Kept) if file.exists() else _Kept()
    for (nodes, arm), runs in found.ours.items():
        kept.ours.setdefault(nodes, {})[arm] = [*runs]
    kept.theirs |= {nodes: {**runs} for nodes, runs in found.theirs.items()}
    kept.conditions |= found.conditions
    kept.beside |= found.beside
    file.write_bytes(msgspec.json.encode(kept))
    ours = {(nodes, arm): runs for nodes, arms in kept.ours.items() for arm, runs in arms.items()}
    return Found(ours, kept.theirs, kept.conditions, kept.beside)
