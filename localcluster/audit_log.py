"""The audit log of an API server: who sent which request, and how it was answered.

async with running(flags=audit_log.write_audit_flags(folder, [USER])) as cluster:
    ...
    calls = audit_log.read_log(folder)
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from localcluster.components import API_SERVER

_OBJECTS = ("evictionhistories", "moveledgers")
LOG = "audit.log"
_POLICY = "audit-policy.yaml"
_LOGS = "audit*.log"  # the server begins a new file after 100 MB, and puts the time into the old one's name
_WITH_BODIES = [
    {"group": "", "resources": ["pods/eviction"]},
    {"group": "coordination.k8s.io", "resources": ["leases"]},
    {"group": "events.k8s.io", "resources": ["events"]},
]
_MEMORY = [
    {"group": "", "resources": ["nodes"]},
    {"group": "reberth.dev", "resources": [f"{name}{sub}" for name in _OBJECTS for sub in ("", "/status")]},
]
_CREDENTIAL = "authentication.kubernetes.io/credential-id"


@dataclass(frozen=True)
class Call:
    """One request. Without a code the log has no response to it."""

    user: str
    credential: str
    verb: str
    resource: str
    """With its sub-resource: `pods`, `pods/eviction`."""
    namespace: str
    name: str
    received: float
    answered: float | None
    code: int | None
    body: Mapping[str, Any]
    """Of evictions, leases, Events and named resources; with `memory` also of what is written to it."""
    stored: Mapping[str, Any] = field(default_factory=dict)
    """With `memory`: the object as the server stored it."""
    agent: str = ""
    """What the client calls itself."""


def write_audit_flags(
    folder: Path,
    users: Sequence[str],
    *,
    memory: bool = False,
    others: bool = True,
    bodies: Sequence[Mapping[str, Any]] = (),
) -> dict[str, list[str]]:
    """Write the audit policy and return the flags that log the requests of these users in this folder.

    With `memory` the log has every state that they gave to nodes, eviction histories and the move ledger.
    `bodies` are more resources, as an audit policy names them, whose requests are logged with their body.
    Without `others` nothing else is logged but reads of what `memory` is about.
    """
    writes = {"level": "RequestResponse", "verbs": ["create", "update", "patch"], "resources": _MEMORY}
    rules = [
        *([{**writes, "users": [*users]}] if memory else []),
        {"level": "Request", "users": [*users], "resources": [*_WITH_BODIES, *map(dict, bodies)]},
        {"level": "Metadata", "users": [*users]}
        if others
        else {"level": "Metadata", "users": [*users], "verbs": ["get"], "resources": _MEMORY},
        {"level": "None"},
    ]
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitManagedFields": True, "rules": rules}
    (folder / _POLICY).write_text(yaml.safe_dump(policy))
    return {API_SERVER: [f"--audit-policy-file={folder / _POLICY}", f"--audit-log-path={folder / LOG}"]}


def read_log(folder: Path) -> list[Call]:
    """Return all requests in the order in which the server received them."""
    stages: dict[str, dict[str, Any]] = {}
    for file in sorted(folder.glob(_LOGS)):  # the one that is being written comes last
        for stage in _read_stages(file.read_text().splitlines()):
            stages[stage["auditID"]] = stage  # the entry of the last stage has the most fields
    return sorted(map(_read_call, stages.values()), key=lambda call: call.received)


def _read_stages(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            continue  # the server was killed while it wrote this one


def _read_call(stage: Mapping[str, Any]) -> Call:
    of, user = stage.get("objectRef", {}), stage["user"]
    is_over = stage["stage"] == "ResponseComplete"
    parts = (of.get("resource", ""), of.get("subresource", ""))
    return Call(
        user["username"],
        next(iter(user.get("extra", {}).get(_CREDENTIAL, ())), ""),
        stage["verb"],
        "/".join(filter(None, parts)),
        of.get("namespace", ""),
        of.get("name", ""),
        _read_time(stage["requestReceivedTimestamp"]),
        _read_time(stage["stageTimestamp"]) if is_over else None,
        stage.get("responseStatus", {}).get("code") if is_over else None,
        stage.get("requestObject", {}),
        stage.get("responseObject", {}) if is_over else {},
        stage.get("userAgent", ""),
    )


def _read_time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
