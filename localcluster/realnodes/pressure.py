"""Take memory of a real node: python -m localcluster.realnodes.pressure CGROUP BYTES."""

import signal
import sys

from localcluster.realnodes import cgroups

_PAGE = 4096


def take_memory(size: int) -> bytearray:
    """Memory that the kernel really has to provide: each page is written."""
    taken = bytearray(size)
    taken[::_PAGE] = b"\1" * len(taken[::_PAGE])
    return taken


if __name__ == "__main__":
    cgroups.join(sys.argv[1])
    kept = take_memory(int(sys.argv[2]))
    signal.pause()
