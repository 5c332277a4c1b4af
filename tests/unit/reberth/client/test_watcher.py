"""A watch that is asked to resync during events, and a watch of a kind that may be missing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast

import pytest

from reberth.client.api import Api
from reberth.client.watcher import Watcher, WatchSettings
from reberth.cluster.cache import ADDED, BOOKMARK, MODIFIED, Cache, Listing
from reberth.cluster.kinds import LEDGERS, POD, PODS, Resource
from reberth.protocol.response import BadObject, Page, WatchEvent
from reberth.records import ObjectMeta, Pod
from reberth.values.errors import Invalid, NotFound, Unreachable
from tests.support.builders import pod
from tests.support.cluster.strategies import pod_record
from tests.support.metrics import read_metric

STREAMED = replace(PODS, is_large=False)
END = {"k8s.io/initial-events-end": "true"}


class FakeApi:
    """Its watches bring what is put into the queue; each notes from where it was to go on.

    A list in pages takes some seconds, and has the pod.
    """

    def __init__(self) -> None:
        self.lines: asyncio.Queue[WatchEvent[Pod] | BadObject | None] = asyncio.Queue()
        self.since: list[str | None] = []
        self.list_takes = 0.0
        self.opening_takes = 0.0
        self.is_installed = True
        self.is_reachable = True

    @asynccontextmanager
    async def watch(
        self, *_: Any, since: str | None, **__: Any
    ) -> AsyncIterator[AsyncIterator[WatchEvent[Pod] | BadObject]]:
        self.since.append(since)
        await asyncio.sleep(self.opening_takes)
        if not self.is_reachable:
            raise Unreachable("GET /pods", "no answer")
        if not self.is_installed:
            raise NotFound("watch /pods", "the server could not find the requested resource", status=404)
        yield self._read()

    async def list_parts(self, _: Any) -> AsyncIterator[Page[Pod]]:
        await asyncio.sleep(self.list_takes / 2)
        yield Page([pod_record(pod("a"), 1, uid="uid-a")], "2", "next")
        await asyncio.sleep(self.list_takes / 2)
        yield Page([], "2", "")

    async def _read(self) -> AsyncIterator[WatchEvent[Pod] | BadObject]:
        while self.is_installed and (line := await self.lines.get()):
            yield line

    def bring(self, kind: str, version: int, name: str = "a") -> None:
        self.lines.put_nowait(WatchEvent(kind, pod_record(pod(name), version, uid=f"uid-{name}")))

    def bookmark(self, version: int) -> None:
        self.lines.put_nowait(
            WatchEvent(BOOKMARK, Pod(metadata=ObjectMeta("", resource_version=str(version))))
        )

    def end_watch(self) -> None:
        self.lines.put_nowait(None)

    def end_list(self, version: int) -> None:
        meta = ObjectMeta("", resource_version=str(version), annotations=END)
        self.lines.put_nowait(WatchEvent(BOOKMARK, Pod(metadata=meta)))


@pytest.mark.looptime
async def test_a_pending_event_does_not_cancel_a_requested_resync() -> None:
    api, cache = FakeApi(), Cache(version=(1, 36))
    watcher = Watcher(cast("Api", api), cache, STREAMED, settings=WatchSettings(), on_change=lambda: None)
    watching = asyncio.create_task(watcher.run())
    api.bring(ADDED, 1)
    api.end_list(2)
    await watcher.synced()
    api.bring(MODIFIED, 3)
    watcher.resync()
    await asyncio.sleep(60)
    assert api.since == [None, None]
    watching.cancel()


@pytest.mark.looptime
async def test_a_resync_ends_a_watch_on_which_events_flow_at_once() -> None:
    loop, api, cache = asyncio.get_running_loop(), FakeApi(), Cache(version=(1, 36))
    watcher = Watcher(cast("Api", api), cache, STREAMED, settings=WatchSettings(), on_change=lambda: None)
    watching = asyncio.create_task(watcher.run())
    api.end_list(2)
    await watcher.synced()
    await asyncio.sleep(10)
    api.bring(MODIFIED, 3)  # it is taken before the timer can strike
    watcher.resync()
    asked = loop.time()
    while len(api.since) == 1:
        await asyncio.sleep(0.1)
    assert api.since == [None, None]
    assert loop.time() - asked < 1
    watching.cancel()


@pytest.mark.looptime
async def test_a_resync_ends_a_list_whose_parts_flow() -> None:
    api, cache = PagingApi(), Cache(version=(1, 36))
    api.pauses = [1.0, 1.0, 1.0]
    watcher = Watcher(cast("Api", api), cache, PODS, settings=WatchSettings(), on_change=lambda: None)
    watching = asyncio.create_task(watcher.run())
    await asyncio.sleep(1)  # the second part is about to come
    watcher.resync()
    await watcher.synced()
    assert [verb for verb, _ in api.asked] == ["list", "list", "watch"]
    watching.cancel()


@pytest.mark.looptime
async def test_an_optional_kind_is_empty_while_it_is_not_installed() -> None:
    api, cache = FakeApi(), Cache(version=(1, 36))
    api.is_installed = False
    foreign = replace(STREAMED, is_optional=True)
    watcher = Watcher(cast("Api", api), cache, foreign, settings=WatchSettings(), on_change=lambda: None)
    watching = asyncio.create_task(watcher.run())
    await asyncio.wait_for(watcher.synced(), 1)
    assert (watcher.trouble, len(cache.of(POD))) == (None, 0)
    await asyncio.sleep(3600)
    api.is_installed = True
    api.bring(ADDED, 7)
    api.end_list(8)
    await asyncio.sleep(600)
    assert (watcher.trouble, len(cache.of(POD))) == (None, 1)
    assert watcher.age > 0
    api.is_installed = False
    api.bring(MODIFIED, 9)  # the last one of this watch
    await asyncio.sleep(60)
    assert (watcher.trouble, len(cache.of(POD))) == (None, 0)
    assert set(api.since) - {"8"} == {None, "9"}  # a silent watch is opened again from 8
    watching.cancel()


@pytest.mark.looptime
async def test_an_optional_kind_that_is_not_installed_is_looked_for_ever_more_rarely() -> None:
    woken: list[float] = []
    loop, api = asyncio.get_running_loop(), FakeApi()
    api.is_installed = False
    foreign = replace(STREAMED, name="missed", is_optional=True)
    cache = Cache(version=(1, 36))
    watcher = Watcher(
        cast("Api", api),
        cache,
        foreign,
        settings=WatchSettings(),
        on_change=lambda: woken.append(loop.time()),
    )
    watching = asyncio.create_task(watcher.run())
    await asyncio.sleep(3600)
    first_hour = len(api.since)
    await asyncio.sleep(24 * 3600)
    assert first_hour <= 24  # eleven doublings, then a look every five to ten minutes
    assert 24 * 6 <= len(api.since) - first_hour <= 24 * 12
    # It counts neither as a restarted watch nor as an old cache, and nobody is woken for it.
    for cause in ("refused", "absent"):
        assert read_metric("reberth_watch_restarts_total", resource="missed", cause=cause) == 0
    assert (watcher.trouble, watcher.age, len(woken)) == (None, 0, 1)
    watching.cancel()


@pytest.mark.looptime
async def test_after_an_outage_an_optional_kind_is_looked_for_soon() -> None:
    api, cache = FakeApi(), Cache(version=(1, 36))
    api.is_installed = False
    foreign = replace(STREAMED, is_optional=True)
    watcher = Watcher(cast("Api", api), cache, foreign, settings=WatchSettings(), on_change=lambda: None)
    watching = asyncio.create_task(watcher.run())
    await asyncio.sleep(3600)
    api.is_reachable = False
    await asyncio.sleep(600)
    assert (watcher.trouble, watcher.age > 60) == ("GET /pods: no answer", True)
    api.is_reachable = True
    await asyncio.sleep(60)
    assert (watcher.trouble, watcher.age) == (None, 0)
    watching.cancel()


@pytest.mark.parametrize(
    ("resource", "said"),
    [
        (STREAMED, ""),
        (LEDGERS, ": reberth.dev/v1alpha2 is not served; apply manifests/crds of this version"),
    ],
)
@pytest.mark.looptime
async def test_any_other_kind_that_is_not_installed_is_a_trouble(resource: Resource[Any], said: str) -> None:
    """Of our own the definition may be there, of another version."""
    api = FakeApi()
    api.is_installed = False
    watcher = Watcher(
        cast("Api", api), Cache(version=(1, 36)), resource, settings=WatchSettings(), on_change=lambda: None
    )
    watching = asyncio.create_task(watcher.run())
    await asyncio.wait_for(watcher.answered(), 1)
    assert (watcher.trouble, watcher.is_synced) == (f"not installed in this cluster{said}", False)
    watching.cancel()


@pytest.mark.parametrize("is_custom", [True, False])
@pytest.mark.looptime
async def test_only_a_kind_of_another_project_is_not_waited_for_while_it_fails(*, is_custom: bool) -> None:
    api, resource = FakeApi(), replace(STREAMED, is_custom=is_custom)
    api.is_reachable = False
    watcher = Watcher(
        cast("Api", api), Cache(version=(1, 36)), resource, settings=WatchSettings(), on_change=lambda: None
    )
    watching = asyncio.create_task(watcher.run())
    await asyncio.sleep(1)
    assert (watcher.is_answered, watcher.is_synced) == (is_custom, False)
    watching.cancel()


class PagingApi:
    """A server that cannot stream lists; it notes what each request selected.

    A list comes in one part, and in another one after each of the pauses.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.pauses: list[float] = []

    @asynccontextmanager
    async def watch(
        self, _: Any, *, since: str | None, seconds: float, **selection: str
    ) -> AsyncIterator[AsyncIterator[WatchEvent[Pod]]]:
        assert seconds > 0
        self.asked.append(("watch", selection))
        if since is None:
            raise Invalid("watch /pods", "sendInitialEvents is forbidden", status=422)
        yield self._wait()

    async def list_parts(self, _: Any, **selection: str) -> AsyncIterator[Page[Pod]]:
        self.asked.append(("list", selection))
        yield Page([pod_record(pod("a"), 1, uid="uid-a")], "2", "")
        for pause in self.pauses:
            await asyncio.sleep(pause)
            yield Page([], "2", "")

    async def _wait(self) -> AsyncIterator[WatchEvent[Pod]]:
        await asyncio.sleep(3600)
        yield WatchEvent(BOOKMARK, Pod(metadata=ObjectMeta("", resource_version="3")))


