"""The fault proxy over real TLS: what it passes on untouched, and whom it cuts off."""

import asyncio
import gzip
import json
import ssl
from typing import Any

import aiohttp
import pytest
from multidict import CIMultiDict

from localcluster.credentials import Authority, KeyPair
from localcluster.faults import ANY, Answer, FaultProxy, Match, Rule, Stall, nth, status_bodies
from tests.support.line_server import EVICTION, PODS, WATCH, Client, LineServer, Upstream


def without_date(response: aiohttp.ClientResponse) -> CIMultiDict[str]:
    headers = CIMultiDict(response.headers)
    headers.popall("Date")
    return headers


async def echoed(client: Client, path: str, *, method: str = "GET", **given: object) -> dict[str, Any]:
    _, body = await client.read(path, method=method, **given)
    said: dict[str, Any] = json.loads(body)
    return said


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_without_rules_status_headers_and_body_are_the_servers(
    server: LineServer, client: Client, direct: Client, method: str
) -> None:
    server.headers = [
        ("Warning", '299 - "one"'),
        ("Warning", '299 - "two"'),
        ("X-Kubernetes-Pf-Flowschema-Uid", "u"),
    ]
    async with direct.open(PODS, method=method) as there, client.open(PODS, method=method) as here:
        assert (here.status, here.reason) == (there.status, there.reason)
        assert without_date(here) == without_date(there)
        assert await here.read() == await there.read()


async def test_the_server_gets_the_request_as_the_client_sent_it(client: Client, direct: Client) -> None:
    path = "/api/v1/namespaces/shop/pods/a%2Fb?labelSelector=app%3Dweb%2Ctier+in+(x)&labelSelector=&z"
    given: dict[str, Any] = {
        "method": "PATCH",
        "headers": {"Authorization": "Bearer secret", "Content-Type": "application/merge-patch+json"},
        "data": b'{"metadata":{}}',
    }
    assert await echoed(client, path, **given) == await echoed(direct, path, **given)
    said = await echoed(client, path, **given)
    assert said["path"] == path
    assert ["Authorization", "Bearer secret"] in said["headers"]
    assert "Accept-Encoding" not in dict(said["headers"])


async def test_a_long_selector_and_a_long_token_pass(client: Client) -> None:
    long = "x" * 100_000
    given: dict[str, Any] = {"headers": {"Authorization": f"Bearer {long}"}}
    said = await echoed(client, f"{PODS}?labelSelector={long}", **given)
    assert said["path"] == f"{PODS}?labelSelector={long}"
    assert ["Authorization", f"Bearer {long}"] in said["headers"]


async def test_compressed_bodies_pass_as_they_are_and_only_for_a_client_that_asks(
    server: LineServer, client: Client, direct: Client
) -> None:
    server.body = gzip.compress(b"pods" * 1000, mtime=0)
    server.headers = [("Content-Encoding", "gzip")]
    assert await client.read(PODS) == (200, server.body)
    server.body = None
    server.headers = []
    said = await echoed(client, PODS, headers={"Accept-Encoding": "gzip"})
    assert ["Accept-Encoding", "gzip"] in said["headers"]
    packed = {"headers": {"Content-Encoding": "gzip"}, "data": gzip.compress(b"pod", mtime=0)}
    assert await echoed(client, PODS, method="POST", **packed) == await echoed(
        direct, PODS, method="POST", **packed
    )


async def test_watch_lines_pass_at_once(server: LineServer, client: Client) -> None:
    async with client.open(WATCH) as watch:
        for line in (b'{"type":"ADDED"}\n', b'{"type":"MODIFIED"}\n', b'{"type":"BOOKMARK"}\n'):
            server.feed(line)
            assert await watch.content.readline() == line
        server.feed(b"half a ")
        assert await watch.content.readany() == b"half a "
        server.feed(b"line\n", None)
        assert await watch.content.read() == b"line\n"


async def test_a_big_body_streams(server: LineServer, client: Client) -> None:
    chunk = bytes(range(256)) * 4096
    async with client.open(WATCH) as body:
        server.feed(chunk)
        assert await body.content.readexactly(len(chunk)) == chunk
        server.feed(*[chunk] * 7, None)
        assert await body.content.read() == chunk * 7


