"""One client's link to the API server: a port of its own that can be cut, frozen and restored."""

import asyncio
import fcntl
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from functools import partial

from aiohttp import web

from localcluster.faults import relay
from localcluster.faults.journal import Changes

HOST = "127.0.0.1"

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_SIOCOUTQNSD = 0x894B  # of linux/sockios.h: how many bytes of a socket's queue are not sent yet
_NAP = 0.001
_PATIENCE = 5.0
_LONGEST_LINE = 2**20  # of a request's head, as the API server allows it

Handler = Callable[["Link", web.Request], Awaitable[web.StreamResponse]]


class Link:
    """The port stays reserved while the link is cut, so that it is the same one afterwards."""

    def __init__(self, client: str, handle: Handler, *, tls: ssl.SSLContext, changes: Changes) -> None:
        self.client = client
        self.is_frozen = False
        self._tls = tls
        self._changes = changes
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind((HOST, 0))
        self._runner = _runner(partial(handle, self))
        self._site: web.TCPSite | None = None

    @property
    def port(self) -> int:
        port: int = self._reserved.getsockname()[1]
        return port

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.port}"

    @property
    def is_cut(self) -> bool:
        return self._site is None

    async def open(self) -> None:
        await self._runner.setup()
        await self.mend()

    async def mend(self) -> None:
        """Undo a cut and a freeze."""
        self.is_frozen = False
        self._changes.announce()
        if self._site is None:
            site = web.TCPSite(self._runner, HOST, self.port, ssl_context=self._tls, reuse_address=True)
            await site.start()
            self._site = site

    async def cut(self) -> None:
        """Refuse new connections and reset the open ones."""
        if self._site is not None:
            site, self._site = self._site, None
            await site.stop()
        if self._runner.server is not None:
            for connection in self._runner.server.connections:
                reset(connection.transport)
        await asyncio.sleep(0)  # the sockets close on the next turn of the loop

    def freeze(self) -> None:
        """Silently stop all traffic in both directions, like a network that loses packets."""
        self.is_frozen = True

    async def until_passable(self) -> None:
        await self._changes.until(lambda: not self.is_frozen)

    async def aclose(self) -> None:
        await self.cut()
        await self._runner.cleanup()
        self._reserved.close()


def _runner(handle: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> web.AppRunner:
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handle)
    application.on_response_prepare.append(relay.remove_additions)
    return web.AppRunner(
        application,
        access_log=None,
        auto_decompress=False,
        max_line_size=_LONGEST_LINE,
        max_field_size=_LONGEST_LINE,
        handler_cancellation=True,  # when a client closes a watch, it is closed upstream too
        shutdown_timeout=1.0,  # the handlers end with their connections, which are reset before
    )


def reset(transport: asyncio.Transport | None) -> None:
    """Close a connection by TCP RST, as a crashed machine or a firewall does."""
    if transport is not None and not transport.is_closing():
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        transport.abort()


async def until_sent(transport: asyncio.Transport | None) -> None:
    """Wait for what was written to be on its way, for a reset drops what is not.

    The queue must be empty twice: between two turns of the loop the transport fills it from its own buffer.
    A client that reads nothing is waited for no longer than five seconds.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _PATIENCE
    empty = 0
    while empty < 2 and transport is not None and not transport.is_closing() and loop.time() < deadline:
        empty = empty + 1 if _unsent(transport) == 0 else 0
        await asyncio.sleep(_NAP)


def _unsent(transport: asyncio.Transport) -> int:
    answer = fcntl.ioctl(transport.get_extra_info("socket").fileno(), _SIOCOUTQNSD, bytes(4))
    count: int = struct.unpack("i", answer)[0]
    return count
