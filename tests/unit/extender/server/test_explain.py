"""GET and POST /explain over a real socket."""

import json

import pytest

from tests.support.extender.calls import WEB_SET, web_metadata
from tests.support.extender.server import served
from tests.support.memory.advice import node
from tests.support.memory.objects import HOUR, web_pod


async def test_a_mirrored_pod_and_a_given_one_are_explained_alike() -> None:
    async with served() as asked:
        asked.known.put(node("n1", notes=[{"life": 1e6 * HOUR}]), WEB_SET, web_pod())
        mirrored = await asked.ask("/explain?pod=shop/web-5d4f-1", method="GET")
        given = await asked.ask("/explain", json.dumps({"metadata": web_metadata()}))
        told = json.loads(mirrored[1])
        assert (mirrored[0], given[0]) == (200, 200)
        assert json.loads(given[1])["nodes"] == told["nodes"]
        assert told["known"]["root"]["kind"] == "Deployment"
        assert [(one["node"], one["avoid"], one["scores"]) for one in told["nodes"]] == [
            ("n0", 10, 5),
            ("n1", 0, 5),
            ("n2", 10, 5),
            ("n3", 10, 5),
        ]
        assert "policy balance: rebalance" in told["nodes"][1]["reasons"][0]


async def test_some_nodes_are_explained_as_if_only_they_were_asked_about() -> None:
    async with served() as asked:
        asked.known.put(node("n1", notes=[{"life": 1e6 * HOUR}]), web_pod())
        _, text = await asked.ask("/explain?pod=shop/web-5d4f-1&node=n1&node=x", method="GET")
        assert [(one["node"], one["avoid"]) for one in json.loads(text)["nodes"]] == [("n1", 0), ("x", 10)]


async def test_many_nodes_are_explained_as_one_question() -> None:
    async with served() as asked:
        asked.known.put(*(node(f"m{number:03d}") for number in range(120)), web_pod())
        asked.known.put(node("m119", notes=[{"life": 1e6 * HOUR}]))
        _, text = await asked.ask("/explain?pod=shop/web-5d4f-1", method="GET")
        told = {one["node"]: one["avoid"] for one in json.loads(text)["nodes"]}
        assert len(told) == 124
        assert [name for name, avoid in told.items() if not avoid] == ["m119"]


async def test_explain_gives_the_reason_why_a_pod_is_never_moved() -> None:
    async with served() as asked:
        _, text = await asked.ask("/explain", json.dumps({"metadata": {"name": "bare"}}))
        assert json.loads(text)["unknown"] == "no controller would replace the pod"


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/explain", None, 404),
        ("GET", "/explain?pod=shop/nobody", None, 404),
        ("POST", "/explain", "{}", 400),
        ("POST", "/explain", "x" * 2000, 413),
    ],
)
async def test_a_pod_that_cannot_be_explained_is_refused(
    method: str, path: str, body: str | None, status: int
) -> None:
    async with served(most_bytes=1000) as asked:
        assert (await asked.ask(path, body, method=method))[0] == status
