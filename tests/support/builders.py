"""Builders for Kubernetes objects, each in one readable line.

    pod("web-1", node="n1", cpu="250m", labels={"app": "web"})
    deployment("web", replicas=3, cpu="100m")

They are plain dictionaries, as the API server reads and writes them. `as_record(...)` makes a record of one.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from localcluster import nodes
from reberth import records

Object = dict[str, Any]
R = TypeVar("R", bound=records.Record)
_uids = itertools.count(1)


def as_record(kind: type[R], built: Object) -> R:
    """The record of an object as the API server would give it."""
    return msgspec.json.decode(msgspec.json.encode(built), type=kind)


def meta(name: str, namespace: str | None = None, **fields: Any) -> Object:
    """Metadata; fields that are None are left out."""
    named = {"name": name, "namespace": namespace, "uid": fields.pop("uid", None) or f"uid-{next(_uids)}"}
    return {key: value for key, value in (named | fields).items() if value is not None}


def node(name: str, **fields: Any) -> Object:
    """A Ready node; fields as in `localcluster.nodes.node`."""
    return nodes.node(name, **fields)


def owner(kind: str, name: str, *, uid: str | None = None, api_version: str = "apps/v1") -> Object:
    """A controller's ownerReference."""
    uid = uid or f"uid-of-{kind}-{name}".lower()
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": True}


def resources(cpu: str | None = None, memory: str | None = None, **extended: str) -> Object:
    asked = {"cpu": cpu, "memory": memory, **extended}
    return {"requests": {name: value for name, value in asked.items() if value is not None}}


def container(name: str = "main", *, image: str = "img", **fields: Any) -> Object:
    """A container that requests `cpu` and `memory`; other fields go in as they are."""
    asked = {key: fields.pop(key) for key in ("cpu", "memory") if key in fields}
    return {"name": name, "image": image, "resources": resources(**asked), **fields}


def pod_spec(
    *,
    cpu: str | None = None,
    memory: str | None = None,
    containers: Sequence[Object] | None = None,
    **fields: Any,
) -> Object:
    made = list(containers) if containers else [container(cpu=cpu, memory=memory)]
    return {"containers": made, "terminationGracePeriodSeconds": 0, **fields}


def pod(
    name: str,
    *,
    namespace: str = "default",
    node: str | None = None,
    phase: str | None = None,
    owned_by: Object | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    created: str | None = None,
    deleted: str | None = None,
    status: Object | None = None,
    **spec: Any,
) -> Object:
    """A pod, bound when `node` is named; `spec` takes fields of the PodSpec and cpu= and memory=."""
    metadata = meta(
        name,
        namespace,
        uid=spec.pop("uid", None),
        labels=dict(labels) if labels else None,
        annotations=dict(annotations) if annotations else None,
        ownerReferences=[owned_by] if owned_by else None,
        creationTimestamp=created,
        deletionTimestamp=deleted,
    )
    bound = {"nodeName": node} if node else {}
    state = {"phase": phase or ("Running" if node else "Pending"), **(status or {})}
    content = {**pod_spec(**spec), **bound}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": content, "status": state}


def deployment(name: str, **fields: Any) -> Object:
    """A Deployment whose pods carry `app: name`; fields as in `replicated`."""
    return replicated("Deployment", name, **fields)


def replica_set(name: str, **fields: Any) -> Object:
    return replicated("ReplicaSet", name, **fields)


def stateful_set(name: str, **fields: Any) -> Object:
    made = replicated("StatefulSet", name, **fields)
    made["spec"]["serviceName"] = name
    return made


def replicated(
    kind: str,
    name: str,
    *,
    namespace: str = "default",
    replicas: int = 1,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Object:
    """An owner of apps/v1; labels and annotations go to its pods, `spec` is that of `pod`."""
    app = {"app": name}
    template = {
        "metadata": {"labels": {**app, **(labels or {})}, "annotations": dict(annotations or {})},
        "spec": pod_spec(**spec),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": replicas, "selector": {"matchLabels": app}, "template": template},
    }


def pdb(
    name: str,
    app: str | None = None,
    *,
    namespace: str = "default",
    min_available: int | str | None = None,
    max_unavailable: int | str | None = None,
    status: Object | None = None,
    **spec: Any,
) -> Object:
    """A PodDisruptionBudget over the pods with `app: app` (default: its own name)."""
    limits = {"minAvailable": min_available, "maxUnavailable": max_unavailable}
    given = {key: value for key, value in limits.items() if value is not None}
    selector = {"matchLabels": {"app": app or name}}
    made = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": selector, **given, **spec},
    }
    return {**made, "status": status} if status else made
