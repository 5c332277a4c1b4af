"""The order in which the kinds of a cluster are listed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from prometheus_client import Gauge

from reberth.client.api import Api
from reberth.client.mirror import mirroring
from reberth.client.watcher import WatchSettings
from reberth.cluster.cache import ADDED, BOOKMARK, Cache
from reberth.cluster.kinds import BUDGETS, HISTORIES, LEDGERS, NODES, POD, PODS, Resource
from reberth.protocol.response import Page, WatchEvent
from reberth.records import ObjectMeta, Pod
from reberth.runtime import metrics
from reberth.values.errors import ApiError, Forbidden, ServerFault, Unreachable
from tests.support.metrics import read_metric

END = {"k8s.io/initial-events-end": "true"}


class SlowLists:
    """A server whose lists, all of them empty, end when they are told to; those with an error never begin."""

    def __init__(self, **fails: ApiError) -> None:
        self.asked: list[str] = []
        self._fails = fails
        self._ends: dict[str, asyncio.Event] = {}
        self._bookmarks: dict[str, asyncio.Event] = {}

    @asynccontextmanager
    async def watch(self, resource: Resource[Any], **_: Any) -> AsyncIterator[AsyncIterator[WatchEvent[Any]]]:
        if not resource.is_large:
            self.asked.append(resource.name)
        if resource.name in self._fails:
            raise self._fails[resource.name]
        yield self._read(resource.name)

    def end(self, name: str) -> None:
        self._end_of(name).set()

    def _end_of(self, name: str) -> asyncio.Event:
        return self._ends.setdefault(name, asyncio.Event())

    async def list_parts(self, resource: Resource[Any]) -> AsyncIterator[Page[Any]]:
        self.asked.append(resource.name)
        await self._end_of(resource.name).wait()
        if resource.name in self._fails:
            raise self._fails[resource.name]
        yield Page([], "9", "")

    def bookmark(self, name: str) -> None:
        self._bookmarks.setdefault(name, asyncio.Event()).set()

    async def _read(self, name: str) -> AsyncIterator[WatchEvent[Any]]:
        await self._end_of(name).wait()
        yield WatchEvent(BOOKMARK, Pod(metadata=ObjectMeta("", resource_version="9", annotations=END)))
        await self._bookmarks.setdefault(name, asyncio.Event()).wait()
        yield WatchEvent(BOOKMARK, Pod(metadata=ObjectMeta("", resource_version="10")))
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    "error",
    [
        Forbidden("watch /poddisruptionbudgets", "forbidden", status=403),
        ServerFault("watch /poddisruptionbudgets", "etcd is down", status=503),
        Unreachable("watch /poddisruptionbudgets", "no way"),
    ],
)
@pytest.mark.looptime
async def test_what_nothing_waits_for_is_listed_when_all_else_has_been_tried(error: ApiError) -> None:
    served, kinds = SlowLists(poddisruptionbudgets=error), (HISTORIES, PODS, NODES, BUDGETS)
    later = {"evictionhistories"}
    async with mirroring(cast("Api", served), Cache(version=(1, 36)), kinds, later=later) as mirror:
        await asyncio.sleep(0.1)
        assert served.asked[:3] == ["pods", "nodes", "poddisruptionbudgets"]
        assert "evictionhistories" not in served.asked
        served.end("pods")
        await asyncio.sleep(0.1)
        assert "evictionhistories" not in served.asked
        assert mirror.is_current(PODS, "shop", "a", within=1.0)
        assert not mirror.is_current(NODES, "", "n1", within=1.0)
        assert not mirror.is_current(LEDGERS, "", "default", within=1.0)
        served.end("nodes")
        served.end("evictionhistories")
        await asyncio.wait_for(mirror.synced("pods", "nodes", "evictionhistories"), 1)
        assert not mirror.watchers["poddisruptionbudgets"].is_synced


@pytest.mark.looptime
async def test_what_nothing_waits_for_does_not_wait_for_a_list_that_breaks_off() -> None:
    served = SlowLists(pods=ServerFault("list /pods", "etcd is down", status=503))
    async with mirroring(
        cast("Api", served), Cache(version=(1, 36)), (HISTORIES, PODS), later={"evictionhistories"}
    ) as mirror:
        await asyncio.sleep(60)
        assert served.asked == ["pods"]
        served.end("pods")
        served.end("evictionhistories")
        await asyncio.wait_for(mirror.synced("evictionhistories"), 1)
        assert not mirror.watchers["pods"].is_answered


@pytest.mark.looptime
async def test_all_kinds_are_listed_at_once() -> None:
    served, kinds = SlowLists(), (HISTORIES, PODS, NODES, BUDGETS)
    async with mirroring(cast("Api", served), Cache(version=(1, 36)), kinds):
        await asyncio.sleep(0.1)
        assert served.asked == [each.name for each in kinds]


@pytest.mark.looptime
async def test_a_process_that_hears_nothing_of_any_kind_for_long_is_deaf() -> None:
    served, kinds = SlowLists(), (HISTORIES, BUDGETS)
    patient = WatchSettings(silence=10_000)
    async with mirroring(cast("Api", served), Cache(version=(1, 36)), kinds, settings=patient) as mirror:
        served.end("poddisruptionbudgets")
        await asyncio.sleep(599)
        assert mirror.find_deafness() is None
        served.bookmark("poddisruptionbudgets")
        await asyncio.sleep(599)
        assert mirror.find_deafness() is None
        await asyncio.sleep(2)
        assert mirror.find_deafness() == "nothing heard from the API server for 601 s"
        served.end("evictionhistories")  # of one kind is enough
        await asyncio.sleep(1)
        assert mirror.find_deafness() is None


@pytest.mark.looptime
async def test_refusals_are_not_heard() -> None:
    refused = Unreachable("watch /poddisruptionbudgets", "certificate verify failed")
    served = SlowLists(poddisruptionbudgets=refused)
    async with mirroring(cast("Api", served), Cache(version=(1, 36)), (BUDGETS,)) as mirror:
        await asyncio.sleep(601)
        assert mirror.find_deafness() == "nothing heard from the API server for 601 s"


@pytest.mark.looptime
async def test_objects_of_which_a_part_is_held_are_counted_and_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cache, name = Cache(version=(1, 36)), "reberth_watch_cut_objects_total"
    labels = {f"l{number}": "x" * 63 for number in range(2_000)}
    before = read_metric(name, resource="pods")
    async with mirroring(cast("Api", SlowLists()), cache, (PODS,)):
        for version in (1, 2):
            meta = ObjectMeta("large", "shop", "u", str(version), labels=labels)
            cache.apply(POD, ADDED, Pod(metadata=meta))
    assert read_metric(name, resource="pods") == before + 2
    assert [vars(each)["fields"] for each in caplog.records] == [{"resource": "pods", "object": "shop/large"}]


@pytest.mark.looptime
async def test_the_gauges_of_one_server_are_not_those_of_another() -> None:
    gauges = (metrics.WATCH_OBJECTS, metrics.WATCH_STALENESS, metrics.WATCH_SYNCED)

    def read(gauge: Gauge) -> dict[str, float]:
        (metric,) = gauge.collect()
        pods = [each for each in metric.samples if each.labels["resource"] == "pods"]
        return {each.labels["server"]: each.value for each in pods}

    def servers() -> list[set[str]]:
        return [set(read(gauge)) for gauge in gauges]

    hub, member = SlowLists(), SlowLists()
    async with mirroring(cast("Api", hub), Cache(version=(1, 36)), (PODS,)) as mirror:
        async with mirroring(cast("Api", member), Cache(version=(1, 36)), (PODS,), server="m1"):
            hub.end("pods")
            await asyncio.wait_for(mirror.synced("pods"), 1)
            assert read(metrics.WATCH_SYNCED) == {"": 1, "m1": 0}
            assert servers() == [{"", "m1"}] * 3
        assert servers() == [{""}] * 3, "a member that is gone takes only its own gauges along"
    assert servers() == [set()] * 3
