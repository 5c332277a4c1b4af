"""One port, two paths: plain calls are answered at once, everything else is left to aiohttp.

kube-scheduler waits for its extenders with every pod, so a call must be cheap. All of its calls look alike: a
POST with a length, over a connection that it keeps open. Such a call is read and answered here, with one
write, in the step of the event loop in which its last byte arrived. The first request of any other form, and
whatever follows on its connection, is passed on to aiohttp.

A head must be complete soon after its first byte, and the first one of an unauthenticated client soon after
the connection was made: aiohttp itself would wait for it for ever.
"""

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import NamedTuple, cast

from aiohttp import web

from reberth.runtime import logs, metrics
from reberth.runtime.certificates import record_shown
from reberth.runtime.connections import AUTHENTICATED, UNAUTHENTICATED, Connections, Line

log = logs.Log(__name__)

# Headers that do not change how a call is read; a call with any other header is not plain.
_HARMLESS = rb"(?:(?:Host|User-Agent|Content-Type|Accept|Accept-Encoding): [\x20-\x7e]*\r\n)*"
_PLAIN = re.compile(
    rb"POST (/[!-~]*) HTTP/1\.1\r\n%bContent-Length: ([0-9]{1,10})\r\n%b\r\n" % (_HARMLESS, _HARMLESS)
)
_LINES = {status: b"HTTP/1.1 %d %b\r\n" % (status, status.phrase.encode()) for status in HTTPStatus}


class Reply(NamedTuple):
    """The response to a call."""

    status: HTTPStatus
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    is_last: bool = False
    """The connection is closed after it."""
    then: Callable[[], None] | None = None
    """Called after the response was written, and after the calls that arrived in the meantime."""


class PlainCall(NamedTuple):
    """A POST to a fixed path that is answered without waiting."""

    answer: Callable[[bytes, float], Reply]
    """Called with the body, and the `time.perf_counter` at which the head arrived."""
    give_up: Callable[[float], Reply]
    """Called if the body does not arrive in time; with the time at which the head arrived."""
    most_bytes: int
    seconds: float
    """How long to wait for the body."""


class FastPath:
    """The connections of a server: creates their protocols, and closes them when the server stops."""

    def __init__(
        self,
        calls: Mapping[str, PlainCall],
        others: Callable[[], asyncio.Protocol],
        *,
        connections: Connections,
        keep_alive: float,
        on_pending: Callable[[int], None],
    ) -> None:
        self.calls = {path.encode(): (path, call) for path, call in calls.items()}
        self.others = others
        self.connections = connections
        self.keep_alive = keep_alive
        self.on_pending = on_pending
        """Called with 1 when a call starts to wait for its body, and with -1 when it no longer waits."""
        self.is_stopping = False
        self._lines: set[PlainConnection] = set()
        self._all_gone = asyncio.Event()

    def __call__(self, line: Line) -> asyncio.Protocol:
        return PlainConnection(self, line)

    def enter(self, one: "PlainConnection") -> None:
        self._lines.add(one)

    def leave(self, one: "PlainConnection") -> None:
        self._lines.discard(one)
        if not self._lines:
            self._all_gone.set()

    async def close(self, within: float) -> None:
        """Close all connections as soon as their responses are written."""
        if not self._lines:
            return
        self._all_gone.clear()
        for line in tuple(self._lines):
            line.transport.close()
        try:
            async with asyncio.timeout(within):
                await self._all_gone.wait()
        except TimeoutError:
            log.warning("stopped before clients read their answers", connections=len(self._lines))
        finally:
            for line in tuple(self._lines):
                line.transport.abort()


class _Pending(NamedTuple):
    """A call whose head has arrived."""

    path: str
    call: PlainCall
    begin: int
    """The start and the end of the body in the received bytes."""
    end: int
    since: float


