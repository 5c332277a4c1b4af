"""A memory answers as the API server's cache would, had it stopped when the answer was kept."""

import json
from typing import Any

import pytest

from localcluster.faults import Memory, RequestInfo, read_request_info
from localcluster.faults.status_bodies import Reply

PODS = "/api/v1/pods"


def asking(query: str = "", *, path: str = PODS, method: str = "GET") -> RequestInfo:
    return read_request_info("a", method, target=f"{path}?{query}")


def answering(version: str = "100", *, code: int = 200, next_page: str | None = None) -> Reply:
    body: dict[str, Any] = {"metadata": {"resourceVersion": version}}
    if next_page is not None:
        body["metadata"]["continue"] = next_page
    return Reply(code, {"Content-Type": "application/json"}, json.dumps(body).encode())


def with_pods_at_100() -> Memory:
    memory = Memory()
    assert memory.remember(asking(), answering())
    return memory


@pytest.mark.parametrize(
    "query",
    [
        "resourceVersion=0",
        "resourceVersion=0&limit=500",
        "resourceVersion=0&timeoutSeconds=300",
        "resourceVersion=0&resourceVersionMatch=NotOlderThan",
        "resourceVersion=100",
        "resourceVersion=99&limit=500&resourceVersionMatch=NotOlderThan",
    ],
)
def test_requests_that_allow_a_cache_are_answered_from_memory(query: str) -> None:
    assert with_pods_at_100().recall(asking(query)) == answering()


@pytest.mark.parametrize(
    "query",
    [
        "",
        "limit=500",
        "resourceVersion=",
        "resourceVersion=nonsense",
        "resourceVersion=99&limit=500",
        "resourceVersion=100&resourceVersionMatch=Exact",
        "resourceVersion=0&continue=token",
        "resourceVersion=0&watch=true",
        "resourceVersion=0&labelSelector=app%3Dweb",
    ],
)
def test_requests_that_need_etcd_or_unknown_lists_go_to_the_server(query: str) -> None:
    assert with_pods_at_100().recall(asking(query)) is None


def test_a_version_that_the_cache_has_not_reached_is_a_timeout() -> None:
    reply = with_pods_at_100().recall(asking("resourceVersion=101&resourceVersionMatch=NotOlderThan"))
    assert reply is not None
    body = json.loads(reply.body)
    assert (reply.code, reply.headers["Retry-After"]) == (504, "1")
    assert body["message"] == "Timeout: Too large resource version: 101, current: 100"
    assert body["details"]["causes"] == [
        {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    ]


def test_objects_and_selections_are_separate_and_the_newest_response_is_kept() -> None:
    memory = with_pods_at_100()
    selection = asking("resourceVersion=0&labelSelector=app%3Dweb")
    one = asking("resourceVersion=0", path="/api/v1/nodes/n1")
    memory.remember(selection, answering("7"))
    memory.remember(one, answering("8"))
    memory.remember(one, answering("9"))
    assert memory.recall(selection) == answering("7")
    assert memory.recall(one) == answering("9")
    assert len(memory) == 3


@pytest.mark.parametrize(
    ("info", "reply"),
    [
        (asking(method="POST"), answering()),
        (asking("watch=true"), answering()),
        (asking(), answering(code=410)),
        (asking("continue=token"), answering()),
        (asking(), answering(next_page="token")),
        (asking(), answering("")),
        (asking(), Reply(200, {}, b"not JSON")),
        (asking(), Reply(200, {}, b"[]")),
        (asking(), Reply(200, {}, b'{"metadata":null}')),
    ],
)
def test_only_complete_objects_and_lists_are_remembered(info: RequestInfo, reply: Reply) -> None:
    memory = Memory()
    assert not memory.remember(info, reply)
    assert len(memory) == 0
