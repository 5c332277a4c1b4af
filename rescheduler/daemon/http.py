"""HTTP endpoints of the daemon: the last plan, the moves, and why a pod is or is not moved."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from aiohttp import web

from reberth.cluster.tables import Table
from reberth.memory.backoff import closing_time
from reberth.records import EvictionHistory
from reberth.runtime.worker_thread import run_in_thread
from rescheduler.daemon.loop import CycleResult
from rescheduler.planning.explain import PodExplanation, explain_pod
from rescheduler.planning.output import write_json

_MOST_PAST = 100
_NO_PLAN = "no plan yet: another process leads, or the caches are not synced\n"


class StatusRoutes:
    """Serves /plan, /moves and /why."""

    def __init__(
        self, *, last: Callable[[], CycleResult | None], histories: Callable[[], Table[EvictionHistory]]
    ) -> None:
        self._last = last
        self._histories = histories
        self._one_at_a_time = asyncio.Lock()
        self._writing = asyncio.Lock()
        self._written: tuple[CycleResult | None, bytes] = None, b""

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/plan", self._show_plan),
            web.get("/moves", self._show_moves),
            web.get("/why", self._explain),
        ]

    async def _show_plan(self, _: web.Request) -> web.Response:
        made = self._last()
        if made is None:
            self._written = None, b""
            return web.Response(status=404, text=_NO_PLAN)
        async with self._writing:
            if self._written[0] is not made:  # a large plan takes a second: once, and not in the event loop
                self._written = made, await run_in_thread(lambda: write_json(made.plan).encode())
            return web.Response(body=self._written[1], content_type="application/json", charset="utf-8")

    async def _show_moves(self, _: web.Request) -> web.Response:
        return _json(list_moves(self._histories().rows()))

    async def _explain(self, request: web.Request) -> web.Response:
        namespace, _, name = request.query.get("pod", "").rpartition("/")
        made = self._last()
        if made is None:
            return web.Response(status=404, text=_NO_PLAN)
        place = made.cycle.context.snapshot.pods.named(namespace or "default", name)
        if place is None:
            return web.Response(
                status=404, text="the last plan has no such pod: expected pod=NAMESPACE/NAME\n"
            )
        async with self._one_at_a_time:  # each one takes as long as a plan
            return _json(await run_in_thread(lambda: _explain_pod(made, place)))


def list_moves(histories: Any) -> dict[str, list[dict[str, Any]]]:  # noqa: ANN401 - rows or a list
    """Give all open moves, and the last ones that have ended, newest first."""
    found = list(histories)
    opened = [_place(each, move) for each in found for move in each.status.open or ()]
    ended = [(closing_time(move), move.id, _place(each, move)) for each, move in _list_past(found)]
    last = sorted(ended, key=lambda one: one[:2], reverse=True)[:_MOST_PAST]
    return {"open": opened, "past": [each for _, _, each in last]}


def _list_past(histories: list[EvictionHistory]) -> Iterator[tuple[EvictionHistory, Any]]:
    for each in histories:
        for move in each.status.past or ():
            yield each, move


def _place(history: EvictionHistory, move: msgspec.Struct) -> dict[str, Any]:
    workload = history.spec.workload
    whose = {"namespace": history.metadata.namespace, "workload": f"{workload.kind}/{workload.name}"}
    return {**whose, **msgspec.to_builtins(move)}


def _explain_pod(made: CycleResult, place: int) -> PodExplanation:
    cycle = made.cycle
    snapshot = cycle.context.snapshot
    return explain_pod(place, snapshot, cycle.settings, cycle.memory, model=cycle.model, health=cycle.health)


def _json(body: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(body), content_type="application/json")
