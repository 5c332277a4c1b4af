"""The HTTP server of a daemon: its own routes, /healthz, /readyz and /metrics, over TLS or on loopback.

It stops in an order that loses no call: it reports not ready, accepts no new connection, answers the requests
in flight, and only then closes the idle connections. It only speaks HTTP/1.1, and keeps idle connections
longer than kube-scheduler does (90 s), so that the scheduler never writes to a connection that was just
closed.
"""

import asyncio
import ipaddress
import logging
import os
import socket
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType, TracebackType
from typing import Annotated, Self, cast

from aiohttp import web
from aiohttp.http import HttpProcessingError
from msgspec import Meta
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from reberth.config.settings import Section
from reberth.runtime import live_files, logs, metrics
from reberth.runtime.certificates import CertificateFiles, LiveCertificate
from reberth.runtime.connections import ConnectionLimits, Connections, Listener
from reberth.runtime.http_fast_path import FastPath, PlainCall, connection_of
from reberth.values.duration import Duration, PositiveDuration
from reberth.values.errors import ServingError

log = logs.Log(__name__)
sparse = logs.SparseLog(log)
aiohttp_log = logging.getLogger("aiohttp.server")

# None if the check passes, otherwise the reason why it fails.
Check = Callable[[], str | None]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_SCHEDULER_KEEPS_SECONDS = 90
# Time for requests on connections that were idle when the listener closed: a busy scheduler uses each of its
# own in it, and the response tells it to close that one. A request that meets the closing of one is lost.
_ARRIVAL_SECONDS = 0.5
# Time for writing the last responses.
_WRITE_SECONDS = 1.0
# nginx's status for a client that disconnected before the response; it is only counted.
_CALLER_GONE = 499
# Of 8 KiB each: what a client may fill with a head that never ends.
_MOST_HEADERS = 32
_REASON_LENGTH = 200


