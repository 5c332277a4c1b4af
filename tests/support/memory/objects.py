"""Builders for the shared memory: owners, signatures, moves and scores, each in one readable line."""

from typing import Any

import msgspec

from reberth.cluster.pods.identity import Signature
from reberth.memory.history import Ending, close_move, open_move, start_history
from reberth.records import (
    EvictionHistory,
    NodePlacementScore,
    ObjectMeta,
    OpenMove,
    Outcome,
    PastMove,
    Phase,
    Pod,
    WorkloadIdentity,
)
from reberth.values.refusal import Refused
from reberth.values.timestamp import parse_time, write_micro_time, write_time
from tests.support import builders

NOW = parse_time("2026-11-18T12:00:00Z")
MINUTE = 60.0
HOUR = 3600.0
DAY = 24 * HOUR

REPLICA_SET = WorkloadIdentity("apps/v1", "ReplicaSet", "web-5d4f", "uid-rs")
DEPLOYMENT = WorkloadIdentity("apps/v1", "Deployment", "web", "uid-deployment")
WEB = Signature("shop", REPLICA_SET, DEPLOYMENT)
OWNERS = {
    "uid-rs": msgspec.convert(
        builders.meta(
            "web-5d4f", "shop", ownerReferences=[builders.owner("Deployment", "web", uid="uid-deployment")]
        ),
        ObjectMeta,
    )
}


def web_pod(name: str = "web-5d4f-1", *, owned_by: Any = None, **fields: Any) -> Pod:
    """A pod of the ReplicaSet above; `age` in seconds before NOW."""
    created = write_time(NOW - fields.pop("age", 0.0))
    owner = owned_by or builders.owner("ReplicaSet", "web-5d4f", uid="uid-rs")
    made = builders.pod(
        name, namespace="shop", owned_by=owner, created=created, **{"uid": f"uid-{name}"} | fields
    )
    return builders.as_record(Pod, made)


def move(
    move_id: str = "m1",
    *,
    phase: Phase = Phase.NOTED,
    planned: float = NOW,
    life: float = 330.0,
    **fields: Any,
) -> OpenMove:
    given = {"pod": "web-0", "pod_uid": "uid-victim", "controller_uid": "uid-rs", "from_": "n1"}
    return OpenMove(
        **{"id": move_id, "planned_at": write_micro_time(planned), "expires_at": write_time(planned + life)}
        | {"phase": phase}
        | given
        | fields
    )


def past(
    outcome: Outcome, *, ago: float = 0.0, node: str = "n1", evicted: bool = True, **fields: Any
) -> PastMove:
    """A move that was closed `ago` seconds before NOW."""
    time = write_micro_time(NOW - ago)
    given = {"id": f"past-{outcome}-{ago}-{node}", "pod": "web-0", "pod_uid": "uid-0", "from_": node}
    return PastMove(
        **given | {"outcome": outcome, "closed_at": time, "evicted_at": time if evicted else None} | fields
    )


def accepted(history: EvictionHistory | Refused) -> EvictionHistory:
    assert isinstance(history, EvictionHistory), history
    return history


def after_move(
    history: EvictionHistory,
    move_id: str,
    outcome: Outcome,
    *,
    closed: float,
    node: str = "n1",
    **ending: Any,
) -> EvictionHistory:
    """The history after one more whole move."""
    history = accepted(open_move(history, move(move_id, planned=closed - MINUTE, from_=node)))
    evicted_at = write_micro_time(closed - MINUTE / 2)
    closing = close_move(history, move_id, Ending(outcome, **ending), now=closed, evicted_at=evicted_at)
    return accepted(closing)


def empty_history() -> EvictionHistory:
    return start_history(WEB)


def score(
    node: str,
    source: str = "load",
    *,
    name: str | None = None,
    valid_until: float | None = None,
    **scores: Any,
) -> NodePlacementScore:
    """An object of a source with these scores."""
    status: dict[str, Any] = {"scores": [{"name": key, "value": value} for key, value in scores.items()]}
    if valid_until is not None:
        status["validUntil"] = write_time(valid_until)
    made = {
        "metadata": {"name": name or f"{source}-{node}"},
        "spec": {"nodeName": node, "source": source},
        "status": status,
    }
    return msgspec.convert(made, NodePlacementScore)
