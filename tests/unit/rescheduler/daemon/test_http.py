"""The HTTP endpoints of the daemon."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from reberth.cluster.cache import Cache
from reberth.cluster.kinds import HISTORY
from reberth.cluster.object_files import load_objects
from reberth.records import EvictionHistory
from rescheduler.daemon.http import StatusRoutes, list_moves
from rescheduler.daemon.loop import CycleResult
from rescheduler.planning.cycle import begin_cycle
from rescheduler.planning.output import write_json
from rescheduler.planning.planner import write_plan
from tests.support.builders import node
from tests.support.rescheduler.guardrails import Object, history, open_move, past_move, replica
from tests.support.rescheduler.plans import MODEL, NOW, VERSION, policy

HISTORIES = [
    history("web", open=[open_move()], past=[past_move("Better", "2027-01-15T07:50:00.000000Z")]),
    history("db", past=[past_move("Same", "2027-01-15T07:55:00.000000Z"), past_move("Gone")]),
]


def read(found: list[dict[str, Any]]) -> list[EvictionHistory]:
    for number, each in enumerate(found, 1):
        each["metadata"] |= {"uid": f"uid-{number}", "resourceVersion": str(number)}
    return [msgspec.convert(each, EvictionHistory) for each in found]


def make(*more: Object) -> CycleResult:
    reading = load_objects([node("n1"), node("n2"), replica(), *more], now=NOW, version=VERSION)
    cycle = begin_cycle(reading.snapshot, policy(), None, MODEL)
    return CycleResult(cycle, *write_plan(cycle), (0.0, 0.0))


@asynccontextmanager
async def looking(last: Callable[[], CycleResult | None]) -> AsyncIterator[Callable[[str], Any]]:
    cache = Cache(version=VERSION)
    cache.replace(HISTORY, read(HISTORIES), "9")
    application = web.Application()
    application.add_routes(StatusRoutes(last=last, histories=lambda: cache.of(HISTORY)).routes())
    async with TestServer(application) as server, aiohttp.ClientSession() as session:

        async def ask(path: str) -> tuple[int, str]:
            async with session.get(server.make_url(path)) as answer:
                return answer.status, await answer.text()

        yield ask


def test_open_moves_are_listed_and_the_last_past_ones_the_newest_first() -> None:
    found = list_moves(read(HISTORIES))
    (opened,) = found["open"]
    assert (opened["workload"], opened["namespace"], opened["phase"]) == (
        "ReplicaSet/web",
        "default",
        "Noted",
    )
    assert [move["outcome"] for move in found["past"]] == ["Same", "Gone", "Better"]
    assert found["past"][0]["workload"] == "ReplicaSet/db"


async def test_a_plan_is_written_once_and_forgotten_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[object] = []

    def write(plan: Any) -> str:
        written.append(plan)
        return write_json(plan)

    monkeypatch.setattr("rescheduler.daemon.http.write_json", write)
    made: list[CycleResult | None] = [make()]
    async with looking(lambda: made[0]) as ask:
        answers = await asyncio.gather(*(ask("/plan") for _ in range(3)))
        assert len(written) == 1
        made[0] = make()
        assert (await ask("/plan"))[0] == 200
        assert len(written) == 2
        made[0] = None
        assert (await ask("/plan"))[0] == 404
    assert answers == [(200, write_json(written[0]))] * 3  # type: ignore[arg-type]


async def test_the_last_plan_is_shown_and_any_pod_explained() -> None:
    made = make()
    async with looking(lambda: made) as ask:
        status, text = await ask("/plan")
        assert (status, msgspec.json.decode(text)["kind"]) == (200, "Plan")
        status, text = await ask("/why?pod=web-1")
        assert (status, msgspec.json.decode(text)["pod"]) == (200, "default/web-1")
        status, text = await ask("/moves")
        assert (status, len(msgspec.json.decode(text)["past"])) == (200, 3)


async def test_a_pod_that_waits_after_a_refusal_is_explained_by_what_was_said() -> None:
    """Until when, and by whom it was refused, a new leader reads in the history."""
    refused = {
        "rule": "EvictionRefused",
        "count": 4,
        "refusedAt": "2026-11-18T11:55:00.000000Z",
        "until": "2026-11-18T12:03:00.000000Z",
        "reason": 'admission webhook "keep" denied the request: not now',
    }
    made = make(history(refused=[refused]))
    async with looking(lambda: made) as ask:
        status, text = await ask("/why?pod=web-1")
    assert status == 200
    told = [each for each in msgspec.json.decode(text)["rules"] if "RefusedBefore" in each["says"]]
    assert [each["who"] for each in told] == [f"limits of {name}" for name in made.cycle.settings.modes()]
    for each in told:
        assert "4 times in a row: it is not tried before 2026-11-18T12:03:00Z" in each["says"]
        assert refused["reason"] in each["says"]


@pytest.mark.parametrize("path", ["/why", "/why?pod=", "/why?pod=shop/nobody"])
async def test_a_pod_that_is_not_in_the_plan_is_not_explained(path: str) -> None:
    made = make()
    async with looking(lambda: made) as ask:
        status, text = await ask(path)
        assert status == 404
        assert "pod=NAMESPACE/NAME" in text


async def test_without_a_plan_the_response_gives_the_reason() -> None:
    async with looking(lambda: None) as ask:
        for path in ("/plan", "/why?pod=web-1"):
            status, text = await ask(path)
            assert status == 404
            assert "no plan yet" in text
        assert (await ask("/moves"))[0] == 200