class ServerSettings(Section, frozen=True):
    """The address, and how to serve. Other addresses than loopback need TLS or `allowPlain`."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 8443
    tls: CertificateFiles | None = None
    allow_plain: bool = False
    keep_alive: Duration = Duration(3630)
    stop_within: Duration = Duration(20)
    body_limit_bytes: Annotated[int, Meta(ge=1)] = 2**20
    read_buffer_bytes: Annotated[int, Meta(ge=2**10)] = 2**16
    handshake_within: PositiveDuration = PositiveDuration(5)
    head_within: PositiveDuration = PositiveDuration(5)
    """Time for the head of a request; unauthenticated clients must begin one in this time, too."""
    unauthenticated_connections: Annotated[int, Meta(ge=1)] = 256
    authenticated_connections: Annotated[int, Meta(ge=1)] = 256

    def __post_init__(self) -> None:
        if self.keep_alive <= _SCHEDULER_KEEPS_SECONDS:
            raise ValueError(f"keepAlive must be above {_SCHEDULER_KEEPS_SECONDS}s")
        if not (self.tls or self.allow_plain or _is_loopback(self.host)):
            raise ValueError(
                f"plain HTTP on {self.host or 'all addresses'} needs allowPlain: true, else give tls"
            )

    @property
    def is_local(self) -> bool:
        """Whether it only serves this machine, without TLS."""
        return self.tls is None and _is_loopback(self.host)

    @property
    def limits(self) -> ConnectionLimits:
        return ConnectionLimits(
            self.handshake_within,
            self.head_within,
            self.unauthenticated_connections,
            self.authenticated_connections,
        )


class Server:
    """A server, from entering to leaving its `async with`.

    Entering raises a ServingError if the address or the certificate is invalid. Leaving stops gracefully,
    even when the block is cancelled.

    /healthz fails while `liveness` gives a reason, and a new process may help. /readyz fails while one of the
    checks does; below them it prints remarks: information for the operator that does not make the server
    unready. A second cancellation, while stopping, gives up the requests in flight; the sockets are closed in
    any case.
    """

    def __init__(
        self,
        settings: ServerSettings,
        *,
        routes: Iterable[web.RouteDef] = (),
        calls: Mapping[str, PlainCall] = MappingProxyType({}),
        checks: Mapping[str, Check] | None = None,
        liveness: Check = lambda: None,
        remarks: Callable[[], Iterable[str]] = tuple,
        look_interval: float = live_files.LOOK_INTERVAL,
    ) -> None:
        self.port = settings.port
        """The port; after entering, the one that the system chose if the settings specify 0."""
        self._settings = settings
        self._checks = checks or {}
        self._liveness = liveness
        self._remarks = remarks
        self._look_interval = look_interval
        self._certificate = LiveCertificate(settings.tls) if settings.tls else None
        self._renewal: asyncio.Task[None] | None = None
        self._stopping = False
        self._in_flight = 0
        self._all_answered = asyncio.Event()
        self._all_answered.set()
        self._runner = self._make_runner([*self._own_routes(), *routes])
        self._connections = Connections(settings.limits)
        self._metrics_page = metrics.MetricsPage(metrics.REGISTRY)
        self._listener: Listener | None = None
        self._board = FastPath(
            calls,
            self._make_handler,
            connections=self._connections,
            keep_alive=settings.keep_alive,
            on_pending=self._count_in_flight,
        )

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        try:
            await self._listen()
        except BaseException:
            await self._runner.cleanup()
            raise
        if self._certificate:
            self._renewal = asyncio.create_task(self._certificate.follow(self._look_interval))
        log.info("serving", host=self._settings.host, port=self.port, tls=self._certificate is not None)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping = self._board.is_stopping = True
        if self._renewal:
            self._renewal.cancel()
        try:
            await self._finish_requests()
        finally:
            try:
                if self._listener:
                    await self._listener.abandon()
                await self._board.close(_WRITE_SECONDS)
            finally:
                await self._runner.cleanup()

    async def _listen(self) -> None:
        host, port = self._settings.host, self._settings.port
        context = self._certificate.context if self._certificate else None
        self._listener = Listener(self._board, self._connections, context)
        try:
            self.port = await self._listener.open(host, port)
        except (OSError, UnicodeError) as error:
            raise ServingError(f"cannot listen on {host}:{port}: {_reason(error)}") from None

    async def _finish_requests(self) -> None:
        if self._listener:
            self._listener.close()
        await asyncio.sleep(_ARRIVAL_SECONDS)
        try:
            async with asyncio.timeout(self._settings.stop_within):
                await self._all_answered.wait()
        except TimeoutError:
            log.warning("stopped with requests in flight", requests=self._in_flight)

    def _make_runner(self, routes: Iterable[web.RouteDef]) -> web.AppRunner:
        limit = self._settings.body_limit_bytes
        app = web.Application(middlewares=[self._count_request], client_max_size=limit)
        app.add_routes(routes)
        return web.AppRunner(
            app,
            access_log=None,
            keepalive_timeout=self._settings.keep_alive,
            read_bufsize=self._settings.read_buffer_bytes,
            shutdown_timeout=_WRITE_SECONDS,
            max_headers=_MOST_HEADERS,
            # No client of ours compresses; and a few bytes that become many would do so before any limit.
            auto_decompress=False,
            logger=cast(logging.Logger, _BadRequests()),
        )

    def _make_handler(self) -> asyncio.Protocol:
        """Make aiohttp's part of a connection; the runner is set up before the first client connects."""
        return cast(web.Server, self._runner.server)()

    def _own_routes(self) -> list[web.RouteDef]:
        return [
            web.get("/healthz", self._serve_healthz),
            web.get("/readyz", self._serve_readyz),
            web.get("/metrics", self._serve_metrics),
        ]

    async def _serve_healthz(self, _: web.Request) -> web.Response:
        reason = self._liveness()
        return web.Response(text=f"{reason or 'ok'}\n", status=503 if reason else 200)

    async def _serve_readyz(self, _: web.Request) -> web.Response:
        reasons = {name: check() for name, check in self._checks.items()}
        reasons["serving"] = "stopping" if self._stopping else None
        ready = all(reason is None for reason in reasons.values())
        lines = [f"{name}: {'ok' if reason is None else reason}\n" for name, reason in reasons.items()]
        remarks = [f"{remark}\n" for remark in self._remarks()]
        if self._certificate:
            remarks += [f"# {remark}\n" for remark in self._certificate.list_remarks()]
        return web.Response(status=200 if ready else 503, text="".join([*lines, *remarks]))

    async def _serve_metrics(self, _: web.Request) -> web.Response:
        return web.Response(
            body=self._metrics_page.read(), headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4}
        )

    def _count_in_flight(self, change: int) -> None:
        self._in_flight += change
        if self._in_flight:
            self._all_answered.clear()
        else:
            self._all_answered.set()

    @web.middleware
    async def _count_request(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Count and time a request; while stopping, its response is the last on its connection."""
        started, code = time.perf_counter(), "cut_off"
        connection = connection_of(request)
        if connection:
            connection.begin_request()
        self._count_in_flight(1)
        try:
            response = await _answer(request, handler)
            code = str(response.status)
        finally:
            self._count_in_flight(-1)
            if connection:
                connection.end_request()
            metrics.HTTP_REQUESTS.labels(_route(request), code).inc()
            metrics.HTTP_REQUEST_DURATION.labels(_route(request)).observe(time.perf_counter() - started)
        if self._stopping:
            response.force_close()
        return response


class _BadRequests:
    """Takes the place of aiohttp's log: it would write a traceback for each request that is not HTTP."""

    def debug(self, *_: object, exc_info: BaseException | None = None) -> None:
        self.exception("", exc_info=exc_info)

    def exception(self, text: str, *values: object, exc_info: BaseException | None = None) -> None:
        if isinstance(exc_info, HttpProcessingError):
            metrics.HTTP_BAD_REQUESTS.inc()
            sparse.warning("bad request", reason=exc_info.message[:_REASON_LENGTH])
        else:
            aiohttp_log.error(text, *values, exc_info=exc_info)


async def _answer(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as refusal:
        return web.Response(status=refusal.status, headers=refusal.headers, text=refusal.text)
    except Exception as failure:
        if isinstance(failure, ConnectionError) and request.transport is None:
            return web.Response(status=_CALLER_GONE)
        log.exception("request failed", route=_route(request))
        return web.Response(status=500, text="internal error\n")


def _reason(error: OSError | UnicodeError) -> str:
    """Explain why an address is invalid; asyncio's own message would repeat the address."""
    if isinstance(error, UnicodeError):
        return "invalid host name"
    return str(error.strerror) if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)


def _route(request: web.Request) -> str:
    """Give the route as it was declared: this bounds the label whatever path a client requests."""
    resource = request.match_info.route.resource
    return resource.canonical if resource else "unmatched"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
