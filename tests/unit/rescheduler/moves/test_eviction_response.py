"""The meaning of the Eviction API's errors."""

import json

import pytest

from localcluster.faults import PlainText, RequestInfo, Status, status_bodies
from reberth.protocol.response import failure
from reberth.values import errors
from reberth.values.errors import ApiError
from reberth.values.refusal import Refused
from rescheduler.moves.eviction_response import UncertainAnswer, read_answer

NOW = 1000.0
EVICTION = RequestInfo("c", "POST", "/api/v1/namespaces/shop/pods/web-0/eviction", {}, "create", name="web-0")
DENIED = 'admission webhook "evictions.example" denied the request: '
NO_RIGHT = (
    'pods "web-0" is forbidden: User "system:serviceaccount:reberth-system:reberth" cannot create '
    'resource "pods/eviction" in API group "" in the namespace "shop"'
)
BY_POLICY = (
    "pods \"web-0\" is forbidden: ValidatingAdmissionPolicy 'keep' with binding 'k' denied request: no"
)
UNCALLABLE = (
    'Internal error occurred: failed calling webhook "evictions.example": failed to call webhook: Post '
    '"https://hook.example.svc:443/?timeout=10s": dial tcp 10.0.0.7:443: connect: connection refused'
)
BUDGET = {"reason": "DisruptionBudget", "message": "pdb reached maximum allowed pod disruption"}


def answered(status: Status | PlainText) -> ApiError:
    reply = status.reply(EVICTION)
    return failure("evict", reply.code, reply.body, retry_after=reply.headers.get("Retry-After"))


@pytest.mark.parametrize(
    ("status", "rule", "until"),
    [
        (status_bodies.budget_exhausted("b", needs=2, has=2), "PDB", None),
        (status_bodies.budget_unobserved("b"), "BudgetUnobserved", NOW + 10),
        (Status(403, "Forbidden", "pods", {"causes": [BUDGET]}), "PDB", None),
        (
            Status(403, "Forbidden", "no", {"causes": [{"reason": "NamespaceTerminating"}]}),
            "NamespaceTerminating",
            None,
        ),
        (Status(403, "Forbidden", NO_RIGHT), "Forbidden", None),
        (Status(403, "Forbidden", f"{DENIED}not today"), "EvictionRefused", None),
        (Status(403, "Forbidden", BY_POLICY), "EvictionRefused", None),
        (Status(401, "Unauthorized", BY_POLICY), "EvictionRefused", None),
        (Status(404, "NotFound", f"{DENIED}no such shop"), "EvictionRefused", None),
        (Status(500, "InternalError", f"{DENIED}out of order"), "EvictionRefused", None),
        (Status(500, "InternalError", UNCALLABLE), "WebhookFailing", None),
        (Status(401, "Unauthorized", "who"), "Unauthorized", None),
        (Status(422, "Invalid", "x"), "EvictionRefused", None),
        (Status(400, "BadRequest", "x"), "EvictionRefused", None),
        (
            Status(429, "TooManyRequests", "x", {"causes": [{"reason": "Rate"}], "retryAfterSeconds": 7}),
            "EvictionPaced",
            NOW + 7,
        ),
        (Status(429, "TooManyRequests", f"{DENIED}one per hour"), "EvictionPaced", None),
        (status_bodies.overloaded(), "ServerBusy", NOW + 1),
        (Status(429, "TooManyRequests", "x"), "ServerBusy", None),
        (status_bodies.several_budgets(), "SeveralBudgets", None),
    ],
)
def test_a_refusal_is_named_after_its_cause(
    status: Status | PlainText, rule: str, until: float | None
) -> None:
    refused = read_answer(answered(status), now=NOW)
    assert isinstance(refused, Refused)
    assert (refused.rule, refused.until) == (rule, until)
    assert refused.reason


@pytest.mark.parametrize("said", ["", "Evacuation in progress: "])
def test_a_denial_that_has_begun_an_evacuation_is_a_grant(said: str) -> None:
    text = f'{DENIED}{said}Eviction triggered evacuation of VMI "shop/a"'
    assert read_answer(answered(Status(429, "", text)), now=NOW) is None
    assert read_answer(answered(Status(403, "Forbidden", text)), now=NOW) is not None


def test_the_message_of_a_budget_is_the_reason() -> None:
    refused = read_answer(answered(status_bodies.budget_exhausted("b", needs=2, has=2)), now=NOW)
    assert isinstance(refused, Refused)
    assert refused.reason == "The disruption budget b needs 2 healthy pods and has 2 currently"
    bare = failure(
        "evict",
        429,
        json.dumps({"message": "m", "details": {"causes": [{"reason": "DisruptionBudget"}]}}).encode(),
    )
    assert read_answer(bare, now=NOW) == Refused("PDB", "m")


@pytest.mark.parametrize(
    "status",
    [
        status_bodies.internal_error(),
        status_bodies.shutting_down(),
        status_bodies.timed_out(),
        status_bodies.timed_out(retry_after=10),
    ],
)
def test_a_server_error_is_uncertain(status: Status) -> None:
    assert read_answer(answered(status), now=NOW) is UncertainAnswer.IN_DOUBT


def test_no_answer_is_uncertain_and_no_connection_is_a_refusal() -> None:
    assert read_answer(errors.Unanswered("evict", "reset"), now=NOW) is UncertainAnswer.IN_DOUBT
    assert read_answer(errors.Unreadable("evict", "noise"), now=NOW) is UncertainAnswer.IN_DOUBT
    assert read_answer(errors.Unreachable("evict", "refused"), now=NOW) == Refused("Unreachable", "refused")


@pytest.mark.parametrize("status", [Status(404, "NotFound", "x"), status_bodies.conflict()])
def test_after_404_and_409_the_pod_is_read(status: Status) -> None:
    assert read_answer(answered(status), now=NOW) is UncertainAnswer.PODS_STATE


def test_a_webhook_that_cannot_be_called_is_named() -> None:
    refused = read_answer(answered(Status(500, "InternalError", UNCALLABLE)), now=NOW)
    assert isinstance(refused, Refused)
    assert refused.key == "evictions.example"
