"""A TCP load balancer: several replicas behind one address, like a Kubernetes Service.

Each connection goes to the next backend in turn and stays with it: a backend that is removed gets no new
connections and keeps its open ones. A half-closed connection stays half open; when one end breaks, the other
is closed too.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import Self

Address = tuple[str, int]

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_CHUNK = 64 * 1024


class LoadBalancer:
    """`async with LoadBalancer([("127.0.0.1", 8443)]) as service:` and connect to `service.address`."""

    def __init__(
        self,
        backends: Iterable[Address] = (),
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        connect: Callable[[str, int], Awaitable[Streams]] = asyncio.open_connection,
    ) -> None:
        self._backends = deque(backends)
        self._open = connect
        self._wanted = (host, port)
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        host, port = self._wanted
        self._server = await asyncio.start_server(self._accept, host, port)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    @property
    def address(self) -> Address:
        if self._server is None:
            raise RuntimeError("the load balancer is not listening: enter its context first")
        host, port = self._server.sockets[0].getsockname()[:2]
        return host, port

    @property
    def backends(self) -> tuple[Address, ...]:
        """The backends, the next one in turn first."""
        return tuple(self._backends)

    def add(self, backend: Address) -> None:
        """Add a backend after all others; one that is already listed keeps its place."""
        if backend not in self._backends:
            self._backends.append(backend)

    def remove(self, backend: Address) -> None:
        """Send no new connections to a backend; the open ones stay."""
        if backend not in self._backends:
            raise ValueError(f"{backend} is not a backend of this load balancer")
        self._backends.remove(backend)

    async def aclose(self) -> None:
        """Refuse new connections and close the open ones."""
        if self._server is None:
            return
        server, self._server = self._server, None
        server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._server is None:  # it was on its way in when the load balancer closed
            writer.transport.abort()
            return
        connection = asyncio.create_task(self._forward(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = [writer]
        try:
            there_reader, there_writer = await self._connect()
            ends.append(there_writer)
            await copy_both_ways((reader, writer), (there_reader, there_writer))
        except* OSError:
            pass  # no backend, or one end was reset: in both cases the other end is closed
        finally:
            for end in ends:
                end.transport.abort()

    async def _connect(self) -> Streams:
        tried: set[Address] = set()
        while (backend := self._next(tried)) is not None:
            tried.add(backend)
            try:
                return await self._open(*backend)
            except OSError:
                continue
        raise ConnectionRefusedError("no backend accepts connections")

    def _next(self, tried: set[Address]) -> Address | None:
        for _ in range(len(self._backends)):
            backend = self._backends[0]
            self._backends.rotate(-1)
            if backend not in tried:
                return backend
        return None


async def copy_both_ways(here: Streams, there: Streams) -> None:
    """Copy until both have ended, and close both."""
    async with asyncio.TaskGroup() as both_ways:
        both_ways.create_task(_copy(here[0], there[1]))
        both_ways.create_task(_copy(there[0], here[1]))
    for _, end in (here, there):
        end.close()
        await end.wait_closed()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    writer.write_eof()
