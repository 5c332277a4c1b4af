"""The upstream server behind the fault proxy in unit tests: it echoes and sends lines."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from aiohttp import web
from yarl import URL

from localcluster.credentials import KeyPair

PODS = "/api/v1/pods"
WATCH = f"{PODS}?watch=true"
EVICTION = "/api/v1/namespaces/shop/pods/web-1/eviction"
LINES = [
    f'{{"type":"ADDED","object":{{"metadata":{{"name":"p{number}"}}}}}}\n'.encode() for number in range(5)
]


@dataclass(frozen=True)
class Upstream:
    url: str
    ca: Path


class LineServer:
    """Echoes a request as JSON, answers a GET with `body` if there is one, and a watch with what is fed."""

    def __init__(self) -> None:
        self.body: bytes | None = None
        self.headers: list[tuple[str, str]] = []
        self.requests: list[tuple[str, str]] = []
        self.is_dying = False
        """Break every connection instead of an answer, and each watch after its first piece."""
        self._fed: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._watch_left = asyncio.Event()

    def feed(self, *data: bytes | None) -> None:
        """Send these in the open watch, or the next; None ends it."""
        for piece in data:
            self._fed.put_nowait(piece)

    async def until_watch_is_left(self) -> None:
        await self._watch_left.wait()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.method, request.raw_path))
        if "watch" in request.query:
            return await self._watch(request)
        if self.is_dying:
            return _break(request)
        if request.method == "GET" and self.body is not None:
            return web.Response(body=self.body, headers=self.headers, content_type="application/json")
        said = {
            "method": request.method,
            "path": request.raw_path,
            "headers": [[name, value] for name, value in request.headers.items() if name != "Host"],
            "body": (await request.read()).decode(),
        }
        return web.json_response(said, status=201 if request.method == "POST" else 200, headers=self.headers)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        try:
            while (piece := await self._fed.get()) is not None:
                await response.write(piece)
                if self.is_dying:
                    return _break(request)
        finally:
            self._watch_left.set()
        return response


def _break(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


@asynccontextmanager
async def serving(server: LineServer, identity: KeyPair) -> AsyncIterator[str]:
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(
        application,
        access_log=None,
        handler_cancellation=True,
        max_line_size=2**20,
        max_field_size=2**20,
        shutdown_timeout=0.1,
    )
    await runner.setup()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(identity.certificate, identity.key)
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    try:
        yield f"https://127.0.0.1:{site.port}"
    finally:
        await runner.cleanup()


class Client:
    """Requests to one URL, each made once only."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url = url
        self._session = session

    @asynccontextmanager
    async def open(
        self, path: str, *, method: str = "GET", **given: object
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        async with self._session.request(method, URL(self.url + path, encoded=True), **given) as response:  # type: ignore[arg-type]  # passed through as given
            yield response

    async def read(self, path: str, *, method: str = "GET", **given: object) -> tuple[int, bytes]:
        async with self.open(path, method=method, **given) as response:
            return response.status, await response.read()

    async def outcome(self, path: str, *, method: str = "GET") -> int | str:
        """The status, or the word that the connection broke."""
        try:
            return (await self.read(path, method=method))[0]
        except aiohttp.ClientError:
            return "broken"


async def read_watch(client: Client) -> tuple[bytes, str]:
    """What came, and how it ended."""
    received = b""
    async with client.open(WATCH) as watch:
        assert watch.status == 200
        try:
            async for data in watch.content.iter_any():
                received += data
        except aiohttp.ClientError:
            return received, "broken"
    return received, "ended"


async def passed(action: Callable[[], Awaitable[object]]) -> float:
    clock = asyncio.get_running_loop().time
    start = clock()
    await action()
    return clock() - start
