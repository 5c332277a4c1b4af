"""Reading a response body: large pieces where much arrives, no delay where little does."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Self

import aiohttp
import pytest

from localcluster.credentials import Authority
from reberth.client.body import _MOMENT, LargeBody, ResponseBody

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
UNENDED = HEAD + b"\r\n"
LONG = 3600.0
NEVER = 0.0
MOST = 64


class Peer:
    """A server that says what it is told to, to one client."""

    def __init__(self, authority: Authority | None) -> None:
        self._authority = authority
        self._accepted: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._context())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self._writer.transport.abort()

    async def ask(self, session: aiohttp.ClientSession, head: bytes) -> aiohttp.ClientResponse:
        """The answer of which so far only the head has come."""
        trust = ssl.create_default_context(cafile=self._authority.certificate) if self._authority else True
        port = self._server.sockets[0].getsockname()[1]
        url = f"{'https' if self._authority else 'http'}://127.0.0.1:{port}"
        asked = asyncio.create_task(session.get(url, ssl=trust))
        self._writer = await self._accepted.get()
        await self.say(head)
        return await asked

    async def say(self, content: bytes) -> None:
        self._writer.write(content)
        await self._writer.drain()

    def end(self) -> None:
        self._writer.get_extra_info("socket").shutdown(socket.SHUT_WR)

    def _accept(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._accepted.put_nowait(writer)

    def _context(self) -> ssl.SSLContext | None:
        if self._authority is None:
            return None
        pair = self._authority.issue("peer", hosts=["127.0.0.1"])
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(pair.certificate, pair.key)
        return context


@pytest.fixture(params=["plain", "encrypted"])
async def peer(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Peer]:
    authority = Authority(tmp_path).create() if request.param == "encrypted" else None
    async with Peer(authority) as peer:
        yield peer


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout()) as session:
        yield session


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Moments that outlast a test."""
    monkeypatch.setattr("reberth.client.body._MOMENT", LONG)
    monkeypatch.setattr("reberth.client.body._SOON", LONG)


def way_in(answer: aiohttp.ClientResponse) -> socket.socket:
    assert answer.connection is not None
    assert answer.connection.transport is not None
    found: socket.socket = answer.connection.transport.get_extra_info("socket")
    return found


def wakes_at(way: socket.socket) -> int:
    return way.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)


async def turn() -> None:
    """Let the event loop look at its connections, so that it hears what has come."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_after_a_silence_the_first_piece_comes_at_once(
    peer: Peer, session: aiohttp.ClientSession
) -> None:
    async with await peer.ask(session, UNENDED) as answer:
        body = ResponseBody(answer)
        assert wakes_at(way_in(answer)) == 1
        await peer.say(b"one")
        assert await body.piece() == b"one"


async def hear_two(peer: Peer, body: ResponseBody) -> None:
    """Two pieces, the second of which comes soon after the first."""
    for word in (b"one", b"two"):
        await peer.say(word)
        assert await body.piece() == word


@pytest.mark.usefixtures("patient")
async def test_pieces_that_arrive_within_a_moment_are_read_together(
    peer: Peer, session: aiohttp.ClientSession
) -> None:
    async with await peer.ask(session, UNENDED) as answer:
        body = ResponseBody(answer)
        await hear_two(peer, body)
        reading = asyncio.create_task(body.piece())
        await peer.say(b"three")
        await turn()
        assert not reading.done()
        await peer.say(b"x" * 2**17)
        assert (await reading).startswith(b"threexxx")


async def test_rare_pieces_are_read_without_delay(
    peer: Peer, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reberth.client.body._SOON", NEVER)
    async with await peer.ask(session, UNENDED) as answer:
        await hear_two(peer, ResponseBody(answer))
        assert wakes_at(way_in(answer)) == 1


async def test_little_that_follows_waits_for_a_moment_only(
    peer: Peer, session: aiohttp.ClientSession
) -> None:
    async with await peer.ask(session, UNENDED) as answer:
        body = ResponseBody(answer)
        for word in (b"one", b"two", b"three"):
            await peer.say(word)
            assert await body.piece() == word


async def test_the_connection_reads_at_once_again_after_a_moment(
    peer: Peer, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reberth.client.body._SOON", LONG)
    async with await peer.ask(session, UNENDED) as answer:
        body, way = ResponseBody(answer), way_in(answer)
        await hear_two(peer, body)
        assert wakes_at(way) > 1
        while wakes_at(way) > 1:
            await asyncio.sleep(0.001)


@pytest.mark.usefixtures("patient")
async def test_the_connection_reads_at_once_again_when_the_body_is_complete(
    peer: Peer, session: aiohttp.ClientSession
) -> None:
    async with await peer.ask(session, HEAD + b"Content-Length: 6\r\n\r\n") as answer:
        body, way = ResponseBody(answer), way_in(answer)
        await hear_two(peer, body)
        assert wakes_at(way) > 1
        assert await body.piece() == b""
        assert wakes_at(way) == 1


@pytest.mark.usefixtures("patient")
async def test_an_end_is_not_waited_for(peer: Peer, session: aiohttp.ClientSession) -> None:
    async with await peer.ask(session, UNENDED) as answer:
        body = ResponseBody(answer)
        await hear_two(peer, body)
        peer.end()
        assert await body.piece() == b""


async def test_a_connection_that_was_closed_meanwhile_is_left_alone(
    peer: Peer, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reberth.client.body._SOON", LONG)
    troubles: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, trouble: troubles.append(trouble))
    async with await peer.ask(session, UNENDED) as answer:
        await hear_two(peer, ResponseBody(answer))
    await asyncio.sleep(2 * _MOMENT)  # what is due earlier is done earlier
    assert troubles == []


@pytest.mark.parametrize("pieces", [[b""], [b"all of it"], [b"one, ", b"two, ", b"three"]])
async def test_a_whole_body_is_all_of_its_pieces(
    peer: Peer, session: aiohttp.ClientSession, pieces: list[bytes]
) -> None:
    length = sum(map(len, pieces))
    async with await peer.ask(session, HEAD + b"Content-Length: %d\r\n\r\n" % length) as answer:
        reading = asyncio.create_task(ResponseBody(answer).whole(MOST))
        for piece in pieces:
            await peer.say(piece)
            await turn()
        assert await reading == b"".join(pieces)


async def test_a_body_that_breaks_off_is_a_fault(peer: Peer, session: aiohttp.ClientSession) -> None:
    async with await peer.ask(session, HEAD + b"Content-Length: 9\r\n\r\n") as answer:
        await peer.say(b"one")
        peer.end()
        with pytest.raises(aiohttp.ClientPayloadError):
            await ResponseBody(answer).whole(MOST)


@pytest.mark.parametrize("length", [b"Content-Length: 65\r\n\r\n", b"\r\n"])
async def test_no_more_of_a_body_is_read_than_the_caller_wants(
    peer: Peer, session: aiohttp.ClientSession, length: bytes
) -> None:
    async with await peer.ask(session, HEAD + length) as answer:
        await peer.say(b"x" * (MOST + 1))
        with pytest.raises(LargeBody, match="more than 64 bytes"):
            await ResponseBody(answer).whole(MOST)
