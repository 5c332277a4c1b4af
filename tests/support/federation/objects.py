"""Builders for templates, policies, bindings and Works, with the field names of the API."""

from typing import Any

import msgspec

from federation.api import Cluster, PropagationPolicy, ResourceBinding
from federation.objects.names import Key
from federation.objects.resources import HeldWork
from federation.objects.template import ResourceTemplate, read_template

NOW = 1_800_000_000.0
WEB = Key("apps/v1", "Deployment", "default", "web")


def meta(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "7", **more}


def template(
    name: str = "web", *, replicas: int | None = 3, status: Any = None, **more: Any
) -> ResourceTemplate:
    pod = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "100m"}}}]}}
    spec = {"template": pod} if replicas is None else {"replicas": replicas, "template": pod}
    wire = {"metadata": meta(name, **more), "spec": spec}
    return as_template(wire | ({"status": status} if status else {}))


def as_template(wire: dict[str, Any]) -> ResourceTemplate:
    return read_template(msgspec.json.encode(wire))


def policy(
    name: str, *selectors: dict[str, Any], namespace: str = "default", **spec: Any
) -> PropagationPolicy:
    chosen = [{"apiVersion": "apps/v1", "kind": "Deployment", **each} for each in selectors or ({},)]
    wire = {"metadata": meta(name) | {"namespace": namespace}, "spec": {"resourceSelectors": chosen, **spec}}
    return msgspec.convert(wire, PropagationPolicy)


def claimed_binding(*, name: str = "web-deployment", status: Any = None, **spec: Any) -> ResourceBinding:
    resource = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "namespace": "default",
        "name": "web",
        "uid": "u",
    }
    labels = {"propagationpolicy.karmada.io/permanent-id": "p"}
    wire = {
        "metadata": meta(name, generation=2, labels=labels),
        "spec": {"resource": resource, "replicas": 3, **spec},
        "status": status or {},
    }
    return msgspec.json.decode(msgspec.json.encode(wire), type=ResourceBinding)


def given(**replicas: int) -> list[dict[str, Any]]:
    return [{"name": name, "replicas": count} for name, count in replicas.items()]


def work(wire: dict[str, Any], **status: Any) -> HeldWork:
    """A Work as the API server gives it back."""
    kept = wire | {"metadata": wire["metadata"] | {"resourceVersion": "9", "uid": "w"}, "status": status}
    return msgspec.json.decode(msgspec.json.encode(kept), type=HeldWork)


def bare_cluster(name: str = "m1", **more: Any) -> Cluster:
    return msgspec.convert({"metadata": meta(name), **more}, Cluster)
