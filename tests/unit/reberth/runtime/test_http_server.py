import asyncio
import gzip
import re
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from reberth.config.settings import Section, parse
from reberth.runtime.http_server import Server, ServerSettings
from reberth.values.errors import ServingError, SettingsError
from tests.support.metrics import read_metric

LOOPBACK = ServerSettings(port=0)


class DemoSettings(Section, frozen=True):
    server: ServerSettings = LOOPBACK


def refusal(server: str) -> str:
    content = f"apiVersion: reberth.dev/v1alpha1\nkind: DemoSettings\nserver: {server}"
    with pytest.raises(SettingsError) as caught:
        parse(content.encode(), DemoSettings)
    return str(caught.value)


@asynccontextmanager
async def client_of(server: Server) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as session:
        yield session


async def asked(session: aiohttp.ClientSession, path: str, method: str = "GET") -> tuple[int, str]:
    async with session.request(method, path) as response:
        return response.status, await response.text()


def counted(route: str, code: str) -> float:
    return read_metric("reberth_http_requests_total", route=route, code=code)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not true():
            await asyncio.sleep(0.005)


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        ("{host: 0.0.0.0}", "server (line 3): plain HTTP on 0.0.0.0 needs allowPlain: true, else give tls"),
        ('{host: ""}', "server (line 3): plain HTTP on all addresses needs allowPlain: true, else give tls"),
        ('{host: "::"}', "server (line 3): plain HTTP on :: needs"),
        ("{host: example.org}", "server (line 3): plain HTTP on example.org needs"),
        ("{keepAlive: 90s}", "server (line 3): keepAlive must be above 90s"),
        ("{port: 65536}", "server.port (line 3): expected a whole number at least 0 and at most 65535"),
    ],
)
def test_settings_that_are_not_safe_are_refused(server: str, reason: str) -> None:
    assert refusal(server).startswith(f"settings: {reason}")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_plain_http_is_for_loopback(host: str) -> None:
    assert ServerSettings(host=host).tls is None


def test_plain_http_on_other_addresses_needs_allow_plain() -> None:
    assert ServerSettings(host="0.0.0.0", allow_plain=True).tls is None


async def test_health_readiness_and_metrics_are_served() -> None:
    async with Server(LOOPBACK) as server, client_of(server) as session:
        assert await asked(session, "/healthz") == (200, "ok\n")
        assert await asked(session, "/readyz") == (200, "serving: ok\n")
        async with session.get("/metrics") as response:
            assert response.content_type == "text/plain"
            assert "reberth_http_requests_total{" in await response.text()


async def test_readiness_lists_each_check_by_name() -> None:
    reasons: dict[str, str | None] = {"nodes": "not synced", "lease": None}
    checks = {name: lambda name=name: reasons[name] for name in reasons}
    async with Server(LOOPBACK, checks=checks) as server, client_of(server) as session:
        assert await asked(session, "/readyz") == (503, "nodes: not synced\nlease: ok\nserving: ok\n")
        reasons["nodes"] = None
        assert await asked(session, "/readyz") == (200, "nodes: ok\nlease: ok\nserving: ok\n")


async def test_liveness_fails_with_its_reason_and_leaves_readiness_alone() -> None:
    reason: str | None = None
    async with Server(LOOPBACK, liveness=lambda: reason) as server, client_of(server) as session:
        assert await asked(session, "/healthz") == (200, "ok\n")
        reason = "nothing heard for 601 s"
        assert await asked(session, "/healthz") == (503, "nothing heard for 601 s\n")
        assert await asked(session, "/readyz") == (200, "serving: ok\n")


async def test_a_daemons_own_routes_are_served_and_counted_by_their_pattern() -> None:
    async def greet(request: web.Request) -> web.Response:
        return web.Response(text=request.match_info["name"])

    before = counted("/greet/{name}", "200")
    async with (
        Server(LOOPBACK, routes=[web.get("/greet/{name}", greet)]) as server,
        client_of(server) as session,
    ):
        assert await asked(session, "/greet/a") == (200, "a")
        assert await asked(session, "/greet/b") == (200, "b")
    assert counted("/greet/{name}", "200") == before + 2