async def test_a_client_that_leaves_a_watch_leaves_it_upstream(server: LineServer, client: Client) -> None:
    async with client.open(WATCH):
        pass
    await server.until_watch_is_left()


async def test_a_server_that_breaks_off_breaks_the_clients_connection(
    proxy: FaultProxy, server: LineServer, client: Client
) -> None:
    server.is_dying = True
    server.feed(b"begun")
    async with client.open(WATCH) as watch:
        assert await watch.content.readexactly(5) == b"begun"
        with pytest.raises(aiohttp.ClientError):
            await watch.content.read()
    assert "Payload" in str(proxy.journal.entries[-1].error)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST"])
async def test_requests_without_a_response_are_not_retried(
    proxy: FaultProxy, server: LineServer, client: Client, method: str
) -> None:
    assert await client.outcome(PODS, method=method) in (200, 201)  # leaves a connection that is kept alive
    server.is_dying = True
    assert await client.outcome(PODS, method=method) == "broken"
    assert server.requests == [(method, PODS)] * 2
    assert proxy.journal.entries[-1].upstream_status is None


async def test_a_server_that_is_not_there_looks_like_a_broken_connection(
    identity: KeyPair, authority: Authority, session: aiohttp.ClientSession
) -> None:
    async with FaultProxy(
        "https://127.0.0.1:1", ca=authority.certificate, certificate=identity.certificate, key=identity.key
    ) as proxy:
        client = Client(await proxy.open("a"), session)
        assert await client.outcome(PODS) == "broken"
        entry = proxy.journal.entries[-1]
        assert (entry.status, entry.upstream_status) == (None, None)
        assert "Connect call failed" in str(entry.error)


