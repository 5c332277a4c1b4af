"""What a daemon reports at /readyz."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from reberth.client.access import Access
from rescheduler.daemon.process import Daemon

SECONDS = 5.0
HEAD = "apiVersion: reberth.dev/v1alpha1\nkind: "


@pytest.mark.parametrize(
    ("lost", "ending"), [("", ""), ("no answer", "; this process lost the lease: no answer")]
)
def test_readyz_names_the_reason_for_a_lost_lease(lost: str, ending: str, tmp_path: Path) -> None:
    daemon = Daemon(*write_files(tmp_path), Access())
    daemon._lost = lost
    daemon._forecast.take_version((1, 37))
    resources: Any = SimpleNamespace(
        list_warnings=list,
        mirror=SimpleNamespace(troubles=dict),
        extenders=SimpleNamespace(list_remarks=lambda: ["refused: tls.key"]),
    )
    said = list(daemon._list_remarks(cast("Any", resources)))
    assert said == [
        f"standby: another process leads, or no process leads yet{ending}",
        "Kubernetes 1.37",
        "refused: tls.key",
    ]


@asynccontextmanager
async def waiting(folder: Path) -> AsyncIterator["asyncio.Task[None]"]:
    """A daemon that has asked an API server that never answers."""
    asked = asyncio.Event()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        while await reader.read(1000):
            pass
        writer.close()
        await writer.wait_closed()

    silent = await asyncio.start_server(hold, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}"
    daemon = Daemon(*write_files(folder), Access(str(write_kubeconfig(folder / "config", url))))
    running = asyncio.create_task(daemon.run())
    async with silent, asyncio.timeout(SECONDS):
        await asked.wait()
        yield running
    await asyncio.sleep(0.05)  # the connection ends on both sides


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_a_daemon_that_waits_for_the_first_answer(
    number: signal.Signals, tmp_path: Path
) -> None:
    async with waiting(tmp_path) as running:
        os.kill(os.getpid(), number)
        await asyncio.wait([running], timeout=SECONDS / 2)
        assert running.done()
        assert running.result() is None


async def test_a_daemon_that_is_cancelled_at_its_start_was_not_stopped(tmp_path: Path) -> None:
    async with waiting(tmp_path) as running:
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


def write_files(folder: Path) -> tuple[Path, Path]:
    settings, policy = folder / "ReschedulerSettings", folder / "ReschedulerPolicy"
    for file in (settings, policy):
        file.write_text(f"{HEAD}{file.name}\n")
    return settings, policy


def write_kubeconfig(path: Path, url: str) -> Path:
    path.write_text(
        "{current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],"
        f" clusters: [{{name: c, cluster: {{server: '{url}'}}}}], users: [{{name: u, user: {{token: t}}}}]}}"
    )
    return path
