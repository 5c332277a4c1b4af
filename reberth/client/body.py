"""Reads the body of a response in large pieces, to wake up once for many events.

The API server writes each event of a watch separately, and a process that wakes up for each of ten thousand
pods spends more time on waking up than on reading. So once a piece follows soon after another, the kernel is
asked to wake us when much data has arrived (SO_RCVLOWAT), or a moment later. Data after a silence is not held
back; and where events are rare, asking would cost more than waking up.
"""

import asyncio
import math
import socket
from contextlib import suppress

import aiohttp

_MUCH = 2**16  # bytes: as much as a TLS connection reads at once
_MOMENT = 0.005  # seconds: a delay too short to matter
_SOON = 2 * _MOMENT  # data that was held back for a moment is soon followed by more


class LargeBody(Exception):
    """The body is larger than the caller reads."""


class ResponseBody:
    """The body of a response. At its end the socket option is restored: the next response may be small."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        connection = answer.connection  # None if everything has already arrived
        transport = connection.transport if connection else None
        self._content = answer.content
        self._socket: socket.socket | None = transport.get_extra_info("socket") if transport else None
        self._gathers = False
        self._last_came = -math.inf

    async def whole(self, most: int) -> bytes:
        """Give all of it. Raises LargeBody if that is more than `most` bytes."""
        pieces, size = [], 0
        while piece := await self.piece():
            size += len(piece)
            if size > most:
                raise LargeBody(f"a body of more than {most} bytes")
            pieces.append(piece)
        return b"".join(pieces)

    async def piece(self) -> bytes:
        """Give the data that has arrived; nothing at the end. Cancelling it loses nothing."""
        piece = await self._content.readany()
        if self._socket:
            self._gather(self._socket) if piece else self._end(self._socket)
        return piece

    def _gather(self, way_in: socket.socket) -> None:
        """Let more data gather behind this piece, if it came soon after the one before."""
        loop = asyncio.get_running_loop()
        now, before = loop.time(), self._last_came
        self._last_came = now
        if now < before + _SOON and not self._gathers:
            self._gathers = True
            _wake_at(way_in, _MUCH)
            loop.call_later(_MOMENT, self._end, way_in)

    def _end(self, way_in: socket.socket) -> None:
        if self._gathers:
            self._gathers = False
            _wake_at(way_in, 1)


def _wake_at(way_in: socket.socket, size: int) -> None:
    with suppress(OSError):  # the connection is closed, or the operating system does not support this
        way_in.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