class PlainConnection(asyncio.Protocol):
    """A connection; from its first call that is not plain on, aiohttp answers."""

    transport: asyncio.Transport

    def __init__(self, board: FastPath, line: Line) -> None:
        self._board = board
        self._line = line
        self._loop = asyncio.get_running_loop()
        self._chunks: list[bytes] = []
        self._size = 0
        self._pending: _Pending | None = None
        self._patience: asyncio.TimerHandle | None = None
        self._head_due: asyncio.TimerHandle | None = None
        self._other: asyncio.Protocol | None = None
        self._in_flight = 0  # requests that aiohttp is answering

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._line.drop = self.transport.abort
        self._idleness = self._loop.call_later(self._board.keep_alive, self._close_if_idle)
        self._board.enter(self)
        shown = transport.get_extra_info("peercert")
        self._board.connections.change(self._line, AUTHENTICATED if shown else UNAUTHENTICATED)
        if shown:
            record_shown(shown)
        else:
            self._await_head()

    def connection_lost(self, error: Exception | None) -> None:
        self._board.connections.leave(self._line)
        self._leave()
        self._stop_awaiting_head()
        if self._other:
            self._other.connection_lost(error)

    def eof_received(self) -> bool | None:
        return self._other.eof_received() if self._other else None

    def pause_writing(self) -> None:
        """Stop reading from a client that does not read its responses: they would fill our memory."""
        if self._other:
            self._other.pause_writing()
        else:
            self.transport.pause_reading()

    def resume_writing(self) -> None:
        if self._other:
            self._other.resume_writing()
        else:
            self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        self._line.last_heard = self._loop.time()
        if self._other:
            self._await_head()
            self._other.data_received(data)
            return
        self._chunks.append(data)
        self._size += len(data)
        pending = self._pending or self._begin(data)
        if pending is None or self._size > pending.end:
            self._hand_over()
            return
        self._stop_awaiting_head()
        if self._size == pending.end:
            self._answer(pending)
        elif self._pending is None:
            self._wait(pending)

    def begin_request(self) -> None:
        """Take note that aiohttp has read the head of a request."""
        self._in_flight += 1
        self._stop_awaiting_head()

    def end_request(self) -> None:
        self._in_flight -= 1
        self._line.last_heard = self._loop.time()

    def _await_head(self) -> None:
        if self._head_due is None and not self._in_flight:
            connections = self._board.connections
            self._head_due = self._loop.call_later(
                connections.limits.head_seconds, connections.drop, self._line, "head"
            )

    def _stop_awaiting_head(self) -> None:
        if self._head_due:
            self._head_due.cancel()
            self._head_due = None

    def _begin(self, data: bytes) -> _Pending | None:
        head = _PLAIN.match(data)
        path, call = self._board.calls.get(head[1], ("", None)) if head else ("", None)
        if head is None or call is None or int(head[2]) > call.most_bytes:
            return None
        return _Pending(path, call, head.end(), head.end() + int(head[2]), time.perf_counter())

    def _wait(self, pending: _Pending) -> None:
        self._pending = pending
        self._patience = self._loop.call_later(pending.call.seconds, self._give_up, pending)
        self._board.on_pending(1)

    def _answer(self, pending: _Pending) -> None:
        body = b"".join(self._forget())[pending.begin :]
        try:
            reply = pending.call.answer(body, pending.since)
        except Exception:
            log.exception("request failed", route=pending.path)
            reply = Reply(HTTPStatus.INTERNAL_SERVER_ERROR, b"internal error\n")
        self._send(pending, reply)

    def _give_up(self, pending: _Pending) -> None:
        self._forget()
        self._send(pending, pending.call.give_up(pending.since))

    def _send(self, pending: _Pending, reply: Reply) -> None:
        is_last = reply.is_last or self._board.is_stopping
        head = b"%bContent-Type: %b\r\nContent-Length: %d\r\n%b\r\n" % (
            _LINES[reply.status],
            reply.content_type.encode(),
            len(reply.body),
            b"Connection: close\r\n" if is_last else b"",
        )
        self.transport.write(head + reply.body)
        if is_last:
            self.transport.close()
        self._loop.call_soon(_finish, pending, reply, time.perf_counter() - pending.since)

    def _hand_over(self) -> None:
        """Leave the connection to aiohttp, with the received bytes of a call that is not plain."""
        self._other = self._board.others()
        chunks = self._leave()
        self._await_head()
        self._other.connection_made(self.transport)
        for chunk in chunks:
            self._other.data_received(chunk)

    def _leave(self) -> list[bytes]:
        self._board.leave(self)
        self._idleness.cancel()
        return self._forget()

    def _forget(self) -> list[bytes]:
        """Prepare for the next call; give the received bytes of the last one."""
        if self._pending:
            self._board.on_pending(-1)
        if self._patience:
            self._patience.cancel()
        chunks, self._chunks = self._chunks, []
        self._size, self._pending, self._patience = 0, None, None
        return chunks

    def _close_if_idle(self) -> None:
        rest = self._line.last_heard + self._board.keep_alive - self._loop.time()
        if rest > 0:
            self._idleness = self._loop.call_later(rest, self._close_if_idle)
        else:
            self.transport.close()


def connection_of(request: web.Request) -> PlainConnection | None:
    """Give the connection of a request, as long as it is open."""
    held = request.transport.get_protocol() if request.transport else None
    return held if isinstance(held, PlainConnection) else None


def _finish(pending: _Pending, reply: Reply, seconds: float) -> None:
    metrics.HTTP_REQUESTS.by_labels[pending.path, str(int(reply.status))].value += 1
    metrics.HTTP_REQUEST_DURATION.by_labels[pending.path,].observe(seconds)
    if reply.then:
        try:
            reply.then()
        except Exception:
            log.exception("failed after an answer", route=pending.path)
