"""One client's way to the API server: a port of its own that can be cut, frozen and mended."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from functools import partial

from aiohttp import web

from localcluster.faults import relay, severing
from localcluster.faults.journal import Changes

HOST = "127.0.0.1"

_LONGEST_LINE = 2**20  # of a request's head, as the API server allows it

Handler = Callable[["Link", web.Request], Awaitable[web.StreamResponse]]


class Link:
    """The port stays reserved while nobody listens on it, so that it is the same one when it is mended."""

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
                severing.reset(connection.transport)
        await asyncio.sleep(0)  # the sockets close on the next turn of the loop

    def freeze(self) -> None:
        """Let nothing pass any more in either direction, unnoticed: a network that loses packets."""
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
        handler_cancellation=True,  # a client that leaves a watch ends it upstream, too
        shutdown_timeout=1.0,  # the handlers end with their connections, which are reset before
    )
