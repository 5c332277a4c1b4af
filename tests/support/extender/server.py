"""Serve the extender's routes on a real socket, with a memory that a test fills."""

import io
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from extender.answers.call_tracker import CallTracker
from extender.answers.freshness import MirrorState
from extender.answers.settings import AnswerSettings
from extender.answers.verbs import PARTS
from extender.server.explain import ExplainRoutes
from extender.server.handler import CallHandler
from extender.server.request_body import BodyLimits
from extender.server.seen import ChangeSignal, SeenRoutes
from reberth.records import ObjectMeta
from reberth.runtime.http_server import Server, ServerSettings
from reberth.values.refusal import Refused
from tests.support.extender.calls import Known
from tests.support.memory.advice import LOAD, NODES, node
from tests.support.metrics import read_metric

TRUE = MirrorState(is_complete=True, trouble=None, age=1.0)


class Served:
    """What a test may turn while it asks."""

    def __init__(self, limits: BodyLimits) -> None:
        self.changes = ChangeSignal()
        self.known = Known(on_change=self.changes.fire).put(*map(node, NODES))
        self.call_tracker = CallTracker(PARTS)
        self.settings = AnswerSettings(scores=LOAD)
        self.mirror_states = [TRUE]
        self.announced: list[tuple[ObjectMeta, Refused]] = []
        self.port = 0
        self.session: aiohttp.ClientSession | None = None
        self._limits = limits

    def server(self) -> Server:
        handler = CallHandler(
            self.known.memory,
            self.call_tracker,
            settings=lambda: self.settings,
            mirror_states=lambda _: self.mirror_states,
            announce=lambda pod, refused: self.announced.append((pod, refused)),
            clock=time.time,
            limits=self._limits,
        )
        seen = SeenRoutes(self.known.memory, self.call_tracker, self.changes)
        explain = ExplainRoutes(
            self.known.memory, settings=lambda: self.settings, clock=time.time, limits=self._limits
        )
        routes = [*handler.routes(), *seen.routes(), *explain.routes()]
        return Server(ServerSettings(port=0), calls=handler.calls(), routes=routes)

    async def ask(self, path: str, body: Any = None, *, method: str = "POST", **sent: Any) -> tuple[int, str]:
        assert self.session is not None
        content = io.BytesIO(body) if isinstance(body, bytes) else body
        async with self.session.request(method, path, data=content, **sent) as answer:
            return answer.status, await answer.text()


@asynccontextmanager
async def served(*, most_bytes: int = 2**20, seconds: float = 5.0) -> AsyncIterator[Served]:
    asked = Served(BodyLimits(most_bytes, seconds))
    async with asked.server() as server:
        asked.port = server.port
        async with aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as asked.session:
            yield asked


def counted(name: str, **labels: str) -> float:
    return read_metric(f"reberth_extender_{name}", **labels)
