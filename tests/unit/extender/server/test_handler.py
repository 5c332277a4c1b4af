"""Calls over a real socket: each gets its status or a neutral response, and is counted."""

import asyncio
import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pytest

from extender.answers.freshness import MirrorState
from extender.answers.settings import AnswerSettings, PreemptSettings
from extender.answers.verbs import FILTER
from extender.server import handler
from reberth.records import Pod, PodDisruptionBudget
from reberth.values.duration import Duration
from tests.support import builders
from tests.support.extender.calls import candidates, captured, question
from tests.support.extender.server import TRUE, Served, counted, served
from tests.support.memory.advice import LOAD

FILTER_PATH = "/avoid/filter"
OTHERWISE = {"X-Forwarded-For": "10.0.0.1"}
"""A header that kube-scheduler does not send."""


async def is_well(asked: Served) -> bool:
    status, text = await asked.ask(FILTER_PATH, question())
    return status == 200 and len(json.loads(text)["NodeNames"]) == 4


@pytest.mark.parametrize(
    ("path", "body", "status", "text"),
    [
        (FILTER_PATH, b"", 400, "filter: Input data was truncated"),
        (FILTER_PATH, b"nonsense", 400, "filter: JSON is malformed"),
        (FILTER_PATH, b'{"Pod":{},"NodeNames":[]}', 400, "missing required field `metadata` - at `$.Pod`"),
        (
            FILTER_PATH,
            b'{"Pod":{"metadata":{}},"NodeNames":[1]}',
            400,
            "NodeNames: Expected `str`, got `int`",
        ),
        (FILTER_PATH, b'{"Pod":{"metadata":{}},"NodeNames":NaN}', 400, "malformed"),
        (FILTER_PATH, captured("filter-nocache"), 400, "nodeCacheCapable: true is required"),
        ("/avoid/preempt", captured("preempt-nocache"), 400, "nodeCacheCapable: true is required"),
        ("/scores/prioritize", b"[]", 400, "scores: Expected `object`"),
        (FILTER_PATH, b"x" * 20_000, 413, "the body is larger than 10000 bytes"),
        ("/avoid/bind", captured("bind"), 404, ""),
        ("/", b"", 404, ""),
    ],
)
async def test_bad_input_gets_its_status_and_the_next_call_is_answered(
    path: str, body: bytes, status: int, text: str
) -> None:
    async with served(most_bytes=10_000) as asked:
        found, said = await asked.ask(path, body)
        assert found == status
        assert text in said
        assert await is_well(asked)


async def test_a_wrong_method_is_refused() -> None:
    async with served() as asked:
        for method in ("GET", "PUT", "DELETE"):
            assert (await asked.ask(FILTER_PATH, method=method))[0] == 405
        assert await is_well(asked)


async def test_calls_are_counted_by_result() -> None:
    async with served(most_bytes=10_000) as asked:
        results = ("answered", "unreadable", "too_large")
        before = [counted("requests_total", verb="filter", result=result) for result in results]
        nodes = counted("nodes_total", verb="filter", said="asked")
        for body in (question(), question(), b"nonsense", b"x" * 20_000):
            await asked.ask(FILTER_PATH, body)
        after = [counted("requests_total", verb="filter", result=result) for result in results]
        assert [late - early for late, early in zip(after, before, strict=True)] == [2, 1, 1]
        assert counted("nodes_total", verb="filter", said="asked") - nodes == 8
        assert asked.call_tracker.last_asked["avoid"] > 0
        assert asked.call_tracker.last_asked["scores"] == 0


async def test_a_body_without_a_length_or_compressed_is_refused() -> None:
    async def pieces() -> Any:
        yield question()

    async with served() as asked:
        assert (await asked.ask(FILTER_PATH, pieces()))[0] == 411
        assert (await asked.ask(FILTER_PATH, question(), headers={"Content-Encoding": "gzip"}))[0] == 415
        assert await is_well(asked)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (FILTER_PATH, question()),
        ("/avoid/prioritize", question(["n0", "x", "x"])),
        ("/scores/prioritize", question()),
        ("/avoid/preempt", candidates({"n1": ["v"]})),
        (FILTER_PATH, b"nonsense"),
    ],
)
async def test_a_call_that_is_written_otherwise_gets_the_same_answer(path: str, body: bytes) -> None:
    async with served() as asked:
        plain = await asked.ask(path, body)
        before = counted("request_duration_seconds_count", verb="filter")
        assert await asked.ask(path, body, headers=OTHERWISE) == plain
        assert counted("request_duration_seconds_count", verb="filter") == before + (path == FILTER_PATH)


