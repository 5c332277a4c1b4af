"""Build small clusters for tests of protections, limits and brakes."""

from collections.abc import Mapping
from typing import Any

from reberth.cluster.object_files import load_objects
from reberth.cluster.pods.identity import name_history
from reberth.cluster.pods.requests import NEWEST
from reberth.records import WorkloadIdentity
from rescheduler.model.guardrails import BrakeSettings, LimitSettings, ProtectionSettings
from rescheduler.observe.rule_context import RuleContext
from tests.support.builders import meta, node, owner, pod

Object = dict[str, Any]

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z, a Friday
WEB = owner("ReplicaSet", "web")
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def context_of(
    *objects: Object,
    now: float = NOW,
    protections: ProtectionSettings | None = None,
    limits: LimitSettings | None = None,
    brakes: BrakeSettings | None = None,
) -> RuleContext:
    """A cluster with these objects, and the node n1 at least."""
    protecting = protections or ProtectionSettings()
    reading = load_objects(
        [node("n1"), *objects], now=now, version=NEWEST, annotations=protecting.annotation_keys
    )
    assert not reading.faults
    return RuleContext(
        reading.snapshot,
        protecting,
        limits or LimitSettings(),
        brakes or BrakeSettings(),
    )


def replica(name: str = "web-1", **fields: Any) -> Object:
    """A pod that nothing protects, so long as `peer` is there, too."""
    return pod(name, **{"node": "n1", "owned_by": WEB, "status": READY, **fields})


def peer() -> Object:
    """A Ready pod of the same workload."""
    return replica("web-peer")


def place_of(context: RuleContext, name: str = "web-1", namespace: str = "default") -> int:
    place = context.snapshot.pods.named(namespace, name)
    assert place is not None
    return place


def workload(
    kind: str, name: str = "web", *, spec: Object | None = None, status: Object | None = None, **fields: Any
) -> Object:
    """The owner that `owner(kind, name)` speaks of, or the owner of that."""
    uid = fields.pop("uid", f"uid-of-{kind}-{name}".lower())
    group = "batch/v1" if kind == "Job" else "apps/v1"
    metadata = meta(name, "default", uid=uid, generation=1, **fields)
    return {
        "apiVersion": group,
        "kind": kind,
        "metadata": metadata,
        "spec": spec or {},
        "status": {"observedGeneration": 1, **(status or {})},
    }


def namespace(name: str = "default", *, phase: str = "Active", **fields: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": meta(name, **fields),
        "status": {"phase": phase},
    }


def quota(hard: Mapping[str, str], used: Mapping[str, str], name: str = "cap", **scopes: Any) -> Object:
    """A ResourceQuota; `scopes` are fields of its spec."""
    status = {"hard": dict(hard), "used": dict(used)}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": meta(name, "default"),
        "spec": {"hard": dict(hard), **scopes},
        "status": status,
    }


def claim(name: str, *modes: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": meta(name, "default"),
        "spec": {"accessModes": list(modes)},
    }


def history(name: str = "web", *, kind: str = "ReplicaSet", uid: str | None = None, **status: Any) -> Object:
    """The history of the workload that `owner(kind, name)` speaks of."""
    root = WorkloadIdentity("apps/v1", kind, name, uid or f"uid-of-{kind}-{name}".lower())
    return {
        "apiVersion": "reberth.dev/v1alpha1",
        "kind": "EvictionHistory",
        "metadata": meta(name_history(root), "default"),
        "spec": {"workload": {"apiVersion": root.api_version, "kind": kind, "name": name, "uid": root.uid}},
        "status": status,
    }


def keep_ledger(debits: list[Object]) -> Object:
    """The move ledger with these debits."""
    return {
        "apiVersion": "reberth.dev/v1alpha1",
        "kind": "MoveLedger",
        "metadata": {"name": "default"},
        "status": {"debits": debits},
    }


def open_move(pod_name: str = "web-1", **fields: Any) -> Object:
    move = {
        "id": "m-1",
        "pod": pod_name,
        "podUID": f"uid-{pod_name}",
        "controllerUID": WEB["uid"],
        "from": "n1",
        "plannedAt": "2027-01-15T07:58:00.000000Z",
        "expiresAt": "2027-01-15T08:05:00Z",
        "phase": "Noted",
    }
    return move | fields


def past_move(outcome: str, closed_at: str = "2027-01-15T07:50:00.000000Z", **fields: Any) -> Object:
    move = {
        "id": f"m-{outcome}-{closed_at}",
        "pod": "web-0",
        "podUID": "uid-web-0",
        "from": "n1",
        "outcome": outcome,
        "evictedAt": "2027-01-15T07:40:00.000000Z",
        "closedAt": closed_at,
    }
    return move | fields
