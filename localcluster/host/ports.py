"""A block of loopback ports for each cluster, below the kernel's range for outgoing connections."""

import contextlib
import os
import socket
from pathlib import Path

from localcluster.build import download_cache
from localcluster.errors import LocalClusterError

HOST = "127.0.0.1"
BLOCK = 16
_FIRST, _LAST = 18000, 32000


class NoPorts(LocalClusterError):
    """Every block of ports is taken."""


def claim(folder: Path) -> int:
    """Claim a block of ports until its cluster's folder is deleted or it is released; the first port."""
    claims = download_cache.cache_folder() / "ports"
    with download_cache.locked(claims / ".lock"):
        for first in range(_FIRST, _LAST, BLOCK):
            claimed = claims / str(first)
            if not _is_held(claimed) and all(map(_is_free, range(first, first + BLOCK))):
                claimed.write_text(str(folder))
                return first
    raise NoPorts(f"no block of {BLOCK} free ports between {_FIRST} and {_LAST} on {HOST}")


def release(first: int, folder: Path) -> None:
    claimed = download_cache.cache_folder() / "ports" / str(first)
    with contextlib.suppress(FileNotFoundError):
        if claimed.read_text() == str(folder):
            claimed.unlink()


def _is_held(claimed: Path) -> bool:
    try:
        return os.path.exists(claimed.read_text())  # noqa: PTH110 - an empty claim is no path
    except FileNotFoundError:
        return False


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