@pytest.mark.looptime
async def test_a_selection_holds_for_the_watch_and_for_a_list_in_pages() -> None:
    api, cache = PagingApi(), Cache(version=(1, 36))
    selection = {"namespace": "shop", "labelSelector": "app=web"}
    watcher = Watcher(
        cast("Api", api),
        cache,
        STREAMED,
        settings=WatchSettings(),
        on_change=lambda: None,
        selection=selection,
    )
    watching = asyncio.create_task(watcher.run())
    await watcher.synced()
    await asyncio.sleep(1)
    assert api.asked == [("watch", selection), ("list", selection), ("watch", selection)]
    watching.cancel()


@pytest.mark.looptime
async def test_a_list_in_progress_tells_how_far_it_is() -> None:
    api, cache = FakeApi(), Cache(version=(1, 36))
    watcher = Watcher(cast("Api", api), cache, STREAMED, settings=WatchSettings(), on_change=lambda: None)
    watching = asyncio.create_task(watcher.run())
    api.bring(ADDED, 1)
    await asyncio.sleep(1)
    assert (watcher.listed, len(cache.of(POD))) == (1, 0)
    assert not watcher.is_synced
    assert not watcher.is_answered
    api.end_list(2)
    await asyncio.sleep(1)
    assert (watcher.listed, len(cache.of(POD))) == (0, 1)
    assert watcher.is_synced
    assert watcher.is_answered
    watching.cancel()


