"""GET /seen: whether this extender has cached an object at a version or a newer one.

The rescheduler asks before it evicts: an extender that has not seen the move and its note would let the
scheduler put the replacement back onto the node that the pod was moved off. So every eviction waits for this
answer, and nothing slow belongs here; /explain has a module of its own.
"""

import asyncio
import re
from typing import Any

from aiohttp import web

from extender.answers.call_tracker import CallTracker
from extender.answers.memory import ClusterMemory
from extender.server.responses import bad_request, json_response
from reberth.cluster.kinds import HISTORY, NODE, Kind
from reberth.values.duration import Duration
from reberth.values.timestamp import write_micro_time

LONGEST_WAIT = 10.0  # seconds
_VERSION = re.compile("[0-9]{1,20}")
_KINDS: dict[str, Kind[Any, Any]] = {"nodes": NODE, "evictionhistories": HISTORY}


class ChangeSignal:
    """Wakes all waiters at the next change of the cache."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def fire(self) -> None:
        # A new event for the next waiters: clearing the old one could lose waiters that have not run yet.
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self) -> None:
        await self._event.wait()


class SeenRoutes:
    """Answers /seen from the cache, and waits a while for a version that has not come yet."""

    def __init__(self, memory: ClusterMemory, call_tracker: CallTracker, changes: ChangeSignal) -> None:
        self._memory = memory
        self._call_tracker = call_tracker
        self._changes = changes

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/seen", self._answer)]

    async def _answer(self, request: web.Request) -> web.Response:
        """200 as soon as the object is cached at that version or a newer one; 504 if it does not come."""
        query = request.query
        kind = _KINDS.get(query.get("resource", ""))
        version, wait = query.get("resourceVersion", ""), Duration.from_text(query.get("wait", "2s"))
        if kind is None:
            return bad_request("resource must be nodes or evictionhistories")
        if not _VERSION.fullmatch(version):
            return bad_request("resourceVersion must be a whole number")
        if wait is None or wait > LONGEST_WAIT:
            return bad_request(f"wait must be a duration of at most {LONGEST_WAIT:g}s")
        seen = await self._wait_for(
            kind, query.get("namespace", ""), query.get("name", ""), int(version), wait
        )
        asked = max(self._call_tracker.last_asked.values())
        body = {"seen": seen, "lastAskedAt": write_micro_time(asked) if asked else None}
        return json_response(body, status=200 if seen >= int(version) > 0 else 504)

    async def _wait_for(
        self, kind: Kind[Any, Any], namespace: str, name: str, version: int, wait: float
    ) -> int:
        """Give the cached version, after this one has come or the wait is over."""
        try:
            async with asyncio.timeout(wait):
                while self._memory.version_of(kind, namespace, name) < version:
                    await self._changes.wait()
        except TimeoutError:
            pass
        return self._memory.version_of(kind, namespace, name)
