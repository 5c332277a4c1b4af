"""Relays requests of the client to the API server, and the responses back, unchanged."""

import ssl
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp
from aiohttp import hdrs, web
from multidict import CIMultiDict
from yarl import URL

_ONE_HOP = (
    hdrs.CONNECTION,
    hdrs.KEEP_ALIVE,
    hdrs.PROXY_AUTHENTICATE,
    hdrs.PROXY_AUTHORIZATION,
    hdrs.TE,
    hdrs.TRAILER,
    hdrs.TRANSFER_ENCODING,
    hdrs.UPGRADE,
)
_ADDED_TO_REQUESTS = (hdrs.ACCEPT, hdrs.ACCEPT_ENCODING, hdrs.CONTENT_TYPE, hdrs.USER_AGENT)
_ADDED_TO_ANSWERS = (hdrs.CONTENT_TYPE, hdrs.SERVER)


class Upstream:
    """The API server: each request is sent in the client's name, exactly once."""

    def __init__(self, url: str, *, ca: Path) -> None:
        self._url = url.rstrip("/")
        self._tls = ssl.create_default_context(cafile=ca)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._tls, limit=0),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=_ADDED_TO_REQUESTS,
            middlewares=(_ask_once,),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    def ask(
        self, incoming: web.Request, body: bytes, *, plain: bool
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """Pass a request on; with `plain` the answer comes uncompressed, whatever the client would take."""
        if self._session is None:
            raise RuntimeError("the proxy is not running: enter its context first")
        headers = end_to_end(incoming.headers)
        for name in (hdrs.HOST, hdrs.EXPECT):
            headers.popall(name, None)
        if plain:
            headers[hdrs.ACCEPT_ENCODING] = "identity"
        url = URL(self._url + incoming.raw_path, encoded=True)
        return self._session.request(
            incoming.method, url, headers=headers, data=body or None, allow_redirects=False
        )


class Relayed(web.StreamResponse):
    """An answer that has the headers it was given, and of the server's own ones only a missing Date."""

    def __init__(self, status: int, reason: str | None, headers: CIMultiDict[str]) -> None:
        super().__init__(status=status, reason=reason, headers=headers)
        self.given = frozenset(name.lower() for name in headers)


async def remove_additions(_request: web.Request, answer: web.StreamResponse) -> None:
    """Take out what aiohttp adds to every answer; a signal handler."""
    if isinstance(answer, Relayed):
        for name in _ADDED_TO_ANSWERS:
            if name.lower() not in answer.given:
                answer.headers.popall(name, None)


def end_to_end(headers: Mapping[str, str]) -> CIMultiDict[str]:
    """Copy the headers without those that are about one connection only."""
    kept = CIMultiDict(headers)
    named = kept.get(hdrs.CONNECTION, "").split(",")
    for name in (*_ONE_HOP, *map(str.strip, named)):
        kept.popall(name, None)
    return kept


class UpstreamLost(Exception):
    """The connection to the API server broke before it answered."""


async def _ask_once(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Keep aiohttp from retrying by itself: that is the client's decision."""
    try:
        return await handler(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise UpstreamLost(str(error)) from error