@pytest.mark.looptime
async def test_a_kind_with_many_objects_is_not_streamed() -> None:
    api, cache = PagingApi(), Cache(version=(1, 36))
    watcher = Watcher(cast("Api", api), cache, PODS, settings=WatchSettings(), on_change=lambda: None)
    watching = asyncio.create_task(watcher.run())
    await watcher.synced()
    await asyncio.sleep(1)
    assert [verb for verb, _ in api.asked] == ["list", "watch"]
    watching.cancel()


@asynccontextmanager
async def watched(api: FakeApi, resource: Resource[Any] = PODS) -> AsyncIterator[Watcher[Any]]:
    watcher = Watcher(
        cast("Api", api), Cache(version=(1, 36)), resource, settings=WatchSettings(), on_change=lambda: None
    )
    watching = asyncio.create_task(watcher.run())
    yield watcher
    watching.cancel()


def is_current(watcher: Watcher[Any], name: str = "a") -> bool:
    return watcher.is_current("default", name, within=1.0)


async def take(watcher: Watcher[Any], *, within: float = 0.01) -> float:
    """Give the age of the cache when what was brought has been taken."""
    await asyncio.sleep(within)
    return round(watcher.age, 1)


@pytest.mark.looptime
async def test_a_list_in_pages_is_as_old_as_the_request_for_its_first_page() -> None:
    api = FakeApi()
    api.list_takes = 10
    async with watched(api) as watcher:
        assert (watcher.age, is_current(watcher)) == (float("inf"), False)
        await watcher.synced()
        assert await take(watcher) == 10
        assert not is_current(watcher)


