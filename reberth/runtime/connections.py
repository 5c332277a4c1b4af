"""The connections of a server: how many it holds, and which one it drops for another.

Whoever reaches the port can open connections, and prove nothing by it. So one costs next to nothing until its
client has said something: an accepted socket waits for its first byte before buffers and TLS are made for it.
From then on there are limits of time for the handshake and for the head of a request, and of number: clients
that have shown a certificate have an allowance of their own, as have handshakes; all others share one. When
an allowance is used up, the address that holds the most of it loses the connection that has been silent for
the longest. So a host that opens thousands of them mostly competes with itself.
"""

import asyncio
import errno
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from reberth.runtime import metrics
from reberth.runtime.logs import Log, SparseLog

UNAUTHENTICATED = "unauthenticated"
HANDSHAKE = "handshake"
AUTHENTICATED = "authenticated"

# Connections that wait to be accepted: the kernel makes a client wait a second when there is no room.
_BACKLOG = 1024
# So many are accepted before anything else has a turn: each costs up to 0.1 ms.
_AT_ONCE = 16
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_PAUSE_SECONDS = 1.0
# Of the unauthenticated connections, this part may be in a handshake: it takes milliseconds, and 170 KB.
_HANDSHAKES = 4
# A network that belongs to one host or customer: nothing is gained by another address of it.
_IPV6_NETWORK_BYTES = 8

log = Log(__name__)
_sparse = SparseLog(log)


class ConnectionLimits(NamedTuple):
    """How long a client may take, and how many connections there may be."""

    handshake_seconds: float
    head_seconds: float
    unauthenticated: int
    authenticated: int


@dataclass(eq=False, slots=True)
class Line:
    """One connection, from its acceptance to its end."""

    address: str
    last_heard: float
    drop: Callable[[], object] = field(default=lambda: None)
    """Ends the connection at once, whatever state it is in."""
    kind: str = UNAUTHENTICATED


