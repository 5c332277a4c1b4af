"""What a process says of itself: its memory, and how long its event loop stood still."""

import asyncio
import time
from pathlib import Path

_BEAT = 0.005


def resident() -> int:
    """Bytes of memory in use."""
    return _status("VmRSS")


def peak() -> int:
    """The most that `resident` ever was."""
    return _status("VmHWM")


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{field}:"))


class Heartbeat:
    """Sleeps again and again; a late wake-up shows how long the event loop was blocked.

    `busiest` is the CPU used between two beats: it does not count how long others had the core.
    """

    def __init__(self) -> None:
        self.longest = 0.0
        self.busiest = 0.0

    async def run(self) -> None:
        while True:
            due, used = time.monotonic() + _BEAT, time.process_time()
            await asyncio.sleep(_BEAT)
            self.longest = max(self.longest, time.monotonic() - due)
            self.busiest = max(self.busiest, time.process_time() - used)
