"""A watch that is told to list anew, while events come in."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from reberth.answers import Line
from reberth.api import Api
from reberth.cache import ADDED, BOOKMARK, MODIFIED, Cache
from reberth.records import ObjectMeta, Pod
from reberth.resources import PODS
from reberth.watching import Watcher, WatchSettings
from tests.builders import pod
from tests.reberth.drawn import pod_record

END = {"k8s.io/initial-events-end": "true"}


class FakeApi:
    """Its watches bring what is put into the queue; each notes from where it was to go on."""

    def __init__(self) -> None:
        self.lines: asyncio.Queue[Line[Pod]] = asyncio.Queue()
        self.since: list[str | None] = []

    @asynccontextmanager
    async def watch(self, *_: Any, since: str | None, **__: Any) -> AsyncIterator[AsyncIterator[Line[Pod]]]:
        self.since.append(since)
        yield self._read()

    async def _read(self) -> AsyncIterator[Line[Pod]]:
        while True:
            yield await self.lines.get()

    def bring(self, kind: str, version: int) -> None:
        self.lines.put_nowait(Line(kind, pod_record(pod("a"), version, uid="uid-a")))

    def end_list(self, version: int) -> None:
        meta = ObjectMeta("", resource_version=str(version), annotations=END)
        self.lines.put_nowait(Line(BOOKMARK, Pod(metadata=meta)))


@pytest.mark.looptime
async def test_an_event_that_comes_together_with_the_wish_does_not_undo_it() -> None:
    api, cache = FakeApi(), Cache(version=(1, 36))
    watcher = Watcher(cast("Api", api), cache, PODS, settings=WatchSettings(), on_change=lambda: None)
    watching = asyncio.create_task(watcher.run())
    api.bring(ADDED, 1)
    api.end_list(2)
    await watcher.synced()
    api.bring(MODIFIED, 3)
    watcher.resync()
    await asyncio.sleep(60)
    assert api.since == [None, None]
    watching.cancel()
