"""Each test on real nodes passes again and again, each time on machines that have just been started."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.repository import ROOT
from tests.support.resumable_rounds import Proof

pytestmark = [pytest.mark.live, pytest.mark.real_nodes]

ROUNDS = 20
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", "-m", "not soak", "--durations", "0")


@pytest.mark.soak
@pytest.mark.parametrize("name", ["federated", "moving", "nodes", "resizing"])
def test_twenty_rounds(name: str) -> None:
    """In a process of its own each: nothing of a round can help or disturb the next one."""
    here = Path(__file__).parent
    file = here / ("test_real_nodes.py" if name == "nodes" else f"test_real_nodes_{name}.py")
    proof = Proof(f"real-nodes-{name}")
    for number in proof.remaining(range(ROUNDS)):
        subprocess.run([sys.executable, *PYTEST, str(file)], cwd=ROOT, check=True)
        proof.note([number])