class Connections:
    """All connections of a server, each in the allowance of its kind."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._allowances = {
            UNAUTHENTICATED: _Allowance(limits.unauthenticated),
            HANDSHAKE: _Allowance(max(1, limits.unauthenticated // _HANDSHAKES)),
            AUTHENTICATED: _Allowance(limits.authenticated),
        }

    def enter(self, line: Line) -> None:
        """Count a connection, and drop another one if there are too many."""
        metrics.HTTP_CONNECTIONS.labels(line.kind).inc()
        surplus = self._allowances[line.kind].enter(line)
        if surplus:
            self.drop(surplus, "crowded")

    def leave(self, line: Line) -> None:
        """Forget a connection that has ended; nothing happens if it is forgotten already."""
        if self._allowances[line.kind].leave(line):
            metrics.HTTP_CONNECTIONS.labels(line.kind).dec()

    def change(self, line: Line, kind: str) -> None:
        """Move a connection to the allowance of another kind."""
        if line.kind != kind:
            self.leave(line)
            line.kind = kind
            self.enter(line)

    def drop(self, line: Line, reason: str) -> None:
        metrics.HTTP_CONNECTIONS_DROPPED.labels(reason).inc()
        _sparse.warning("connection dropped", reason=reason, address=line.address, kind=line.kind)
        self.leave(line)
        line.drop()


class _Allowance:
    def __init__(self, most: int) -> None:
        self._most = most
        self._lines: set[Line] = set()
        self._by_address: Counter[str] = Counter()

    def enter(self, line: Line) -> Line | None:
        """Add a connection; give the one that has to go for it."""
        self._lines.add(line)
        self._by_address[line.address] += 1
        return self._find_surplus() if len(self._lines) > self._most else None

    def leave(self, line: Line) -> bool:
        if line not in self._lines:
            return False
        self._lines.remove(line)
        self._by_address[line.address] -= 1
        if not self._by_address[line.address]:
            del self._by_address[line.address]
        return True

    def _find_surplus(self) -> Line:
        held = self._by_address
        most = max(held.values())
        return min(
            (line for line in self._lines if held[line.address] == most), key=lambda line: line.last_heard
        )


class Listener:
    """Accepts connections, and makes the protocol of each one that has begun to speak."""

    def __init__(
        self,
        make: Callable[[Line], asyncio.Protocol],
        connections: Connections,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._make = make
        self._connections = connections
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._sockets: list[socket.socket] = []
        self._silent: dict[Line, Callable[[], None]] = {}
        self._greeted: dict[Line, asyncio.Task[None]] = {}

    async def open(self, host: str, port: int) -> int:
        """Listen; give the port. Raises OSError, or UnicodeError for a name that is none."""
        # asyncio finds the addresses of the host, and gets its sockets ready. It does not serve them: it
        # would make TLS for a connection before anybody could count it.
        bound = await self._loop.create_server(asyncio.Protocol, host, port, start_serving=False)
        try:
            self._sockets = [each.dup() for each in bound.sockets]
        finally:
            bound.close()
        for each in self._sockets:
            each.listen(_BACKLOG)
        for each in self._sockets:
            self._loop.add_reader(each, self._accept, each)
        return int(self._sockets[0].getsockname()[1])

    def close(self) -> None:
        """Accept no new connection; those that were accepted go on."""
        for each in self._sockets:
            self._loop.remove_reader(each)
            each.close()
        self._sockets.clear()

    async def abandon(self) -> None:
        """Drop the connections that have no protocol yet."""
        self.close()
        for forget in tuple(self._silent.values()):
            forget()
        for line in tuple(self._greeted):
            line.drop()
        await asyncio.gather(*self._greeted.values())

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                accepted, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    raise
                self._pause(listening, error)
                return
            accepted.setblocking(False)
            self._await_first_byte(accepted, Line(_network_of(accepted, address[0]), self._loop.time()))

    def _pause(self, listening: socket.socket, error: OSError) -> None:
        """Accept nothing for a moment: the system has nothing left to give, and would be asked on and on."""
        _sparse.warning("cannot accept connections", reason=str(error.strerror))
        self._loop.remove_reader(listening)
        self._loop.call_later(_PAUSE_SECONDS, self._resume, listening)

    def _resume(self, listening: socket.socket) -> None:
        if listening in self._sockets:
            self._loop.add_reader(listening, self._accept, listening)

    def _await_first_byte(self, accepted: socket.socket, line: Line) -> None:
        patience = self._loop.call_later(
            self._connections.limits.head_seconds, self._connections.drop, line, "silent"
        )

        def forget() -> None:
            patience.cancel()
            self._loop.remove_reader(accepted)
            self._silent.pop(line, None)

        def end() -> None:
            forget()
            accepted.close()

        def begin() -> None:
            if _has_ended(accepted):  # somebody looked whether the port is open
                self._connections.leave(line)
                end()
                return
            forget()
            line.drop = partial(_shut, accepted)
            if self._tls:
                self._connections.change(line, HANDSHAKE)
            self._greeted[line] = greeting = self._loop.create_task(self._greet(accepted, line))
            greeting.add_done_callback(lambda _: self._greeted.pop(line))

        line.drop = self._silent[line] = end
        self._loop.add_reader(accepted, begin)
        self._connections.enter(line)

    async def _greet(self, accepted: socket.socket, line: Line) -> None:
        """Make the connection's protocol, after the handshake if there is one."""
        limits, tls = self._connections.limits, self._tls
        try:
            await self._loop.connect_accepted_socket(
                partial(self._make, line),
                accepted,
                ssl=tls,
                ssl_handshake_timeout=limits.handshake_seconds if tls else None,
                ssl_shutdown_timeout=limits.handshake_seconds if tls else None,
            )
        except OSError as error:
            # The error holds a frame that holds the error: until the garbage collector comes, which hears
            # nothing of the size of TLS buffers, ten thousand failed handshakes would take 350 MB.
            error.__traceback__ = None
            self._connections.leave(line)
            if tls:
                reason = "refused" if isinstance(error, ssl.SSLError) else "incomplete"
                metrics.HTTP_HANDSHAKES_FAILED.labels(reason).inc()


def _network_of(accepted: socket.socket, host: str) -> str:
    if accepted.family != socket.AF_INET6:
        return host
    return socket.inet_pton(socket.AF_INET6, host.partition("%")[0])[:_IPV6_NETWORK_BYTES].hex()


def _has_ended(accepted: socket.socket) -> bool:
    try:
        return not accepted.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _shut(accepted: socket.socket) -> None:
    """End a connection that belongs to asyncio by now: it hears of the end, and cleans up."""
    with suppress(OSError):
        accepted.shutdown(socket.SHUT_RDWR)
