"""Plain calls are answered directly; all others go to aiohttp with their connection."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

import pytest
from aiohttp import web

from reberth.runtime import metrics
from reberth.runtime.connections import Connections, Line
from reberth.runtime.http_fast_path import FastPath, PlainCall, Reply
from reberth.runtime.http_server import Server, ServerSettings

HARMLESS = "User-Agent: Go-http-client/1.1\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n"
MOST = 1 << 20
DONE: list[str] = []


def fail() -> None:
    DONE.append("failed")
    raise ZeroDivisionError


THEN = {b"then": lambda: DONE.append("done"), b"then fail": fail}


def answer(body: bytes, since: float) -> Reply:
    assert since <= time.perf_counter()
    if body == b"fault":
        raise ZeroDivisionError
    then = THEN.get(body)
    return Reply(HTTPStatus.OK, b"at once: %d" % len(body), is_last=body == b"last", then=then)


def give_up(_: float) -> Reply:
    return Reply(HTTPStatus.REQUEST_TIMEOUT, b"too slow", is_last=True)


async def answer_later(request: web.Request) -> web.Response:
    return web.Response(text=f"aiohttp: {len(await request.read())}")


def call(*, seconds: float = 5.0) -> PlainCall:
    return PlainCall(answer, give_up, most_bytes=MOST, seconds=seconds)


class Client:
    """One connection, and what was said on it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def hear(self) -> tuple[str, str, bool]:
        """Give the status and the text of the next answer, and whether it is said to be the last."""
        async with asyncio.timeout(10):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
            length = next(line for line in head.split("\r\n") if line.startswith("Content-Length: "))
            body = await self.reader.readexactly(int(length.rpartition(" ")[2]))
        return head.split(" ")[1], body.decode(), "Connection: close" in head

    async def ask(self, sent: bytes) -> tuple[str, str, bool]:
        self.writer.write(sent)
        return await self.hear()

    async def is_closed(self) -> bool:
        async with asyncio.timeout(10):
            return await self.reader.read() == b""


def write(body: bytes, *, path: str = "/call", headers: str = HARMLESS) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


def server(*, seconds: float = 5.0) -> Server:
    settings = ServerSettings(port=0, body_limit_bytes=4 * MOST)
    routes = [
        web.post("/call", answer_later),
        web.get("/call", answer_later),
        web.post("/other", answer_later),
    ]
    return Server(settings, calls={"/call": call(seconds=seconds)}, routes=routes)


@asynccontextmanager
async def client_of(served: Server) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()


async def test_plain_calls_are_answered_one_after_the_other() -> None:
    async with server() as served, client_of(served) as client:
        for size in (0, 3, 100_000, MOST):
            assert await client.ask(write(b"x" * size)) == ("200", f"at once: {size}", False)


async def test_work_after_the_response_cannot_harm_the_connection() -> None:
    DONE.clear()
    async with server() as served, client_of(served) as client:
        for body in (b"then", b"then fail", b"then"):
            assert await client.ask(write(body)) == ("200", f"at once: {len(body)}", False)
    assert DONE == ["done", "failed", "done"]


async def test_a_call_is_counted() -> None:
    def counted() -> list[float]:
        requests = ("reberth_http_requests_total", {"route": "/call", "code": "200"})
        durations = ("reberth_http_request_duration_seconds_count", {"route": "/call"})
        found = [metrics.REGISTRY.get_sample_value(*sample) for sample in (requests, durations)]
        return [value or 0.0 for value in found]

    before = counted()
    async with server() as served, client_of(served) as client:
        await client.ask(write(b""))
    assert counted() == [value + 1 for value in before]


async def test_a_body_in_pieces_is_waited_for() -> None:
    sent = write(b"x" * 1000)
    async with server() as served, client_of(served) as client:
        for piece in (sent[:-500], sent[-500:-1], sent[-1:]):
            client.writer.write(piece)
            await asyncio.sleep(0.01)
        assert await client.hear() == ("200", "at once: 1000", False)


@pytest.mark.parametrize(
    ("sent", "answers"),
    [
        (b"GET /call HTTP/1.1\r\nHost: a\r\n\r\n", ["aiohttp: 0"]),
        (write(b"abc", path="/other"), ["aiohttp: 3"]),
        (write(b"abc", headers="X-Trace: 1\r\n"), ["aiohttp: 3"]),
        (write(b"abc").replace(b"Content-Length", b"content-length"), ["aiohttp: 3"]),
        (write(b"abc").replace(b"HTTP/1.1", b"HTTP/1.0"), ["aiohttp: 3"]),
        (
            b"POST /call HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
            ["aiohttp: 2"],
        ),
        (write(b"x" * (MOST + 1)), [f"aiohttp: {MOST + 1}"]),
        (write(b"abc") + write(b"ab"), ["aiohttp: 3", "aiohttp: 2"]),
    ],
)
async def test_requests_that_are_not_plain_go_to_aiohttp_with_their_connection(
    sent: bytes, answers: list[str]
) -> None:
    async with server() as served, client_of(served) as client:
        assert await client.ask(write(b"")) == ("200", "at once: 0", False)
        client.writer.write(sent)
        for text in answers:
            assert (await client.hear())[:2] == ("200", text)
        if b"HTTP/1.0" not in sent:
            assert await client.ask(write(b"")) == ("200", "aiohttp: 0", False)