async def test_a_server_with_another_ca_is_not_trusted(
    upstream: Upstream,
    identity: KeyPair,
    session: aiohttp.ClientSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    other = Authority(tmp_path_factory.mktemp("other")).create()
    async with FaultProxy(
        upstream.url, ca=other.certificate, certificate=identity.certificate, key=identity.key
    ) as proxy:
        client = Client(await proxy.open("a"), session)
        assert await client.outcome(PODS) == "broken"
        assert "certificate" in str(proxy.journal.entries[-1].error)


async def test_a_cut_off_client_is_reset_and_refused_and_keeps_its_address(
    proxy: FaultProxy, server: LineServer, client: Client, trust: ssl.SSLContext
) -> None:
    reader, writer = await connect(client, trust)
    async with client.open(WATCH) as watch:
        await proxy.cut("rescheduler-1")
        with pytest.raises(aiohttp.ClientError):
            await watch.content.read()
    await server.until_watch_is_left()
    with pytest.raises(ConnectionResetError):
        await reader.read()
    writer.transport.abort()
    with pytest.raises(ConnectionRefusedError):
        await connect(client, trust)
    await proxy.cut("rescheduler-1")
    await proxy.mend("rescheduler-1")
    assert await client.outcome(PODS) == 200
    await proxy.mend("rescheduler-1")
    assert await client.outcome(PODS) == 200


async def test_a_connection_in_setup_is_reset_when_its_client_is_cut_off(
    proxy: FaultProxy, server: LineServer, client: Client, trust: ssl.SSLContext
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(client))
    assert await client.outcome(PODS) == 200  # so the connection before it was accepted
    await proxy.cut("rescheduler-1")
    await writer.start_tls(trust, server_hostname="127.0.0.1")
    writer.write(f"GET {PODS} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    with pytest.raises(ConnectionResetError):
        await reader.read()
    writer.transport.abort()
    assert len(server.requests) == 1


async def test_cutting_one_client_off_does_not_touch_another(
    proxy: FaultProxy, server: LineServer, client: Client, session: aiohttp.ClientSession
) -> None:
    other = Client(await proxy.open("rescheduler-2"), session)
    assert other.url != client.url
    async with other.open(WATCH) as watch:
        await proxy.cut("rescheduler-1")
        server.feed(b"line\n")
        assert await watch.content.readline() == b"line\n"
        assert [await client.outcome(PODS), await other.outcome(PODS)] == ["broken", 200]


async def test_a_frozen_client_gets_nothing_until_it_is_unfrozen(
    proxy: FaultProxy, server: LineServer, client: Client, session: aiohttp.ClientSession
) -> None:
    other = Client(await proxy.open("rescheduler-2"), session)
    async with client.open(WATCH) as watch:
        server.feed(b"before\n")
        assert await watch.content.readline() == b"before\n"
        proxy.freeze("rescheduler-1")
        server.feed(b"after\n")
        line = asyncio.create_task(watch.content.readline())
        answer = asyncio.create_task(client.outcome(PODS))
        await proxy.until(lambda: proxy.journal.seen == 2)
        assert await other.outcome(EVICTION, method="POST") == 201
        assert not line.done()
        assert not answer.done()
        assert server.requests == [("GET", WATCH), ("POST", EVICTION)]
        await proxy.mend("rescheduler-1")
        assert (await line, await answer) == (b"after\n", 200)


async def test_each_client_name_has_one_port_and_unknown_names_raise(proxy: FaultProxy) -> None:
    await proxy.open("a")
    with pytest.raises(ValueError, match="'a' already has a port"):
        await proxy.open("a")
    with pytest.raises(ValueError, match="'b' has no port"):
        await proxy.cut("b")


async def test_closing_the_proxy_ends_open_calls_and_frees_its_ports(
    upstream: Upstream, identity: KeyPair, session: aiohttp.ClientSession, trust: ssl.SSLContext
) -> None:
    async with FaultProxy(
        upstream.url, ca=upstream.ca, certificate=identity.certificate, key=identity.key
    ) as proxy:
        client = Client(await proxy.open("a"), session)
        proxy.add(Rule(Match(path=PODS, verb="list"), Stall()))
        stalled = asyncio.create_task(client.outcome(PODS))
        await proxy.until(lambda: proxy.journal.seen == 1)
    assert await stalled == "broken"
    with pytest.raises(ConnectionRefusedError):
        await connect(client, trust)


async def test_the_journal_has_client_request_time_and_response(proxy: FaultProxy, client: Client) -> None:
    begin = asyncio.get_running_loop().time()
    async with proxy.fault(Match(resource="pods/eviction"), Answer(status_bodies.overloaded()), nth(2)):
        for _ in range(3):
            await client.outcome(EVICTION, method="POST")
    await client.outcome(PODS)
    seen = [
        (
            entry.request.client,
            entry.request.verb,
            entry.request.resource,
            entry.status,
            entry.upstream_status,
        )
        for entry in proxy.journal.entries
    ]
    assert seen == [
        ("rescheduler-1", "create", "pods/eviction", 201, 201),
        ("rescheduler-1", "create", "pods/eviction", 429, None),
        ("rescheduler-1", "create", "pods/eviction", 201, 201),
        ("rescheduler-1", "list", "pods", 200, 200),
    ]
    assert all(begin <= entry.at <= asyncio.get_running_loop().time() for entry in proxy.journal.entries)
    assert len(proxy.journal.select(Match(verb="create"))) == 3
    assert len(proxy.journal.select(ANY, since=proxy.journal.entries[2].at)) == 2


async def test_the_journal_is_bounded_and_goes_on_counting(
    upstream: Upstream, identity: KeyPair, session: aiohttp.ClientSession
) -> None:
    async with FaultProxy(
        upstream.url, ca=upstream.ca, certificate=identity.certificate, key=identity.key, log_size=2
    ) as proxy:
        client = Client(await proxy.open("a"), session)
        for number in range(5):
            await client.outcome(f"{PODS}/{number}")
        assert proxy.journal.seen == 5
        assert [entry.request.name for entry in proxy.journal.entries] == ["3", "4"]


async def connect(client: Client, trust: ssl.SSLContext) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", port_of(client), ssl=trust)


def port_of(client: Client) -> int:
    return int(client.url.rpartition(":")[2])
