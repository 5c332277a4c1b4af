"""What people and the rescheduler ask: whether this has been seen, and why it is so."""

import asyncio
import re
import time
from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import web

from extender.answers.call_tracker import CallTracker
from extender.answers.explain import describe, explain_nodes, metadata_of
from extender.answers.memory import ClusterMemory
from extender.answers.settings import AnswerSettings
from extender.answers.wire import UnreadableCall, read_pod
from extender.server.request_body import BodyLimits, BodyRefused, receive
from reberth.cluster.kinds import HISTORY, NODE, POD, Kind
from reberth.records import ObjectMeta
from reberth.values.duration import Duration
from reberth.values.timestamp import write_micro_time

LONGEST_WAIT = 10.0
_VERSION = re.compile("[0-9]{1,20}")
_SEEN: dict[str, Kind[Any, Any]] = {"nodes": NODE, "evictionhistories": HISTORY}


class ChangeSignal:
    """Wakes all who wait for the next change."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def ring(self) -> None:
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self) -> None:
        await self._event.wait()


class Window:
    """Lets others look at what is known here."""

    def __init__(
        self,
        memory: ClusterMemory,
        call_tracker: CallTracker,
        bell: ChangeSignal,
        *,
        settings: Callable[[], AnswerSettings],
        limits: BodyLimits,
    ) -> None:
        self._memory = memory
        self._call_tracker = call_tracker
        self._bell = bell
        self._settings = settings
        self._limits = limits

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/seen", self._tell_seen),
            web.get("/explain", self._explain_mirrored),
            web.post("/explain", self._explain_given),
        ]

    async def _tell_seen(self, request: web.Request) -> web.Response:
        """200 as soon as the object is known at that version or a newer one, 504 if that does not come."""
        query = request.query
        kind = _SEEN.get(query.get("resource", ""))
        version, wait = query.get("resourceVersion", ""), Duration.from_text(query.get("wait", "2s"))
        if kind is None:
            return _bad("resource must be nodes or evictionhistories")
        if not _VERSION.fullmatch(version):
            return _bad("resourceVersion must be a whole number")
        if wait is None or wait > LONGEST_WAIT:
            return _bad(f"wait must be a duration of at most {LONGEST_WAIT:g}s")
        seen = await self._see(kind, query.get("namespace", ""), query.get("name", ""), int(version), wait)
        asked = max(self._call_tracker.last_asked.values())
        body = {"seen": seen, "lastAskedAt": write_micro_time(asked) if asked else None}
        return _json(body, status=200 if seen >= int(version) > 0 else 504)

    async def _see(self, kind: Kind[Any, Any], namespace: str, name: str, version: int, wait: float) -> int:
        """Give the version that is known, in the end."""
        try:
            async with asyncio.timeout(wait):
                while self._memory.version_of(kind, namespace, name) < version:
                    await self._bell.wait()
        except TimeoutError:
            pass
        return self._memory.version_of(kind, namespace, name)

    async def _explain_mirrored(self, request: web.Request) -> web.Response:
        namespace, _, name = request.query.get("pod", "").rpartition("/")
        pod = self._memory.of(POD).named(namespace or "default", name)
        if pod is None:
            return web.Response(status=404, text="no such pod is mirrored; ask with pod=NAMESPACE/NAME\n")
        return await self._explain(request, metadata_of(pod))

    async def _explain_given(self, request: web.Request) -> web.Response:
        try:
            return await self._explain(request, read_pod(await receive(request, self._limits)))
        except BodyRefused as refused:
            return web.Response(status=refused.status, text=f"{refused}\n")
        except UnreadableCall as unreadable:
            return _bad(str(unreadable))

    async def _explain(self, request: web.Request, pod: ObjectMeta) -> web.Response:
        advice = self._memory.advise(pod, now=time.time(), settings=self._settings().advice)
        nodes = request.query.getall("node", None) or sorted(self._memory.index.rows)
        verdicts = []
        for some in explain_nodes(self._memory.index, advice, nodes):
            verdicts += some
            await asyncio.sleep(0)  # the scheduler goes first
        return _json({**describe(pod, advice), "nodes": verdicts})


def _bad(text: str) -> web.Response:
    return web.Response(status=400, text=f"{text}\n")


def _json(body: object, *, status: int = 200) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(body), content_type="application/json")
