"""Server-side apply: its request, and that a kind whose storage is being set up is tried again."""

from typing import Any

import pytest

from localcluster import client as module
from localcluster.client import Client, Refused

BODY = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "one"}}


class FakeClient(Client):
    """Answers from a list of status codes."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.requests: list[tuple[str, str, Any, str]] = []

    async def request(
        self, method: str, path: str, body: Any = None, *, patch: str = "", accept: str = "*/*"
    ) -> Any:
        self.requests.append((method, path, body, patch))
        assert accept == "*/*"
        if (status := self.statuses.pop(0)) != 200:
            raise Refused(f"{method} {path}", status, {"message": "no"})
        return body


async def test_an_object_is_applied_with_force_under_one_field_manager() -> None:
    assert await (client := FakeClient(200)).apply("/api/v1/nodes/one", BODY) == BODY
    path = "/api/v1/nodes/one?fieldManager=localcluster&force=true"
    assert client.requests == [("PATCH", path, BODY, "application/apply-patch+yaml")]


async def test_an_apply_that_is_put_off_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BETWEEN_TRIES", 0.0)
    assert await FakeClient(429, 429, 200).apply("/api/v1/nodes/one", BODY) == BODY
    monkeypatch.setattr(module, "_LONGEST_ANSWER", -1.0)
    with pytest.raises(Refused, match="429 no"):
        await FakeClient(429).apply("/api/v1/nodes/one", BODY)


async def test_an_apply_that_is_refused_is_not_tried_again() -> None:
    with pytest.raises(Refused, match="422 no"):
        await FakeClient(422, 200).apply("/api/v1/nodes/one", BODY)
