"""GET /seen over a real socket: the rescheduler calls it before it evicts."""

import asyncio
import json
from typing import Any

import pytest

from tests.support.extender.server import Served, served
from tests.support.memory.advice import DRAWN

HISTORY = f"resource=evictionhistories&namespace=shop&name={DRAWN.metadata.name}"


async def seen(asked: Served, query: str) -> tuple[int, Any]:
    status, text = await asked.ask(f"/seen?{query}", method="GET")
    return status, json.loads(text) if text.startswith("{") else text.strip()


async def test_a_known_version_is_answered_as_seen() -> None:
    async with served() as asked:
        assert await seen(asked, "resource=nodes&name=n1&resourceVersion=2") == (
            200,
            {"seen": 2, "lastAskedAt": None},
        )
        assert (await seen(asked, "resource=nodes&name=n1&resourceVersion=1"))[0] == 200


@pytest.mark.parametrize(
    "query",
    [
        "resource=nodes&name=n1&resourceVersion=3&wait=10ms",
        "resource=nodes&name=n9&resourceVersion=1&wait=10ms",
        "resource=nodes&name=n9&resourceVersion=0&wait=10ms",
        f"{HISTORY}&resourceVersion=1&wait=10ms",
    ],
)
async def test_an_unknown_version_times_out(query: str) -> None:
    async with served() as asked:
        asked.call_tracker.hear("avoid", 1_795_003_200.0)
        status, body = await seen(asked, query)
        assert status == 504
        assert body["lastAskedAt"] == "2026-11-18T12:00:00.000000Z"


async def test_a_version_that_arrives_while_waiting_is_answered_at_once() -> None:
    async with served() as asked:
        waiting = asyncio.create_task(seen(asked, f"{HISTORY}&resourceVersion=6&wait=10s"))
        await asyncio.sleep(0.05)
        asked.known.put(DRAWN)  # the fifth version
        await asyncio.sleep(0.05)
        assert not waiting.done()
        asked.known.put(DRAWN)
        assert (await waiting)[0] == 200


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("", "resource must be nodes or evictionhistories"),
        ("resource=pods&name=a&resourceVersion=1", "resource must be nodes or evictionhistories"),
        ("resource=nodes&name=a", "resourceVersion must be a whole number"),
        ("resource=nodes&name=a&resourceVersion=-1", "resourceVersion must be a whole number"),
        (f"resource=nodes&name=a&resourceVersion={'9' * 5000}", "resourceVersion must be a whole number"),
        ("resource=nodes&name=a&resourceVersion=1&wait=soon", "wait must be a duration of at most 10s"),
        ("resource=nodes&name=a&resourceVersion=1&wait=11s", "wait must be a duration of at most 10s"),
    ],
)
async def test_an_invalid_query_is_answered_with_the_reason(query: str, reason: str) -> None:
    async with served() as asked:
        assert await seen(asked, query) == (400, reason)
