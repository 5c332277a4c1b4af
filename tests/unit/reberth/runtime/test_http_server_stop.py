"""Stopping a server with requests in flight, over real sockets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from reberth.runtime import http_server
from reberth.runtime.http_server import Server, ServerSettings
from reberth.values.duration import Duration

LOOPBACK = ServerSettings(port=0)


class Stopping:
    """A server in a task of its own, so that a test can go on while it stops; /gate waits to be opened."""

    def __init__(self, settings: ServerSettings) -> None:
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()
        self.server = Server(settings, routes=[web.get("/gate", self._pass), web.post("/echo", self._echo)])
        self._started = asyncio.Event()
        self._leave = asyncio.Event()
        self.task = asyncio.create_task(self._serve())

    async def _serve(self) -> None:
        async with self.server:
            self._started.set()
            await self._leave.wait()

    async def _pass(self, _: web.Request) -> web.Response:
        self.entered.set()
        await self.opened.wait()
        return web.Response(text="through")

    async def _echo(self, request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    async def stop(self) -> None:
        """Begin to stop, and come back when nobody can connect any more."""
        port = self.server.port
        self._leave.set()
        await refused(port)

    async def cancel(self) -> None:
        port = self.server.port
        self.task.cancel()
        await refused(port)


async def refused(port: int) -> None:
    """Come back when nobody can connect."""
    async with asyncio.timeout(10):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except (ConnectionRefusedError, ConnectionResetError):
                return
            writer.close()


@asynccontextmanager
async def started(
    settings: ServerSettings = LOOPBACK,
) -> AsyncIterator[tuple[Stopping, aiohttp.ClientSession]]:
    stopping = Stopping(settings)
    await stopping._started.wait()
    async with aiohttp.ClientSession(f"http://127.0.0.1:{stopping.server.port}") as session:
        yield stopping, session


async def asked(session: aiohttp.ClientSession, path: str) -> tuple[int, str, str | None]:
    async with session.get(path) as response:
        return response.status, await response.text(), response.headers.get("Connection")


async def test_a_request_in_flight_is_answered_during_the_stop() -> None:
    async with started() as (stopping, session):
        answer = asyncio.create_task(asked(session, "/gate"))
        await stopping.entered.wait()
        await stopping.stop()
        assert not stopping.task.done()
        stopping.opened.set()
        assert await answer == (200, "through", "close")
        await stopping.task


async def test_readiness_fails_first_and_open_connections_are_still_served() -> None:
    async with started() as (stopping, session):
        assert await asked(session, "/readyz") == (200, "serving: ok\n", None)
        waiting = asyncio.create_task(asked(session, "/gate"))
        await stopping.entered.wait()
        assert await asked(session, "/healthz") == (200, "ok\n", None)
        await stopping.stop()
        assert await asked(session, "/readyz") == (503, "serving: stopping\n", "close")
        stopping.opened.set()
        await waiting
        await stopping.task


async def test_a_request_on_its_way_when_the_stop_begins_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_ARRIVAL_SECONDS", 1.0)
    async with started() as (stopping, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", stopping.server.port)
        await stopping.stop()
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert (await reader.read()).endswith(b"\r\n\r\nok\n")
        writer.close()
        await stopping.task


async def test_an_idle_connection_is_closed_at_the_end() -> None:
    async with started() as (stopping, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", stopping.server.port)
        await stopping.stop()
        await stopping.task
        assert await reader.read() == b""
        writer.close()


async def test_a_request_that_never_ends_is_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    async with started(ServerSettings(port=0, stop_within=Duration(0.05))) as (stopping, session):
        answer = asyncio.create_task(asked(session, "/gate"))
        await stopping.entered.wait()
        await stopping.stop()
        with pytest.raises(aiohttp.ClientConnectionError):
            await answer
        await stopping.task
    (said,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert (said.message, vars(said)["fields"]) == ("stopped with requests in flight", {"requests": 1})


async def test_clients_with_open_connections_lose_no_call() -> None:
    calls = 0

    async def call(session: aiohttp.ClientSession) -> None:
        nonlocal calls
        while True:
            try:
                async with session.post("/echo", data=b"hello") as response:
                    assert await response.read() == b"hello"
                    calls += 1
            except aiohttp.ClientConnectorError:
                return

    async with started() as (stopping, session):
        callers = [asyncio.create_task(call(session)) for _ in range(8)]
        async with asyncio.timeout(10):
            while calls < 200:
                await asyncio.sleep(0)
        await stopping.stop()
        await asyncio.gather(*callers)
        await stopping.task


async def test_a_cancelled_block_stops_gracefully_too() -> None:
    async with started() as (stopping, session):
        answer = asyncio.create_task(asked(session, "/gate"))
        await stopping.entered.wait()
        await stopping.cancel()
        stopping.opened.set()
        assert await answer == (200, "through", "close")
        with pytest.raises(asyncio.CancelledError):
            await stopping.task


async def test_a_second_cancellation_drops_requests_in_flight() -> None:
    async with started() as (stopping, session):
        answer = asyncio.create_task(asked(session, "/gate"))
        await stopping.entered.wait()
        await stopping.cancel()
        stopping.task.cancel()
        with pytest.raises(aiohttp.ClientConnectionError):
            await answer
        with pytest.raises(asyncio.CancelledError):
            await stopping.task


async def test_the_port_is_free_after_the_stop() -> None:
    async with Server(LOOPBACK) as first:
        port = first.port
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{port}/healthz") as response,
        ):
            assert response.status == 200
    async with Server(ServerSettings(port=port)) as second:
        assert second.port == port