async def send_slowly(
    asked: Served, *, rest_after: float | None, headers: Mapping[str, str] = MappingProxyType({})
) -> bytes:
    """Send the first half of a call, and the other half later or never; gives the answer's first line."""
    body = question()
    reader, writer = await asyncio.open_connection("127.0.0.1", asked.port)
    lines = [f"POST {FILTER_PATH} HTTP/1.1", "Host: a", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    head = "\r\n".join([*lines, "", ""])
    writer.write(head.encode() + body[:100])
    if rest_after is not None:
        await asyncio.sleep(rest_after)
        writer.write(body[100:])
    line = await reader.readline()
    writer.close()
    return line.strip()


@pytest.mark.parametrize("headers", [{}, OTHERWISE])
async def test_a_slow_client_is_waited_for_and_not_for_ever(headers: dict[str, str]) -> None:
    async with served(seconds=0.3) as asked:
        asked.settings = AnswerSettings(deadline=Duration(10))
        before = counted("requests_total", verb="filter", result="slow")
        assert await send_slowly(asked, rest_after=0.02, headers=headers) == b"HTTP/1.1 200 OK"
        assert await send_slowly(asked, rest_after=None, headers=headers) == b"HTTP/1.1 408 Request Timeout"
        assert counted("requests_total", verb="filter", result="slow") == before + 1
        assert await is_well(asked)


async def test_an_answer_after_the_deadline_is_neutral() -> None:
    async with served() as asked:
        asked.settings = AnswerSettings(deadline=Duration(0.01))
        before = counted("neutral_answers_total", verb="filter", cause="deadline")
        assert await send_slowly(asked, rest_after=0.05) == b"HTTP/1.1 200 OK"
        assert counted("neutral_answers_total", verb="filter", cause="deadline") == before + 1


async def test_a_client_that_disconnects_mid_request_does_no_harm() -> None:
    async with served() as asked:
        for _ in range(20):
            _, writer = await asyncio.open_connection("127.0.0.1", asked.port)
            writer.write(b"POST /avoid/filter HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n\r\n{")
            await writer.drain()
            writer.transport.abort()
        assert await is_well(asked)


@pytest.mark.parametrize(
    ("state", "cause"),
    [(MirrorState(False, None, 0.0), "cold"), (MirrorState(True, "the server was silent", 500.0), "stale")],
)
@pytest.mark.parametrize(
    ("verb", "path", "body", "answer"),
    [
        ("filter", FILTER_PATH, question(["n0", "x"]), None),
        ("prioritize", "/avoid/prioritize", question(["x"]), [{"Host": "x", "Score": 10}]),
        ("scores", "/scores/prioritize", question(["x"]), [{"Host": "x", "Score": 5}]),
        ("preempt", "/avoid/preempt", candidates({}), {"NodeNameToMetaVictims": {}}),
    ],
)
async def test_requests_in_doubt_get_neutral_answers_and_are_counted(  # noqa: PLR0917 - a table of two
    state: MirrorState, cause: str, verb: str, path: str, body: bytes, answer: Any
) -> None:
    async with served() as asked:
        asked.mirror_states = [TRUE, state]
        before = counted("neutral_answers_total", verb=verb, cause=cause)
        status, text = await asked.ask(path, body)
        assert status == 200
        assert answer is None or json.loads(text) == answer
        assert counted("neutral_answers_total", verb=verb, cause=cause) == before + 1


async def test_a_fault_of_ours_is_answered_neutrally_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(handler, "VERBS", (FILTER._replace(decide=fail),))
    async with served() as asked:
        before = counted("neutral_answers_total", verb="filter", cause="fault")
        assert await is_well(asked)
        assert counted("neutral_answers_total", verb="filter", cause="fault") == before + 1


async def test_a_hundred_thousand_names_are_answered() -> None:
    names = [f"node-{number:06d}" for number in range(100_000)]
    async with served(most_bytes=2**22) as asked:
        asked.settings = AnswerSettings(deadline=Duration(60))
        status, text = await asked.ask("/avoid/prioritize", question(names))
        assert status == 200
        assert [entry["Host"] for entry in json.loads(text)] == names


async def test_where_no_candidate_is_left_that_is_announced_and_counted() -> None:
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    made = builders.pod("db-0", node="n1", uid="v", labels={"app": "db"}, status=ready)
    made["metadata"]["creationTimestamp"] = "2026-11-18T11:00:00Z"
    guard = builders.pdb("db", min_available=1, status={"disruptionsAllowed": 0})
    records = (builders.as_record(Pod, made), builders.as_record(PodDisruptionBudget, guard))
    async with served() as asked:
        asked.known.put(*records)
        body = candidates({"n1": ["v"]})
        before = counted("preemptions_exhausted_total", rule="BudgetWouldBreak")
        overruled = counted("preemptions_overruled_total")
        await asked.ask("/avoid/preempt", body)
        assert counted("preemptions_overruled_total") == overruled + 1
        asked.settings = AnswerSettings(scores=LOAD, preempt=PreemptSettings("strict"))
        await asked.ask("/avoid/preempt", body)
        ((pod, refused),) = asked.announced
        assert (pod.name, refused.rule) == ("web-5d4f-1", "BudgetWouldBreak")
        assert counted("preemptions_exhausted_total", rule="BudgetWouldBreak") == before + 1


async def test_an_answer_leaves_in_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two writes cost kube-scheduler the delay of an acknowledgement."""
    writes: list[int] = []

    def watch(name: str) -> None:
        transport = asyncio.selector_events._SelectorSocketTransport  # type: ignore[attr-defined] # to look inside
        original: Callable[..., Any] = getattr(transport, name)

        def spy(self: Any, data: Any) -> Any:
            if self.get_extra_info("sockname")[1] == asked.port:
                writes.append(len(data))
            return original(self, data)

        monkeypatch.setattr(transport, name, spy)

    async with served() as asked:
        watch("write")
        for names in (4, 5000):
            writes.clear()
            await asked.ask("/avoid/prioritize", question([f"n{number}" for number in range(names)]))
            assert len(writes) == 1