async def test_a_head_in_pieces_is_handed_over() -> None:
    sent = write(b"abc")
    async with server() as served, client_of(served) as client, client_of(served) as other:
        client.writer.write(sent[:20])
        await other.ask(write(b""))  # what came earlier on an older connection has been read
        assert await client.ask(sent[20:]) == ("200", "aiohttp: 3", False)


ODD_LENGTHS = ("+3", "-3", "0x3", "3,3", "3 3", "\u00b3", "9" * 40)


def attack(*lines: str, body: str = "abc") -> bytes:
    return "\r\n".join(["POST /call HTTP/1.1", "Host: a", *lines, "", body]).encode("latin-1")


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        *(attack(f"Content-Length: {length}") for length in ODD_LENGTHS),
        attack("Content-Length: 3", "Content-Length: 4"),
        attack("Content-Length: 3", "Transfer-Encoding: chunked", body="0\r\n\r\n"),
        attack("Content-Length : 3"),
        attack("Accept: a", " b", "Content-Length: 3"),
        attack("Accept: a\x00b", "Content-Length: 3"),
        attack("Transfer-Encoding: chunked", body="-1\r\n"),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
async def test_nonsense_is_refused_and_nothing_is_read_after_it(sent: bytes) -> None:
    async with server() as served, client_of(served) as client:
        assert (await client.ask(sent))[0] == "400"
        assert await client.is_closed()


async def test_a_body_that_does_not_come_is_given_up() -> None:
    async with server(seconds=0.05) as served, client_of(served) as client:
        assert await client.ask(write(b"abc")[:-1]) == ("408", "too slow", True)
        assert await client.is_closed()


async def test_an_answer_may_be_the_last_of_its_connection() -> None:
    async with server() as served, client_of(served) as client:
        assert await client.ask(write(b"last")) == ("200", "at once: 4", True)
        assert await client.is_closed()


async def test_a_fault_is_an_internal_error_and_the_next_call_is_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with server() as served, client_of(served) as client:
        assert await client.ask(write(b"fault")) == ("500", "internal error\n", False)
        assert await client.ask(write(b"")) == ("200", "at once: 0", False)
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == ["request failed"]


async def test_at_the_stop_a_body_under_way_is_answered_and_idle_connections_are_closed() -> None:
    served = server()
    async with client_of(await served.__aenter__()) as slow, client_of(served) as idle:
        assert (await idle.ask(write(b"")))[0] == "200"
        slow.writer.write(write(b"abc")[:-1])
        await asyncio.sleep(0.05)
        leaving = asyncio.create_task(served.__aexit__(None, None, None))
        await asyncio.sleep(0.2)
        assert not leaving.done()
        assert await slow.ask(b"c") == ("200", "at once: 3", True)
        await leaving
        assert await idle.is_closed()


async def test_a_client_that_breaks_off_is_not_waited_for_at_the_stop() -> None:
    async with asyncio.timeout(5), server() as served, client_of(served) as client:
        client.writer.write(write(b"abc")[:-1])
        await asyncio.sleep(0.02)
        client.writer.transport.abort()


class Wire(asyncio.Transport):
    """What a line does with its transport."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[str] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.done.append(bytes(data).partition(b"\r\n\r\n")[2].decode())

    def close(self) -> None:
        self.done.append("close")

    def abort(self) -> None:
        self.done.append("abort")

    def pause_reading(self) -> None:
        self.done.append("pause")

    def resume_reading(self) -> None:
        self.done.append("resume")


def connect(*, keep_alive: float = 100.0) -> tuple[FastPath, asyncio.Protocol, Wire]:
    board = FastPath(
        {"/call": call()},
        asyncio.Protocol,
        connections=Connections(ServerSettings().limits),
        keep_alive=keep_alive,
        on_pending=lambda _: None,
    )
    line, wire = board(Line("127.0.0.1", asyncio.get_running_loop().time())), Wire()
    line.connection_made(wire)
    return board, line, wire


@pytest.mark.looptime
async def test_an_idle_connection_is_closed_after_keep_alive() -> None:
    _, line, wire = connect(keep_alive=100)
    line.data_received(write(b""))
    await asyncio.sleep(60)
    line.data_received(write(b""))
    await asyncio.sleep(60)
    assert wire.done == ["at once: 0"] * 2
    await asyncio.sleep(60)
    assert wire.done == ["at once: 0", "at once: 0", "close"]


async def test_a_client_that_does_not_read_responses_is_paused() -> None:
    _, line, wire = connect()
    line.pause_writing()
    line.resume_writing()
    assert wire.done == ["pause", "resume"]
    line.connection_lost(None)


@pytest.mark.looptime
async def test_a_connection_that_does_not_close_is_aborted() -> None:
    board, line, wire = connect()
    await board.close(1.0)
    assert wire.done == ["close", "abort"]
    line.connection_lost(None)
