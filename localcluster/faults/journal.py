"""The journal of the proxy's requests, and a way to wait for changes of it."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from localcluster.faults.request_info import RequestInfo
from localcluster.faults.rules import ANY, Match


@dataclass(eq=False)
class Entry:
    request: RequestInfo
    at: float
    """When it came, by the event loop's clock."""
    status: int | None = None
    """What the client was answered; None as long as it was not."""
    upstream_status: int | None = None
    """What the API server answered; None if it was not asked or did not answer."""
    error: str | None = None
    """Why the client's connection was broken, if no rule asked for it."""


class Journal:
    """The newest requests, and how many there were in all."""

    def __init__(self, limit: int) -> None:
        self.seen = 0
        self.entries: deque[Entry] = deque(maxlen=limit)

    def note(self, request: RequestInfo, at: float) -> Entry:
        self.seen += 1
        entry = Entry(request, at)
        self.entries.append(entry)
        return entry

    def select(self, match: Match = ANY, *, since: float = 0.0) -> list[Entry]:
        """Take out the kept ones that match and came at `since` or later, the oldest first."""
        return [entry for entry in self.entries if entry.at >= since and match.matches(entry.request)]


class Changes:
    """Wakes tasks that wait for a condition."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def announce(self) -> None:
        woken, self._next = self._next, asyncio.Event()
        woken.set()

    async def until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            await self._next.wait()