@pytest.mark.looptime
async def test_a_streamed_list_is_as_old_as_its_request() -> None:
    api = FakeApi()
    async with watched(api, STREAMED) as watcher:
        api.bring(ADDED, 1)
        await asyncio.sleep(10)
        api.end_list(2)
        assert await take(watcher) == 10
        api.bring(MODIFIED, 3)
        assert await take(watcher) == 10
        api.bookmark(4)
        assert await take(watcher) == 0
        assert is_current(watcher)


@pytest.mark.looptime
async def test_what_a_watch_brings_before_its_first_bookmark_may_be_as_old_as_the_list() -> None:
    api = FakeApi()
    api.list_takes = 10
    async with watched(api) as watcher:
        await watcher.synced()
        for version in (3, 4):
            await asyncio.sleep(5)
            api.bring(MODIFIED, version)
            assert await take(watcher) == 10
            assert not is_current(watcher)
        api.bookmark(5)
        assert await take(watcher) == 0
        assert is_current(watcher)
        await asyncio.sleep(5)
        assert not is_current(watcher)
        api.bring(MODIFIED, 6)
        assert await take(watcher) == 0
        assert is_current(watcher)


@pytest.mark.looptime
async def test_after_a_short_list_a_watch_is_believed_at_once() -> None:
    api = FakeApi()
    api.list_takes = 0.2
    async with watched(api) as watcher:
        await watcher.synced()
        await asyncio.sleep(30)
        assert not is_current(watcher)
        api.bring(MODIFIED, 3)
        assert await take(watcher) == 0.2
        assert is_current(watcher)


@pytest.mark.looptime
async def test_what_a_watch_brings_may_be_as_old_as_the_gap_before_it() -> None:
    api = FakeApi()
    async with watched(api) as watcher:
        await watcher.synced()
        api.bookmark(3)
        await asyncio.sleep(10)
        api.bring(MODIFIED, 4)
        api.end_watch()
        api.opening_takes = 8
        await asyncio.sleep(9)
        api.bring(MODIFIED, 5)
        assert await take(watcher) == 8
        assert not is_current(watcher)
        api.bookmark(6)
        assert await take(watcher) == 0
        api.opening_takes = 0
        api.end_watch()
        await asyncio.sleep(10)
        api.bring(MODIFIED, 7)
        assert await take(watcher) == 0  # it went on at once
        assert is_current(watcher)