async def test_unmatched_requests_share_one_metric_label() -> None:
    before = counted("unmatched", "404"), counted("unmatched", "405")
    async with Server(LOOPBACK) as server, client_of(server) as session:
        assert (await asked(session, "/wp-admin.php"))[0] == 404
        async with session.post("/healthz") as response:
            assert (response.status, response.headers["Allow"]) == (405, "GET,HEAD")
    assert (counted("unmatched", "404"), counted("unmatched", "405")) == (before[0] + 1, before[1] + 1)


async def test_a_handler_that_fails_is_an_honest_error(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(_: web.Request) -> web.Response:
        raise ConnectionRefusedError("somebody else is down")

    async with Server(LOOPBACK, routes=[web.get("/fail", fail)]) as server, client_of(server) as session:
        assert await asked(session, "/fail") == (500, "internal error\n")
        assert await asked(session, "/healthz") == (200, "ok\n")
    (said,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert said.message == "request failed"
    assert said.exc_info


async def read(request: web.Request) -> web.Response:
    return web.Response(text=str(len(await request.read())))


async def test_a_body_above_the_limit_is_refused() -> None:
    settings = ServerSettings(port=0, body_limit_bytes=1000)
    async with Server(settings, routes=[web.post("/read", read)]) as server, client_of(server) as session:
        async with session.post("/read", data=b"x" * 1000) as response:
            assert await response.text() == "1000"
        async with session.post("/read", data=b"x" * 1001) as response:
            assert response.status == 413


async def test_a_compressed_body_is_not_decompressed() -> None:
    """It would become large before anything has looked at it."""
    body, headers = gzip.compress(bytes(500_000)), {"Content-Encoding": "gzip"}
    async with (
        Server(LOOPBACK, routes=[web.post("/read", read)]) as server,
        client_of(server) as session,
        session.post("/read", data=body, headers=headers) as response,
    ):
        assert await response.text() == str(len(body))


async def test_a_client_that_disconnects_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    before = counted("/read", "499")
    async with Server(LOOPBACK, routes=[web.post("/read", read)]) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf")
        await writer.drain()
        await until(lambda: server._in_flight == 1)
        writer.close()
        await until(lambda: server._in_flight == 0)
    assert counted("/read", "499") == before + 1
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize(
    "wild", [b"\x16\x03\x01\x02\x00\x01\x00", b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 100 + b"x y\r\n\r\n"]
)
async def test_bytes_that_are_no_http_do_no_harm(wild: bytes) -> None:
    async with Server(LOOPBACK) as server, client_of(server) as session:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(wild)
        writer.write_eof()
        assert re.match(rb"HTTP/1\.[01] 400|\Z", await reader.read())
        writer.close()
        assert await asked(session, "/healthz") == (200, "ok\n")


async def test_an_address_in_use_is_named() -> None:
    async with Server(LOOPBACK) as server:
        with pytest.raises(ServingError) as caught:
            async with Server(ServerSettings(port=server.port)):
                pytest.fail("two servers on one port")
    assert str(caught.value) == f"cannot listen on 127.0.0.1:{server.port}: Address already in use"


async def test_an_invalid_host_is_named() -> None:
    with pytest.raises(ServingError) as caught:
        async with Server(ServerSettings(host="a..b", allow_plain=True)):
            pytest.fail("it listens nowhere")
    assert str(caught.value) == "cannot listen on a..b:8443: invalid host name"


async def test_a_host_that_does_not_resolve_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
    with pytest.raises(ServingError) as caught:
        async with Server(ServerSettings(host="nowhere", allow_plain=True)):
            pytest.fail("it listens nowhere")
    assert str(caught.value) == "cannot listen on nowhere:8443: Name or service not known"


async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
    return await reader.readuntil(b"ok\n")


@pytest.mark.looptime
async def test_an_idle_connection_stays_open_for_longer_than_the_schedulers_timeout() -> None:
    async with Server(LOOPBACK) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        assert await exchange(reader, writer)
        await asyncio.sleep(3600)
        assert await exchange(reader, writer)
        await asyncio.sleep(3700)
        assert await reader.read() == b""
        writer.close()
