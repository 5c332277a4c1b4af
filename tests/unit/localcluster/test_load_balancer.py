"""The load balancer, with real sockets on both sides."""

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from localcluster.load_balancer import Address, LoadBalancer

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def backend(name: str) -> AsyncIterator[Address]:
    """Says its name to whoever connects, then echoes until the other side ends, then says goodbye."""
    talks: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(f"{name}\n".encode())
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
            writer.write(b"goodbye")
        except ConnectionError:
            pass
        writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks[asyncio.create_task(talk(reader, writer))] = writer

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()
    finally:
        server.close()
        for writer in talks.values():
            writer.transport.abort()
        await asyncio.gather(*talks)
        await server.wait_closed()


@asynccontextmanager
async def connected(service: LoadBalancer) -> AsyncIterator[Connection]:
    reader, writer = await asyncio.open_connection(*service.address)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def ask_name(service: LoadBalancer) -> str:
    async with connected(service) as (reader, _):
        return (await reader.readline()).decode().strip()


@asynccontextmanager
async def deaf() -> AsyncIterator[Address]:
    """An address that nobody else is given and where nobody listens."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()


async def test_connections_go_round_the_backends_in_turn() -> None:
    async with backend("a") as a, backend("b") as b, backend("c") as c, LoadBalancer([a, b, c]) as service:
        assert [await ask_name(service) for _ in range(7)] == ["a", "b", "c", "a", "b", "c", "a"]


async def test_a_refusing_backend_is_skipped_and_the_others_share_its_connections() -> None:
    async with deaf() as dead, backend("a") as a, backend("b") as b, LoadBalancer([dead, a, b]) as service:
        assert Counter([await ask_name(service) for _ in range(10)]) == {"a": 5, "b": 5}


async def test_a_connection_is_closed_when_no_backend_accepts_it() -> None:
    async with deaf() as one, deaf() as other, LoadBalancer([one, other]) as service:
        assert await ask_name(service) == ""
        service.remove(one)
        service.remove(other)
        assert await ask_name(service) == ""


async def test_an_added_backend_takes_its_turn() -> None:
    async with backend("a") as a, backend("b") as b, LoadBalancer([a]) as service:
        assert await ask_name(service) == "a"
        service.add(b)
        service.add(a)
        assert service.backends == (a, b)
        assert [await ask_name(service) for _ in range(4)] == ["a", "b", "a", "b"]


async def test_a_removed_backend_gets_no_new_connections_but_keeps_its_open_one() -> None:
    async with AsyncExitStack() as stack:
        a, b = [await stack.enter_async_context(backend(name)) for name in "ab"]
        service = await stack.enter_async_context(LoadBalancer([a, b]))
        reader, writer = await stack.enter_async_context(connected(service))
        assert await reader.readline() == b"a\n"
        service.remove(a)
        assert [await ask_name(service) for _ in range(3)] == ["b", "b", "b"]
        writer.write(b"still here\n")
        assert await reader.readline() == b"still here\n"


async def test_removing_an_unknown_backend_is_an_error() -> None:
    async with LoadBalancer() as service:
        with pytest.raises(ValueError, match="is not a backend"):
            service.remove(("127.0.0.1", 1))


async def test_a_megabyte_passes_whole_and_a_half_closed_connection_still_answers() -> None:
    sent = bytes(range(256)) * 4096
    async with backend("a") as a, LoadBalancer([a]) as service, connected(service) as (reader, writer):
        assert await reader.readline() == b"a\n"

        async def send() -> None:
            writer.write(sent)
            await writer.drain()
            writer.write_eof()

        received, _ = await asyncio.gather(reader.read(-1), send())
        assert received == sent + b"goodbye"


async def test_many_connections_at_once_do_not_mix_their_bytes() -> None:
    async with AsyncExitStack() as stack:
        a, b = [await stack.enter_async_context(backend(name)) for name in "ab"]
        service = await stack.enter_async_context(LoadBalancer([a, b]))

        async def talk(number: int) -> tuple[str, bytes]:
            async with connected(service) as (reader, writer):
                name = (await reader.readline()).decode().strip()
                writer.write(f"{number}\n".encode())
                return name, await reader.readline()

        answers = await asyncio.gather(*(talk(number) for number in range(50)))
        assert [line for _, line in answers] == [f"{number}\n".encode() for number in range(50)]
        assert Counter(name for name, _ in answers) == {"a": 25, "b": 25}


async def test_a_backend_that_dies_ends_the_clients_connection() -> None:
    async with LoadBalancer() as service:
        async with backend("a") as a:
            service.add(a)
            reader, writer = await asyncio.open_connection(*service.address)
            assert await reader.readline() == b"a\n"
        assert await reader.read() == b""
        writer.transport.abort()


async def test_closing_ends_open_connections_and_refuses_new_ones() -> None:
    async with backend("a") as a:
        async with LoadBalancer([a]) as service:
            address = service.address
            reader, writer = await asyncio.open_connection(*address)
            assert await reader.readline() == b"a\n"
        assert await reader.read() == b""
        writer.transport.abort()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*address)
        with pytest.raises(RuntimeError, match="is not listening"):
            _ = service.address
        await service.aclose()


async def test_the_load_balancer_listens_on_the_given_port() -> None:
    async with deaf() as (host, port):
        pass
    async with backend("a") as a, LoadBalancer([a], host=host, port=port) as service:
        assert service.address == (host, port)
        assert await ask_name(service) == "a"
