"""GET and POST /explain: explains to people why a pod is drawn to a node or kept away from it."""

import asyncio
from collections.abc import Callable

from aiohttp import web

from extender.answers.explain import describe, explain_nodes, metadata_of
from extender.answers.memory import ClusterMemory
from extender.answers.settings import AnswerSettings
from extender.answers.wire import UnreadableCall, read_pod
from extender.server.request_body import BodyLimits, BodyRefused, receive
from extender.server.responses import bad_request, json_response
from reberth.cluster.kinds import POD
from reberth.records import ObjectMeta


class ExplainRoutes:
    """Explains a cached pod by its name, or any posted pod."""

    def __init__(
        self,
        memory: ClusterMemory,
        *,
        settings: Callable[[], AnswerSettings],
        clock: Callable[[], float],
        limits: BodyLimits,
    ) -> None:
        self._memory = memory
        self._clock = clock
        self._settings = settings
        self._limits = limits

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/explain", self._explain_cached), web.post("/explain", self._explain_posted)]

    async def _explain_cached(self, request: web.Request) -> web.Response:
        namespace, _, name = request.query.get("pod", "").rpartition("/")
        pod = self._memory.of(POD).named(namespace or "default", name)
        if pod is None:
            return web.Response(status=404, text="pod not found in the cache; use pod=NAMESPACE/NAME\n")
        return await self._explain(request, metadata_of(pod))

    async def _explain_posted(self, request: web.Request) -> web.Response:
        try:
            return await self._explain(request, read_pod(await receive(request, self._limits)))
        except BodyRefused as refused:
            return web.Response(status=refused.status, text=f"{refused}\n")
        except UnreadableCall as unreadable:
            return bad_request(str(unreadable))

    async def _explain(self, request: web.Request, pod: ObjectMeta) -> web.Response:
        advice = self._memory.advise(pod, now=self._clock(), settings=self._settings().advice)
        nodes = request.query.getall("node", None) or sorted(self._memory.index.rows)
        explained = []
        for some in explain_nodes(self._memory.index, advice, nodes):
            explained += some
            await asyncio.sleep(0)  # calls of the scheduler take precedence: it waits with every pod
        return json_response({**describe(pod, advice), "nodes": explained})
