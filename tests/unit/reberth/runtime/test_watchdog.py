"""A process that is stuck while it leads ends; in processes of their own."""

import subprocess
import sys
import time

import pytest

from tests.support.repository import ROOT

PROGRAM = """
import asyncio, re, time
from reberth.runtime.watchdog import ending_when_stuck

def sleep_on():
    time.sleep(60)

def keep_the_interpreter():
    re.match("(a+)+b", "a" * 60)

async def work():
    async with ending_when_stuck(0.5):
        {inside}
    {outside}

asyncio.run(work())
"""
LIVELY = "await asyncio.sleep(1.5)"


def run(*, inside: str, outside: str = "pass") -> tuple[int, str, float]:
    """Give the exit code, what it wrote, and how long it lived."""
    started = time.monotonic()
    program = PROGRAM.format(inside=inside, outside=outside)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
    )
    return done.returncode, done.stderr, time.monotonic() - started


@pytest.mark.parametrize("stuck_in", ["sleep_on", "keep_the_interpreter"])
def test_a_leader_whose_loop_is_stuck_ends_and_says_where(stuck_in: str) -> None:
    code, said, lived = run(inside=f"{LIVELY}; {stuck_in}()")
    assert code == 1
    assert f"in {stuck_in}" in said
    assert lived < 20


def test_who_does_not_lead_may_take_its_time() -> None:
    code, said, lived = run(inside=LIVELY, outside="time.sleep(1.5)")
    assert (code, said) == (0, "")
    assert lived >= 3
