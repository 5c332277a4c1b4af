"""Watches a storm from outside: evictions as the audit log gets them, probes, CPU time and memory."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import aiohttp

from bench.extender.bursting import read_cpu, read_resident
from localcluster.cluster import Cluster
from localcluster.host import processes

_EVICTION = b'"subresource":"eviction"'
_OVER = b'"stage":"ResponseComplete"'
_PROBE_EVERY = 0.05


Usage = Mapping[str, Mapping[str, float]]
"""Figures of each process by its name."""


class EvictionCounter:
    """Follows the audit log as it grows; dry runs count, too: it only tells when a storm begins and ends."""

    def __init__(self, log: Path) -> None:
        self.count = 0
        self.last = time.monotonic()
        self._log = log
        self._read = 0
        self._rest = b""

    def look(self) -> int:
        """Read what was written since the last look, and give the number of evictions until now."""
        if not self._log.exists():
            return 0
        if self._log.stat().st_size < self._read:  # the server has begun a new file
            self._read = 0
        with self._log.open("rb") as file:
            file.seek(self._read)
            *lines, self._rest = (self._rest + file.read()).split(b"\n")
            self._read = file.tell()
        more = sum(_EVICTION in line and _OVER in line for line in lines)
        if more:
            self.count += more
            self.last = time.monotonic()
        return self.count


class Prober:
    """Asks a program for its health again and again: an answer waits while its event loop is busy."""

    def __init__(self, url: str) -> None:
        self.seconds: list[float] = []
        self._url = url

    async def run(self) -> None:
        async with aiohttp.ClientSession() as session:
            while True:
                began = time.monotonic()
                with suppress(aiohttp.ClientError):
                    async with session.get(self._url) as answer:
                        await answer.read()
                    self.seconds.append(time.monotonic() - began)
                await asyncio.sleep(_PROBE_EVERY)


def read_usage(cluster: Cluster) -> Usage:
    """Give CPU seconds, memory and highest memory of each process of the cluster."""
    return {
        each.name: {
            "cpu": read_cpu(each.pid),
            "memory": read_resident(each.pid),
            "highest": read_highest(each.pid),
        }
        for each in processes.find(cluster.folder)
    }


def subtract(after: Usage, before: Usage) -> Usage:
    """Give the CPU seconds in between, and memory as it is afterwards."""
    return {
        name: {**usage, "cpu": usage["cpu"] - before.get(name, {}).get("cpu", 0.0)}
        for name, usage in after.items()
    }


def read_highest(pid: int) -> int:
    """Return the most bytes of memory that a process ever had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))
