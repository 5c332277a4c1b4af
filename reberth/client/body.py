"""Read the body of an answer in large pieces, to be woken once for many events.

The API server writes each event of a watch by itself, and a process that is woken for each of ten thousand
pods spends more on waking up than on reading. So once a piece comes soon after another, the system is asked
to wake us when much has come (SO_RCVLOWAT), or a moment later. What comes after a silence is not held back;
and where events are few, asking would cost more than being woken.
"""

import asyncio
import math
import socket
from contextlib import suppress

import aiohttp

_MUCH = 2**16  # bytes: as much as a TLS connection here reads at once
_MOMENT = 0.005  # seconds; nobody notices an event that is this much late
_SOON = 2 * _MOMENT  # what was held back for a moment is followed soon


class ResponseBody:
    """The body of an answer. At its end the connection is as it was: the next answer may be a small one."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        connection = answer.connection  # None where all has come already
        transport = connection.transport if connection else None
        self._content = answer.content
        self._socket: socket.socket | None = transport.get_extra_info("socket") if transport else None
        self._gathers = False
        self._last_came = -math.inf

    async def whole(self) -> bytes:
        pieces = []
        while piece := await self.piece():
            pieces.append(piece)
        return b"".join(pieces)

    async def piece(self) -> bytes:
        """Give what has come; nothing at the end. Cancelling it loses nothing."""
        piece = await self._content.readany()
        if self._socket:
            self._gather(self._socket) if piece else self._end(self._socket)
        return piece

    def _gather(self, way_in: socket.socket) -> None:
        """Have more gather behind this piece, if it came soon after the one before."""
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
    with suppress(OSError):  # the connection is closed, or the system cannot do this
        way_in.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
