"""The recorder goes on where a watch ended, and begins anew where the server has forgotten."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest

from localcluster import recorder
from localcluster.client import Client
from localcluster.recorder import Recorder


def event(kind: str, name: str, version: int) -> Any:
    meta = {"name": name, "resourceVersion": str(version), "managedFields": [{}]}
    return {"type": kind, "object": {"metadata": meta}}


class Server:
    """Answers one list after the other, and one watch after the other; the last one never ends."""

    def __init__(self, *watches: list[Any]) -> None:
        self.asked: list[str] = []
        self._watches = list(watches)
        self.is_over = asyncio.Event()

    async def get(self, _: str) -> Any:
        listed = event("", "first", 1)["object"]
        return {"metadata": {"resourceVersion": "10"}, "items": [listed]}

    async def watch(self, _: str, version: str) -> AsyncIterator[Any]:
        self.asked.append(version)
        if not self._watches:
            self.is_over.set()
            await asyncio.Event().wait()
        for each in self._watches.pop(0):
            if isinstance(each, Exception):
                raise each
            yield each


async def record(server: Server) -> Recorder:
    made = Recorder()
    client = cast("Client", server)
    following = asyncio.create_task(made.follow(client, "pods", await made.list_all(client, "pods")))
    async with asyncio.timeout(10):
        await server.is_over.wait()
    following.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await following
    return made


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "_SECONDS_BETWEEN_TRIES", 0)


async def test_a_watch_that_ends_or_breaks_goes_on_at_its_last_version() -> None:
    broken = aiohttp.ClientConnectionError()
    server = Server([event("ADDED", "one", 11)], [event("MODIFIED", "one", 12), broken])
    made = await record(server)
    assert server.asked == ["10", "11", "12"]
    assert [(each.type, each.object["metadata"]["name"]) for each in made.changes] == [
        ("LISTED", "first"),
        ("ADDED", "one"),
        ("MODIFIED", "one"),
    ]


async def test_a_server_that_has_forgotten_is_listed_again() -> None:
    made = await record(Server([{"type": "ERROR", "object": {"code": 410}}]))
    assert [each.type for each in made.changes] == ["LISTED", "LISTED"]


async def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = await record(Server([event("ADDED", "one", 11), event("DELETED", "one", 12)]))
    made.write(tmp_path / "it.jsonl")
    assert recorder.read(tmp_path / "it.jsonl").changes == made.changes
    assert [each.type for each in made.states_of("one")] == ["ADDED", "DELETED"]
    assert all("managedFields" not in each.object["metadata"] for each in made.changes)