@pytest.mark.looptime
async def test_a_cache_is_not_believed_while_it_is_to_be_listed() -> None:
    api = FakeApi()
    async with watched(api) as watcher:
        await watcher.synced()
        api.bookmark(3)
        await asyncio.sleep(10)
        api.bring(MODIFIED, 4)
        assert await take(watcher) == 0
        assert is_current(watcher)
        watcher.resync()
        assert not is_current(watcher)
        api.list_takes = 0.4
        assert await take(watcher, within=0.3) == 0.3
        assert watcher.listed
        assert not is_current(watcher)
        assert await take(watcher, within=0.2) == 0.5
        assert not watcher.listed
        assert is_current(watcher)


@pytest.mark.looptime
async def test_an_object_that_could_not_be_read_is_not_believed_until_it_can_be() -> None:
    api = FakeApi()
    async with watched(api) as watcher:
        await watcher.synced()
        api.bookmark(3)
        api.lines.put_nowait(BadObject("default", "a", "no pod"))
        api.bring(MODIFIED, 4, name="b")
        await take(watcher)
        assert [is_current(watcher, name) for name in "ab"] == [False, True]
        api.bring(MODIFIED, 3)  # not the newest one
        await take(watcher)
        assert not is_current(watcher)
        api.bring(MODIFIED, 5)
        await take(watcher)
        assert is_current(watcher)


@pytest.mark.looptime
async def test_an_object_that_the_cache_could_not_take_is_not_believed() -> None:
    api, unusable = FakeApi(), pod("a", cpu="lots")
    async with watched(api) as watcher:
        await watcher.synced()
        api.bookmark(3)
        api.lines.put_nowait(WatchEvent(MODIFIED, pod_record(unusable, 4, uid="uid-a")))
        await take(watcher)
        assert [is_current(watcher, name) for name in "ab"] == [False, True]
        watcher.resync()
        await asyncio.sleep(10)
        api.bookmark(6)
        await take(watcher)
        assert is_current(watcher)


@pytest.mark.looptime
async def test_an_object_that_meets_a_fault_is_left_out_alone(
    monkeypatch: pytest.MonkeyPatch, faults: list[str]
) -> None:
    apply, listed = Cache.apply, Listing.apply

    def stumble(cache: Cache, kind: Any, event: str, subject: Any) -> bool:
        if subject.metadata.name == "odd":
            raise RecursionError
        return apply(cache, kind, event, subject)

    def stumble_in_a_list(listing: Listing[Any, Any], event: str, subject: Any) -> None:
        if subject.metadata.name == "a":
            raise RecursionError
        listed(listing, event, subject)

    monkeypatch.setattr(Cache, "apply", stumble)
    monkeypatch.setattr(Listing, "apply", stumble_in_a_list)
    before, api = read_metric("reberth_watch_bad_objects_total", resource="pods"), FakeApi()
    async with watched(api) as watcher:
        await watcher.synced()
        api.bookmark(3)
        for version, name in ((4, "odd"), (5, "b")):
            api.bring(ADDED, version, name)
        await take(watcher)
        assert [is_current(watcher, name) for name in ("a", "odd", "b")] == [False, False, True]
    assert read_metric("reberth_watch_bad_objects_total", resource="pods") == before + 2
    assert len(faults) == 2
    faults.clear()


@pytest.mark.parametrize("names", [[""], [f"bad-{number}" for number in range(1001)]])
@pytest.mark.looptime
async def test_an_unreadable_object_without_a_name_may_be_any_one_and_so_may_one_of_many(
    names: list[str],
) -> None:
    api = FakeApi()
    async with watched(api) as watcher:
        await watcher.synced()
        api.bookmark(3)
        for name in names:
            api.lines.put_nowait(BadObject("", name, "no pod"))
        api.bookmark(4)
        await take(watcher)
        assert not is_current(watcher)
        assert len(watcher._bad) <= 1001
