"""The memory that a rescheduler needs is as documented, and fits into the limit of its manifest."""

import re
import subprocess
import sys
from typing import NamedTuple

import pytest
import yaml

from reberth.values.quantity import value
from tests.support.repository import MANIFESTS, ROOT

SHAPES = ((10, 300), (2, 0))  # replicas of a workload, and namespaces; 0: one for each workload
_ROW = re.compile(r"\| ([0-9,]+) \| ([0-9,]+) / ([0-9,]+) MiB \| ([0-9,]+) / ([0-9,]+) MiB \|")
_TOLERANCE = 1.25


class MemoryUse(NamedTuple):
    """MiB, after plans, and at most."""

    planned: int
    most: int


def documented() -> dict[int, tuple[MemoryUse, MemoryUse]]:
    """Give for each number of pods the use of both shapes."""
    rows = _ROW.findall((ROOT / "docs" / "rescheduler.md").read_text())
    read = [[int(cell.replace(",", "")) for cell in row] for row in rows]
    return {pods: (MemoryUse(*cells[:2]), MemoryUse(*cells[2:])) for pods, *cells in read}


def measure(pods: int, shape: int) -> MemoryUse:
    arguments = [str(each) for each in (pods, *SHAPES[shape])]
    command = [sys.executable, "-m", "tests.support.rescheduler.memory_use", *arguments]
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return MemoryUse(*map(int, said.split()))


def limit() -> float:
    file = MANIFESTS / "rescheduler" / "30-deployment.yaml"
    (container,) = yaml.safe_load(file.read_text())["spec"]["template"]["spec"]["containers"]
    return value(container["resources"]["limits"]["memory"]) / 2**20


def test_the_limit_leaves_a_quarter_above_the_highest_documented_use() -> None:
    highest = max(use.most for row in documented().values() for use in row)
    assert limit() >= _TOLERANCE * highest


def test_a_small_cluster_needs_what_is_documented() -> None:
    pods, uses = min(documented().items())
    use = measure(pods, 1)
    assert uses[1].most / _TOLERANCE <= use.most <= _TOLERANCE * uses[1].most


@pytest.mark.soak
@pytest.mark.parametrize("shape", [0, 1])
def test_the_largest_cluster_needs_what_is_documented(shape: int) -> None:
    pods, uses = max(documented().items())
    use = measure(pods, shape)
    assert use.planned <= _TOLERANCE * uses[shape].planned
    assert use.most <= _TOLERANCE * uses[shape].most
    assert use.most < limit()
