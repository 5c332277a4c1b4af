"""Each fault, seen from the client's side of a real connection, and what the server saw of it."""

import asyncio
import json
import ssl
from collections.abc import Callable

import pytest

from localcluster.faults import (
    ANY,
    Answer,
    Bytes,
    Cut,
    Delay,
    Detain,
    Duplicate,
    Effect,
    Ending,
    ErrorEvent,
    Fault,
    FaultProxy,
    Lines,
    LoseAnswer,
    Match,
    Replay,
    Reset,
    Rule,
    Slow,
    Stall,
    nth,
    refuse_watch,
    schedule,
    status_bodies,
    times,
)
from localcluster.faults.status_bodies import PlainText, Status
from tests.support.line_server import EVICTION, LINES, PODS, WATCH, Client, LineServer, passed, read_watch

WATCHES = Match(verb="watch")
EVICTIONS = Match(resource="pods/eviction")
LISTS = Match(verb="list")


async def read_raw(client: Client, trust: ssl.SSLContext, path: str) -> tuple[bytes, str]:
    """What came of the HTTP answer, and whether TCP ended by reset or by FIN."""
    host, port = client.url.removeprefix("https://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=trust)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    received = b""
    try:
        while data := await reader.read(65536):
            received += data
    except ConnectionResetError:
        return received, "RST"
    finally:
        writer.transport.abort()
    return received, "FIN"


@pytest.mark.parametrize(
    ("status", "code", "retry_after"),
    [
        (status_bodies.conflict(), 409, None),
        (status_bodies.list_expired(), 410, None),
        (status_bodies.budget_exhausted("web", needs=2, has=2), 429, None),
        (status_bodies.budget_unobserved("web"), 429, "10"),
        (status_bodies.too_many_requests(retry_after=3), 429, "3"),
        (status_bodies.overloaded(), 429, "1"),
        (status_bodies.several_budgets(), 500, None),
        (status_bodies.internal_error(), 500, None),
        (status_bodies.shutting_down(), 503, "1"),
        (status_bodies.timed_out(), 504, None),
    ],
)
async def test_an_answer_is_given_in_the_servers_place(
    proxy: FaultProxy,
    server: LineServer,
    client: Client,
    *,
    status: Status | PlainText,
    code: int,
    retry_after: str | None,
) -> None:
    async with proxy.fault(EVICTIONS, Answer(status), times(1)) as rule:
        async with client.open(EVICTION, method="POST") as response:
            assert response.status == code
            assert response.headers.get("Retry-After") == retry_after
            assert "Server" not in response.headers
            assert await response.read() == status.reply(proxy.journal.entries[-1].request).body
        assert server.requests == []
        assert await client.outcome(EVICTION, method="POST") == 201
        assert (rule.matched, rule.acted) == (2, 1)


async def test_a_reset_is_a_tcp_reset_before_the_server_is_asked(
    proxy: FaultProxy, server: LineServer, client: Client, trust: ssl.SSLContext
) -> None:
    async with proxy.fault(ANY, Reset()) as rule:
        assert await read_raw(client, trust, PODS) == (b"", "RST")
    assert (server.requests, rule.acted) == ([], 1)
    assert await client.outcome(PODS) == 200


async def test_a_lost_answer_is_one_to_a_request_that_was_done(
    proxy: FaultProxy, server: LineServer, client: Client
) -> None:
    async with proxy.fault(EVICTIONS, LoseAnswer(), nth(1)) as rule:
        assert await client.outcome(EVICTION, method="POST") == "broken"
        assert server.requests == [("POST", EVICTION)]
        entry = proxy.journal.entries[-1]
        assert (entry.status, entry.upstream_status, rule.acted) == (None, 201, 1)
        assert await client.outcome(EVICTION, method="POST") == 201


@pytest.mark.parametrize("is_gone", [False, True], ids=["its client waits", "its client is gone"])
async def test_a_detained_request_arrives_when_its_rule_is_lifted(
    proxy: FaultProxy, server: LineServer, client: Client, *, is_gone: bool
) -> None:
    rule = proxy.add(Rule(EVICTIONS, Detain(), nth(1)))
    asked = asyncio.create_task(client.outcome(EVICTION, method="POST"))
    await proxy.until(lambda: rule.acted == 1)
    assert server.requests == []
    if is_gone:
        asked.cancel()
        await asyncio.wait([asked])
        assert await client.outcome(PODS) == 200
        server.requests.clear()
    proxy.remove(rule)
    entry = next(entry for entry in proxy.journal.entries if entry.request.path == EVICTION)
    await proxy.until(lambda: entry.upstream_status == 201)
    assert server.requests == [("POST", EVICTION)]
    if not is_gone:
        assert await asked == 201


async def test_a_detained_request_of_a_proxy_that_closes_never_arrives(
    proxy: FaultProxy, server: LineServer, client: Client
) -> None:
    rule = proxy.add(Rule(EVICTIONS, Detain()))
    asked = asyncio.create_task(client.outcome(EVICTION, method="POST"))
    await proxy.until(lambda: rule.acted == 1)
    await proxy.aclose()
    assert (await asked, server.requests) == ("broken", [])


@pytest.mark.parametrize("of", ["request", "answer"])
async def test_a_delay_is_before_the_request_or_before_the_answer(
    proxy: FaultProxy, server: LineServer, client: Client, of: str
) -> None:
    effect = Delay(0.05, of="request") if of == "request" else Delay(0.05, of="answer")
    async with proxy.fault(LISTS, effect) as rule:
        answer = asyncio.create_task(passed(lambda: client.outcome(PODS)))
        await proxy.until(lambda: rule.acted == 1)
        assert server.requests == ([] if of == "request" else [("GET", PODS)])
        assert await answer >= 0.05


async def test_a_stalled_answer_comes_when_the_rule_is_lifted(
    proxy: FaultProxy, server: LineServer, client: Client
) -> None:
    async with proxy.fault(LISTS, Stall()) as rule:
        answer = asyncio.create_task(client.outcome(PODS))
        await proxy.until(lambda: rule.acted == 1)
        assert server.requests == [("GET", PODS)]
        assert await client.outcome(EVICTION, method="POST") == 201
        assert not answer.done()
    assert await answer == 200


@pytest.mark.parametrize(
    ("mark", "begun"),
    [(Bytes(0), b""), (Bytes(7), LINES[0][:7]), (Lines(2), LINES[0] + LINES[1])],
)
async def test_a_stalled_body_goes_on_when_the_rule_is_lifted(
    proxy: FaultProxy, server: LineServer, client: Client, mark: Bytes | Lines, begun: bytes
) -> None:
    server.feed(*LINES, None)
    rule = proxy.add(Rule(WATCHES, Stall(mark)))
    async with client.open(WATCH) as watch:
        assert await watch.content.readexactly(len(begun)) == begun
        more = asyncio.create_task(watch.content.read())
        await proxy.until(lambda: rule.acted == 1)
        assert await client.outcome(PODS) == 200
        assert not more.done()
        proxy.remove(rule)
        assert begun + await more == b"".join(LINES)


async def test_a_slow_body_takes_its_time_and_comes_whole(
    proxy: FaultProxy, server: LineServer, client: Client
) -> None:
    server.body = bytes(1000)
    async with proxy.fault(LISTS, Slow(10_000)) as rule:
        start = asyncio.get_running_loop().time()
        assert await client.read(PODS) == (200, server.body)
        assert asyncio.get_running_loop().time() - start >= 0.099
        assert rule.acted == 1


@pytest.mark.parametrize(
    ("mark", "passes"),
    [
        (Bytes(0), b""),
        (Bytes(70), b"".join(LINES)[:70]),
        (Lines(2), LINES[0] + LINES[1]),
        (Lines(2.5), LINES[0] + LINES[1] + LINES[2][: (len(LINES[2]) - 1) // 2]),
    ],
)
@pytest.mark.parametrize(
    ("ending", "seen"), [(Ending.RESET, "broken"), (Ending.BROKEN, "broken"), (Ending.CLEAN, "ended")]
)
async def test_a_watch_is_cut_at_the_mark(
    proxy: FaultProxy,
    server: LineServer,
    client: Client,
    *,
    mark: Bytes | Lines,
    passes: bytes,
    ending: Ending,
    seen: str,
) -> None:
    server.feed(*LINES)
    async with proxy.fault(WATCHES, Cut(mark, ending)) as rule:
        assert await read_watch(client) == (passes, seen)
        assert rule.acted == 1
    await server.until_watch_is_left()


@pytest.mark.parametrize(("ending", "seen"), [(Ending.RESET, "RST"), (Ending.BROKEN, "FIN")])
async def test_a_cut_list_ends_as_tcp_does_after_exactly_so_many_bytes(
    proxy: FaultProxy,
    server: LineServer,
    client: Client,
    trust: ssl.SSLContext,
    *,
    ending: Ending,
    seen: str,
) -> None:
    server.body = bytes(range(256)) * 16384
    async with proxy.fault(LISTS, Cut(Bytes(3_000_000), ending)):
        received, end = await read_raw(client, trust, PODS)
    assert end == seen
    chunks = received.partition(b"\r\n\r\n")[2]
    assert dechunked(chunks) == server.body[:3_000_000]


async def test_a_cut_that_the_body_does_not_reach_has_not_acted(
    proxy: FaultProxy, server: LineServer, client: Client
) -> None:
    server.feed(*LINES, None)
    async with proxy.fault(WATCHES, Cut(Lines(6))) as rule:
        assert await read_watch(client) == (b"".join(LINES), "ended")
        assert (rule.matched, rule.acted) == (1, 0)


async def test_lines_are_delivered_twice_at_once(
    proxy: FaultProxy, server: LineServer, client: Client
) -> None:
    async with proxy.fault(WATCHES, Duplicate()) as rule, client.open(WATCH) as watch:
        for line in LINES:
            server.feed(line[:10], line[10:])
            assert [await watch.content.readline(), await watch.content.readline()] == [line, line]
        assert rule.acted == 1


async def test_a_watch_ends_with_an_error_event_after_some_lines(
    proxy: FaultProxy, server: LineServer, client: Client
) -> None:
    server.feed(*LINES)
    async with proxy.fault(
        WATCHES, ErrorEvent(status_bodies.watch_expired(asked=7, oldest=9), Lines(2))
    ) as rule:
        received, end = await read_watch(client)
    assert (end, rule.acted) == ("ended", 1)
    *before, error = received.splitlines(keepends=True)
    assert before == LINES[:2]
    event = json.loads(error)
    assert event["type"] == "ERROR"
    assert event["object"]["message"] == "too old resource version: 7 (9)"
    assert (event["object"]["reason"], event["object"]["code"]) == ("Expired", 410)
    await server.until_watch_is_left()


async def test_an_error_event_may_come_first_while_the_server_is_silent(
    proxy: FaultProxy, client: Client
) -> None:
    async with proxy.fault(WATCHES, ErrorEvent(status_bodies.watch_expired(), Lines(0))):
        received, end = await read_watch(client)
    assert (received, end) == (status_bodies.watch_expired().event(), "ended")


async def test_watch_list_is_refused_by_an_event_after_a_200_and_plain_watches_are_not(
    proxy: FaultProxy, server: LineServer, client: Client
) -> None:
    match = Match(verb="watch", query={"sendInitialEvents": "true"})
    async with proxy.fault(match, refuse_watch(status_bodies.watch_list_unsupported())) as rule:
        async with client.open(f"{WATCH}&sendInitialEvents=true") as watch:
            assert (watch.status, watch.headers["Content-Type"]) == (200, "application/json")
            event = json.loads(await watch.content.read())
        assert (event["type"], event["object"]["code"]) == ("ERROR", 500)
        assert server.requests == []
        server.feed(*LINES, None)
        assert await read_watch(client) == (b"".join(LINES), "ended")
        assert rule.acted == 1


async def test_a_rule_may_be_lifted_early_and_added_again(proxy: FaultProxy, client: Client) -> None:
    async with proxy.fault(LISTS, Stall()) as rule:
        proxy.remove(rule)
        assert await client.outcome(PODS) == 200
        proxy.add(rule)
        answer = asyncio.create_task(client.outcome(PODS))
        await proxy.until(lambda: rule.acted == 1)
        assert not answer.done()
    assert await answer == 200


FAULTS = [
    Fault(EVICTIONS, Answer(status_bodies.overloaded())),
    Fault(EVICTIONS, LoseAnswer()),
    Fault(Match(path="*/eviction"), Reset()),
    Fault(Match(method="POST"), Cut(Bytes(3))),
]


async def run_schedule(proxy: FaultProxy, client: Client, seed: int) -> list[int | str]:
    rules = schedule(seed, 10, FAULTS, requests=20)
    for rule in rules:
        proxy.add(rule)
    outcomes = [await client.outcome(EVICTION, method="POST") for _ in range(20)]
    for rule in rules:
        proxy.remove(rule)
    assert all(rule.matched == 20 for rule in rules)
    return outcomes


async def test_a_seeded_schedule_affects_the_same_requests_again(proxy: FaultProxy, client: Client) -> None:
    outcomes = {seed: await run_schedule(proxy, client, seed) for seed in range(3)}
    for seed, outcome in outcomes.items():
        assert await run_schedule(proxy, client, seed) == outcome
        assert outcome.count(201) == 10
    assert len({tuple(outcome) for outcome in outcomes.values()}) == 3


def dechunked(body: bytes) -> bytes:
    whole = bytearray()
    while body:
        size, _, body = body.partition(b"\r\n")
        whole += body[: int(size, 16)]
        body = body[int(size, 16) + 2 :]
    return bytes(whole)


def test_effects_with_impossible_numbers_are_refused() -> None:
    impossible: list[Callable[[], Effect | Bytes | Lines]] = [
        lambda: Delay(-1),
        lambda: Slow(0),
        lambda: Replay([], rate=0),
        lambda: Bytes(-1),
        lambda: Lines(float("nan")),
    ]
    for make in impossible:
        with pytest.raises(ValueError, match="must be"):
            make()
