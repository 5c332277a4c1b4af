"""What was recorded or remembered comes again: watches at any speed, lists from a cache that lags behind."""

import asyncio
import itertools
import json

from localcluster.faults import (
    Cut,
    Duplicate,
    Ending,
    FaultProxy,
    Lines,
    Match,
    Memory,
    Record,
    Remember,
    Replay,
    Stale,
    Tape,
)
from tests.support.line_server import LINES, PODS, WATCH, Client, LineServer, passed, read_watch

WATCHES = Match(verb="watch")
LISTS = Match(verb="list")


async def test_a_recorded_watch_is_replayed_and_stays_open_until_the_rule_is_lifted(
    proxy: FaultProxy, server: LineServer, client: Client
) -> None:
    tape = Tape()
    server.feed(*(data for line in LINES for data in (line[:9], line[9:])), None)
    async with proxy.fault(WATCHES, Record(tape)) as recording:
        assert await read_watch(client) == (b"".join(LINES), "ended")
        assert recording.acted == 1
    assert tape.lines == LINES
    async with proxy.fault(WATCHES, Replay(tape.lines)) as rule:
        watch = asyncio.create_task(read_watch(client))
        await proxy.until(lambda: rule.acted == 1)
        assert await client.outcome(PODS) == 200
        assert not watch.done()
    assert await watch == (b"".join(LINES), "ended")
    assert len(server.requests) == 2


async def test_a_replay_keeps_its_rate(proxy: FaultProxy, client: Client) -> None:
    async with proxy.fault(WATCHES, Replay(LINES, rate=50, hold=False)):
        assert await passed(lambda: read_watch(client)) >= 4 / 50


async def test_a_replay_may_be_as_fast_as_the_client_and_endless(proxy: FaultProxy, client: Client) -> None:
    endless = (f"line {number}".encode() for number in itertools.count())
    async with proxy.fault(WATCHES, Replay(endless)), client.open(WATCH) as watch:
        for number in range(10_000):
            assert await watch.content.readline() == f"line {number}\n".encode()


async def test_effects_on_one_request_follow_each_other(
    proxy: FaultProxy, server: LineServer, client: Client
) -> None:
    tape = Tape()
    async with (
        proxy.fault(WATCHES, Replay(LINES)),
        proxy.fault(WATCHES, Duplicate()),
        proxy.fault(WATCHES, Record(tape)),
        proxy.fault(WATCHES, Cut(Lines(3), Ending.CLEAN)),
    ):
        assert await read_watch(client) == (LINES[0] * 2 + LINES[1], "ended")
    assert tape.lines[:3] == [LINES[0], LINES[0], LINES[1]]
    assert server.requests == []


def pod_list(version: int) -> bytes:
    return json.dumps({"kind": "PodList", "metadata": {"resourceVersion": str(version)}}).encode()


async def test_a_stale_cache_answers_only_requests_that_allow_a_cache(
    proxy: FaultProxy, server: LineServer, client: Client
) -> None:
    memory = Memory()
    server.body = pod_list(100)
    async with proxy.fault(LISTS, Remember(memory)) as remembering:
        assert await client.read(PODS) == (200, pod_list(100))
        assert remembering.acted == 1
    server.body = pod_list(200)
    async with proxy.fault(LISTS, Stale(memory)) as rule:
        assert await client.read(f"{PODS}?resourceVersion=0&timeoutSeconds=9") == (200, pod_list(100))
        assert await client.read(PODS) == (200, pod_list(200))
        code, body = await client.read(f"{PODS}?resourceVersion=150&resourceVersionMatch=NotOlderThan")
        assert (code, json.loads(body)["details"]["causes"][0]["reason"]) == (504, "ResourceVersionTooLarge")
        assert (rule.matched, rule.acted) == (3, 2)
    assert await client.read(f"{PODS}?resourceVersion=0") == (200, pod_list(200))


async def test_a_recorded_list_is_never_compressed(proxy: FaultProxy, client: Client) -> None:
    async with proxy.fault(LISTS, Record(Tape())):
        _, body = await client.read(PODS, headers={"Accept-Encoding": "gzip"})
    assert ["Accept-Encoding", "identity"] in json.loads(body)["headers"]
