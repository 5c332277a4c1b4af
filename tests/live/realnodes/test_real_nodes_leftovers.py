"""Nothing of real nodes is left on the machine, however they end."""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster import state_dir
from localcluster.host import processes
from localcluster.realnodes import cgroups
from localcluster.state_dir import running
from tests.live.support.machine_state import find_left_of, read_machine_state

pytestmark = [pytest.mark.live, pytest.mark.real_nodes]

TEST_RUN = """
import asyncio, sys
from localcluster.state_dir import running

async def main():
    async with running(sys.argv[1], real=2):
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_two_real_nodes_come_and_go() -> None:
    await come_and_go(1)


@pytest.mark.parametrize("kill", ["command", "test run"])
async def test_a_killed_parent_leaves_nothing(kill: str) -> None:
    before = read_machine_state()
    await (kill_command() if kill == "command" else kill_test_run())
    assert read_machine_state() == before


@pytest.mark.soak
async def test_twenty_rounds_with_a_killed_parent_in_each_fifth() -> None:
    for number in range(4):
        await come_and_go(4)
        before = read_machine_state()
        await (kill_command() if number % 2 else kill_test_run())
        assert read_machine_state() == before


async def come_and_go(rounds: int) -> None:
    before = read_machine_state()
    for _ in range(rounds):
        async with running(real=2, nodes=30) as cluster:
            folder = cluster.folder
        assert find_left_of(folder) == []
        assert read_machine_state() == before


async def kill_command() -> None:
    """`up` is killed while a kubelet starts: its nodes run on, until `down`."""
    folder = state_dir.folder_of("orphans")
    with start("-m", "localcluster", "up", "--name", "orphans", "--real-nodes", "2") as up:
        await wait_for_kubelet(folder)
        up.kill()
    assert find_left_of(folder) != []
    subprocess.run([sys.executable, "-m", "localcluster", "down", "--name", "orphans"], check=True)
    assert find_left_of(folder) == []


async def kill_test_run() -> None:
    """The nodes of a test run die with it, and the next start removes their cgroups."""
    folder = state_dir.folder_of("died")
    with start("-c", TEST_RUN, "died") as run:
        await wait_for_kubelet(folder)
        run.kill()
    async with asyncio.timeout(20):
        while processes.find(folder):
            await asyncio.sleep(0.02)
    async with running(real=1) as cluster:
        assert cgroups.find_of(folder) == []
    assert find_left_of(cluster.folder) == []
    await state_dir.remove("died")
    assert find_left_of(folder) == []


@contextlib.contextmanager
def start(*arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, *arguments], stdout=pipe, stderr=pipe) as process:
        try:
            yield process
        finally:
            process.kill()


async def wait_for_kubelet(folder: Path) -> None:
    async with asyncio.timeout(120):
        while not any(found.name.endswith("/kubelet") for found in processes.find(folder)):
            await asyncio.sleep(0.02)
