"""The bodies, against what kube-apiserver 1.35 sent."""

import json
from typing import Any

import pytest

from localcluster.faults import PlainText, Status, read_request_info, status_bodies

EVICTION = read_request_info("a", "POST", target="/api/v1/namespaces/default/pods/b/eviction")
SCALE = read_request_info("a", "PUT", target="/apis/apps/v1/namespaces/default/deployments/web/scale")
BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."
SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


def failure(code: int, message: str, **members: Any) -> dict[str, Any]:
    fixed = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return {**fixed, "message": message, **members, "code": code}


def cause(message: str) -> list[dict[str, str]]:
    return [{"reason": "DisruptionBudget", "message": message}]


@pytest.mark.parametrize(
    ("status", "body", "length", "retry_after"),
    [
        (
            status_bodies.budget_unobserved("c"),
            failure(
                429,
                BUDGET,
                reason="TooManyRequests",
                details={
                    "causes": cause("The disruption budget c is still being processed by the server."),
                    "retryAfterSeconds": 10,
                },
            ),
            337,
            "10",
        ),
        (
            status_bodies.budget_exhausted("c", needs=2, has=2),
            failure(
                429,
                BUDGET,
                reason="TooManyRequests",
                details={"causes": cause("The disruption budget c needs 2 healthy pods and has 2 currently")},
            ),
            315,
            None,
        ),
        (status_bodies.several_budgets(), failure(500, SEVERAL), 189, None),
        (
            Status(404, "NotFound", "{object} not found", names_object=True),
            failure(404, 'pods "b" not found', reason="NotFound", details={"name": "b", "kind": "pods"}),
            170,
            None,
        ),
    ],
)
def test_a_status_is_byte_for_byte_the_api_servers(
    *, status: Status, body: dict[str, Any], length: int, retry_after: str | None
) -> None:
    reply = status.reply(EVICTION)
    assert reply.body == json.dumps(body, separators=(",", ":")).encode() + b"\n"
    assert len(reply.body) == length
    assert reply.headers.get("Retry-After") == retry_after
    assert reply.headers["Content-Type"] == "application/json"
    assert reply.headers["Cache-Control"] == "no-cache, private"


@pytest.mark.parametrize(
    ("status", "code", "reason", "details"),
    [
        (status_bodies.conflict(), 409, "Conflict", {"name": "web", "group": "apps", "kind": "deployments"}),
        (
            status_bodies.already_exists(),
            409,
            "AlreadyExists",
            {"name": "web", "group": "apps", "kind": "deployments"},
        ),
        (status_bodies.list_expired(), 410, "Expired", None),
        (status_bodies.watch_expired(), 410, "Expired", None),
        (status_bodies.too_many_requests(retry_after=2), 429, "TooManyRequests", {"retryAfterSeconds": 2}),
        (status_bodies.internal_error("boom"), 500, "InternalError", {"causes": [{"message": "boom"}]}),
        (status_bodies.watch_list_unsupported(), 500, "InternalError", None),
        (status_bodies.shutting_down(), 503, "ServiceUnavailable", None),
        (status_bodies.timed_out(), 504, "Timeout", {}),
        (status_bodies.timed_out(retry_after=10), 504, "Timeout", {"retryAfterSeconds": 10}),
    ],
)
def test_a_status_body_has_code_reason_and_details(
    *, status: Status, code: int, reason: str, details: dict[str, Any] | None
) -> None:
    reply = status.reply(SCALE)
    body = json.loads(reply.body)
    assert (reply.code, body["code"], body["reason"], body.get("details")) == (code, code, reason, details)
    assert "{" not in body["message"]


def test_a_conflict_names_the_object_that_was_asked_for() -> None:
    message = status_bodies.conflict().body(SCALE)["message"]
    assert message.startswith(
        'Operation cannot be fulfilled on deployments.apps "web": the object has been modified'
    )


def test_an_overloaded_server_answers_in_plain_text() -> None:
    status = status_bodies.overloaded()
    assert isinstance(status, PlainText)
    reply = status.reply(EVICTION)
    assert (reply.code, reply.body) == (429, b"Too many requests, please try again later.\n")
    assert reply.headers["Retry-After"] == "1"
    assert reply.headers["Content-Type"] == "text/plain; charset=utf-8"


def test_an_event_is_one_line_with_the_status_in_it() -> None:
    line = status_bodies.watch_expired(asked=5, oldest=99).event()
    assert line.count(b"\n") == 1
    body = failure(410, "too old resource version: 5 (99)", reason="Expired")
    assert json.loads(line) == {"type": "ERROR", "object": body}
