"""The pause annotation of the lease."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from reberth.client.api import Api
from reberth.client.lease import LeaseSettings
from reberth.cluster.cache import DELETED, MODIFIED
from reberth.protocol.response import Page, WatchEvent
from reberth.records import Lease, LeaseSpec, ObjectMeta
from reberth.values import errors
from rescheduler.daemon.pause import ANNOTATION, PAUSED, PauseWatch

pytestmark = [pytest.mark.looptime, pytest.mark.asyncio]


def lease(word: str | None) -> Lease:
    annotations = None if word is None else {ANNOTATION: word}
    return Lease(ObjectMeta(name="reberth-rescheduler", annotations=annotations), LeaseSpec())


class Server:
    """Lists one lease, and sends events until somebody takes the line."""

    def __init__(self, first: Lease | None) -> None:
        self.listed = first
        self.events: asyncio.Queue[WatchEvent[Lease] | errors.ApiError] = asyncio.Queue()
        self.asked: list[dict[str, Any]] = []
        self.forbidden: errors.Forbidden | None = None

    async def list_pages(self, _resource: Any, **where: Any) -> AsyncIterator[Page[Lease]]:
        self.asked.append(where)
        if self.forbidden:
            raise self.forbidden
        yield Page([self.listed] if self.listed else [], "7", "")

    @asynccontextmanager
    async def watch(
        self, _resource: Any, *, since: str, seconds: float, **where: Any
    ) -> AsyncIterator[AsyncIterator[WatchEvent[Lease]]]:
        assert (since, seconds > 0, where) == ("7", True, self.asked[-1])

        async def lines() -> AsyncIterator[WatchEvent[Lease]]:
            while True:
                event = await self.events.get()
                if isinstance(event, errors.ApiError):
                    raise event
                yield event

        yield lines()


@asynccontextmanager
async def pausing(first: Lease | None) -> AsyncIterator[tuple[Server, PauseWatch, list[float]]]:
    server, ends = Server(first), list[float]()
    clock = asyncio.get_running_loop().time
    pause = PauseWatch(cast("Api", server), LeaseSettings(), on_end=lambda: ends.append(clock()))
    task = asyncio.create_task(pause.run())
    await asyncio.sleep(0.01)
    yield server, pause, ends
    task.cancel()


async def test_the_annotation_pauses_and_resumes() -> None:
    async with pausing(lease(None)) as (server, pause, ends):
        steps = [("true", True), ("yes", False), ("true", True), (None, False)]
        for word, paused in steps:
            server.events.put_nowait(WatchEvent(MODIFIED, lease(word)))
            await asyncio.sleep(0.01)
            assert pause.refused == (PAUSED if paused else None)
        assert len(ends) == 2
    assert server.asked == [
        {"namespace": "reberth-system", "fieldSelector": "metadata.name=reberth-rescheduler"}
    ]


async def test_a_pause_holds_while_the_lease_cannot_be_read_and_ends_with_it() -> None:
    async with pausing(lease("true")) as (server, pause, ends):
        server.events.put_nowait(errors.Unreachable("watch", "gone"))
        await asyncio.sleep(0.5)
        assert pause.refused == PAUSED
        assert list(pause.list_warnings())[1:] == [
            "the lease reberth-system/reberth-rescheduler cannot be watched: watch: gone"
        ]
        server.listed = None
        await asyncio.sleep(1)
        assert pause.refused is None
        server.events.put_nowait(WatchEvent(MODIFIED, lease("true")))
        await asyncio.sleep(0.01)
        server.events.put_nowait(WatchEvent(DELETED, lease("true")))
        await asyncio.sleep(0.01)
        assert pause.refused is None
        assert len(ends) == 2


async def test_a_forbidden_watch_of_the_lease_is_reported_until_it_is_allowed() -> None:
    async with pausing(lease(None)) as (server, pause, _):
        assert list(pause.list_warnings()) == []
        server.forbidden = errors.Forbidden("list", "not for you")
        server.events.put_nowait(server.forbidden)
        await asyncio.sleep(5)
        assert list(pause.list_warnings()) == [
            "the lease reberth-system/reberth-rescheduler cannot be watched: list: not for you"
        ]
        server.forbidden = None
        await asyncio.sleep(1.1)
        assert list(pause.list_warnings()) == []


async def test_a_deleted_lease_is_reported_and_one_that_never_existed_is_not() -> None:
    async with pausing(None) as (server, pause, _):
        assert list(pause.list_warnings()) == []
        server.events.put_nowait(WatchEvent(MODIFIED, lease("true")))
        server.events.put_nowait(WatchEvent(DELETED, lease("true")))
        await asyncio.sleep(0.01)
        assert list(pause.list_warnings()) == [
            "the lease reberth-system/reberth-rescheduler cannot be watched: it was deleted"
        ]


async def test_a_watch_that_died_silently_is_started_again() -> None:
    async with pausing(lease(None)) as (server, pause, _):
        server.listed = lease("true")
        await asyncio.sleep(37)
        assert pause.refused == PAUSED
        assert len(server.asked) == 2


async def test_a_fault_of_the_listener_does_not_end_the_watch(faults: list[str]) -> None:
    def stumble(_: Lease) -> None:
        raise RecursionError

    async with pausing(lease(None)) as (server, pause, _):
        pause.listener = stumble
        server.events.put_nowait(WatchEvent(MODIFIED, lease("true")))
        await asyncio.sleep(1)
        assert pause.refused == PAUSED
    assert "request reberth-system/reberth-rescheduler: RecursionError" in " ".join(faults)
    faults.clear()
