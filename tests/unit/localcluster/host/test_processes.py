"""Processes are found by their tag, and signals reach nobody else."""

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from localcluster.host import processes

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
STUBBORN = [
    sys.executable,
    "-uc",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf'); time.sleep(600)",
]
# It takes the kernel a while to free its memory; only then its sockets are closed.
HOLD_AND_LISTEN = """
import socket, sys, time
held = bytearray(b"x") * (200 << 20)
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listens")
time.sleep(600)
"""
FAT = [sys.executable, "-uc", HOLD_AND_LISTEN]


@pytest_asyncio.fixture
async def folder(tmp_path: Path) -> AsyncIterator[Path]:
    yield tmp_path
    await processes.kill(*processes.find(tmp_path))


async def test_started_processes_are_found_by_name_in_their_folder_only(folder: Path) -> None:
    one = processes.start(SLEEP, folder=folder, name="one")
    processes.start(SLEEP, folder=folder / "other", name="two")
    assert processes.find(folder) == [one]
    assert len([found for found in processes.find() if found.folder.startswith(str(folder))]) == 2
    await processes.kill(*processes.find(folder / "other"))


async def test_output_goes_to_the_log_of_that_name(folder: Path) -> None:
    talker = processes.start([sys.executable, "-c", "print('hello')"], folder=folder, name="talker")
    await processes.gone(talker)
    assert (folder / "logs" / "talker.log").read_text() == "hello\n"


async def test_stop_ends_a_process_and_a_frozen_one_too(folder: Path) -> None:
    running = [processes.start(SLEEP, folder=folder, name=name) for name in ("awake", "frozen")]
    processes.send(running[1], signal.SIGSTOP)
    await processes.stop(*running)
    assert not any(map(processes.is_alive, running))


async def test_a_process_that_ignores_sigterm_is_killed_after_the_timeout(folder: Path) -> None:
    deaf = processes.start(STUBBORN, folder=folder, name="deaf")
    while "deaf" not in (folder / "logs" / "deaf.log").read_text():
        await asyncio.sleep(0.01)
    await processes.stop(deaf, patience=0.2)
    assert not processes.is_alive(deaf)


async def test_a_killed_process_has_released_its_sockets_even_with_much_memory(folder: Path) -> None:
    for number in range(6):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        fat = processes.start([*FAT, str(port)], folder=folder, name=f"fat-{number}")
        while "listens" not in (folder / "logs" / f"fat-{number}.log").read_text():
            await asyncio.sleep(0.01)
        await processes.kill(fat)
        with socket.socket() as heir:
            heir.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            heir.bind(("127.0.0.1", port))


async def test_a_signal_never_reaches_a_stranger_with_the_same_pid(folder: Path) -> None:
    running = processes.start(SLEEP, folder=folder, name="innocent")
    impostor = processes.Running(str(folder), "somebody-else", running.pid)
    assert processes.send(impostor, signal.SIGKILL) is False
    await processes.kill(impostor)
    assert processes.is_alive(running)


async def test_a_process_dies_with_its_parent_if_asked_to(folder: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from localcluster.host import processes;"
        f"processes.start({SLEEP!r}, folder=Path({str(folder)!r}), name='child', dies_with_parent=True);"
        "print('started', flush=True); sys.stdin.read()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "started\n"
    child = processes.find(folder)[0]
    parent.kill()
    parent.communicate()
    await asyncio.wait_for(processes.gone(child), 10)
    assert not processes.find(folder)
