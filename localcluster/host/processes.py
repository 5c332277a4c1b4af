"""Start processes that can always be found again, and stop exactly those.

Each process carries a tag in its environment: the folder of its cluster and its name in it. The tag is
there from the first instant of the program and cannot be lost with a parent, so no record is needed: what
runs is what /proc shows. A signal goes through a pidfd that was opened before the tag was read again, so
it never reaches another process that was given an old pid.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TAG = "LOCALCLUSTER_PROCESS"
_PATIENCE = 10.0
_GONE = "gone"
_ENDED = ("Z", "X", _GONE)
# Where the kernel's flags of a process stand in /proc/PID/stat behind its name, and that of its last moments.
_FLAGS, _PF_EXITING = 6, 0x4


@dataclass(frozen=True, order=True)
class Running:
    folder: str
    name: str
    pid: int


def start(
    argv: Sequence[str],
    *,
    folder: Path,
    name: str,
    env: Mapping[str, str] | None = None,
    dies_with_parent: bool = False,
) -> Running:
    """Start a program in its own session; its output is appended to the cluster's log of that name."""
    log = folder / "logs" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    wrapper = _dying_with_parent() if dies_with_parent else []
    argv = [*wrapper, *argv]
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    pid = os.posix_spawnp(
        argv[0],
        argv,
        {**(os.environ if env is None else env), TAG: f"{folder}#{name}"},
        setsid=True,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), flags, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
    )
    _wait_for_program(pid, wrapper)
    return Running(str(folder), name, pid)


def _wait_for_program(pid: int, wrapper: Sequence[str]) -> None:
    """For some microseconds after exec the kernel shows nothing of a program; a wrapper takes longer."""
    unready = {"", *wrapper[:1]}
    while _program(pid) in unready and _state(pid) not in _ENDED:
        time.sleep(0.0002)


def _dying_with_parent() -> list[str]:
    """The kernel kills what outlives a killed test run; without util-linux only `down` does."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL"] if setpriv else []


def find(folder: Path | None = None) -> list[Running]:
    """Every tagged process alive, of one cluster folder or of all."""
    pids = (int(entry) for entry in os.listdir("/proc") if entry.isdigit())  # noqa: PTH208 - names, not paths
    found = [running for pid in pids if (running := _identity(pid))]
    return sorted(running for running in found if folder is None or running.folder == str(folder))


def _identity(pid: int) -> Running | None:
    prefix = f"{TAG}=".encode()
    tags = (value[len(prefix) :].decode() for value in _variables(pid) if value.startswith(prefix))
    folder, _, name = next(tags, "").rpartition("#")
    return Running(folder, name, pid) if folder and _state(pid) not in _ENDED else None


def _variables(pid: int) -> list[bytes]:
    """Its environment; nothing where it is gone or another user's."""
    try:
        content = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return []
    return content.split(b"\0") if content else []


def _is_exiting(pid: int) -> bool:
    """Whether it is exiting: memory and tag are gone, but its sockets may still be open."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return bool(int(fields[_FLAGS]) & _PF_EXITING)


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()
    except OSError:
        return ""


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return _GONE


def is_alive(running: Running) -> bool:
    _reap(running.pid)
    return _identity(running.pid) == running


def send(running: Running, signal_number: signal.Signals) -> bool:
    """Signal this very process; False where it is gone."""
    try:
        pidfd = os.pidfd_open(running.pid)
    except ProcessLookupError:
        return False
    try:
        if _identity(running.pid) != running:
            return False
        signal.pidfd_send_signal(pidfd, signal_number)
    except ProcessLookupError:
        return False
    finally:
        os.close(pidfd)
    return True


async def stop(*processes: Running, patience: float = _PATIENCE) -> None:
    """Send SIGTERM to all, and SIGKILL to those still running after a while; returns when all are gone."""
    for running in processes:
        send(running, signal.SIGTERM)
        send(running, signal.SIGCONT)  # a frozen process would never see the SIGTERM
    try:
        async with asyncio.timeout(patience):
            for running in processes:
                await gone(running)
    except TimeoutError:
        await kill(*processes)


async def kill(*processes: Running) -> None:
    for running in processes:
        send(running, signal.SIGKILL)
    for running in processes:
        await gone(running)


async def gone(running: Running) -> None:
    """Wait until the process has ended; cancelling leaves it as it is."""
    try:
        pidfd = os.pidfd_open(running.pid)
    except ProcessLookupError:
        return
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(pidfd, ended.set)
    try:
        if _identity(running.pid) == running or _is_exiting(running.pid):
            await ended.wait()
    finally:
        loop.remove_reader(pidfd)
        os.close(pidfd)
        _reap(running.pid)


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
