"""Ending a connection as networks do it: by force, yet not before what was written is on its way."""

import asyncio
import fcntl
import socket
import struct

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_SIOCOUTQNSD = 0x894B  # of linux/sockios.h: how many bytes of a socket's queue are not sent yet
_NAP = 0.001
_PATIENCE = 5.0


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
