"""Pods as the API server gives them: with a generation, a template, and what admission adds."""

from typing import Any

from reberth.cluster.object_files import load_objects
from reberth.cluster.pods.requests import NEWEST
from reberth.cluster.snapshot import Snapshot
from reberth.forecast.replacement.next_pod import NextPod, find_next
from reberth.values.refusal import Refused
from tests.support.builders import Object, owner, pod_spec

NAMESPACE = "shop"
VERSION = NEWEST
DEFAULT_TOLERATIONS = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute"}
    for key in ("not-ready", "unreachable")
]
LABELS = {"app": "web"}
HASH = {"pod-template-hash": "5d8f7c"}
_OWNER_LABELS = {
    "ReplicaSet": {**LABELS, **HASH},
    "StatefulSet": LABELS,
    "ReplicationController": LABELS,
    "CloneSet": LABELS,
    "Job": LABELS,
}
_VERSIONS = {"ReplicationController": "v1", "CloneSet": "apps.kruise.io/v1alpha1", "Job": "batch/v1"}


def replica_owner(
    kind: str = "ReplicaSet", *, labels: Object | None = None, status: Object | None = None, **given: Any
) -> Object:
    """The controller `web`; fields of the pods' spec are given, and `owner_spec` for its own."""
    owner_spec, is_standalone = given.pop("owner_spec", {}), given.pop("standalone", False)
    meta = {
        "name": "web",
        "namespace": NAMESPACE,
        "uid": f"uid-of-{kind}-web".lower(),
        "generation": 1,
        "labels": LABELS if is_standalone else _OWNER_LABELS[kind],
    }
    template = {"metadata": {"labels": labels or _OWNER_LABELS[kind]}, "spec": _defaulted(pod_spec(**given))}
    return {
        "apiVersion": _VERSIONS.get(kind, "apps/v1"),
        "kind": kind,
        "metadata": meta,
        "spec": {"replicas": 2, "template": template, **owner_spec},
        "status": {"observedGeneration": 1, "replicas": 2, **(status or {})},
    }


def replica(
    name: str = "web-1",
    *,
    kind: str = "ReplicaSet",
    generation: int = 1,
    created: str = "2026-11-01T00:00:00Z",
    labels: Object | None = None,
    annotations: Object | None = None,
    **spec: Any,
) -> Object:
    """A bound pod of `web` as it was created, or as it was changed since."""
    given = {"tolerations": DEFAULT_TOLERATIONS, "priority": 0, "preemptionPolicy": "PreemptLowerPriority"}
    meta = {
        "name": name,
        "namespace": NAMESPACE,
        "uid": f"uid-of-{name}",
        "generation": generation,
        "creationTimestamp": created,
        "labels": labels or _OWNER_LABELS[kind],
        "annotations": annotations or {},
        "ownerReferences": [owner(kind, "web", api_version=_VERSIONS.get(kind, "apps/v1"))],
    }
    content = {**_defaulted(pod_spec(**spec)), "nodeName": "n-1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {**given, **content},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def priority_class(name: str, value: int, *, created: str = "2026-10-01T00:00:00Z", **fields: Any) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name, "uid": name, "creationTimestamp": created},
        "value": value,
        **fields,
    }


SYSTEM_CLASS = priority_class("system-node-critical", 2_000_001_000)
"""A real cluster always has it: without any class, none was read."""


def look(*objects: Object) -> Snapshot:
    reading = load_objects([SYSTEM_CLASS, *objects], now=0.0, version=VERSION)
    assert not reading.faults, reading.faults
    return reading.snapshot


def next_of(*objects: Object, pod: str = "web-1") -> NextPod | Refused:
    """The next pod in the place of this one."""
    snapshot = look(*objects)
    place = snapshot.pods.named(NAMESPACE, pod)
    assert place is not None
    return find_next(snapshot, snapshot.pods.rows[place])


def made_of(*objects: Object, pod: str = "web-1") -> NextPod:
    found = next_of(*objects, pod=pod)
    assert isinstance(found, NextPod), found
    return found


def refused_of(*objects: Object, pod: str = "web-1") -> Refused:
    found = next_of(*objects, pod=pod)
    assert isinstance(found, Refused), found
    return found


def requests_in(found: NextPod, container: str = "main") -> Object:
    """The requests of a container of the next pod."""
    spec = found.template.spec
    (one,) = [
        each for each in (*(spec.containers or ()), *(spec.init_containers or ())) if each.name == container
    ]
    return dict((one.resources.requests if one.resources else None) or {})


def _defaulted(spec: Object) -> Object:
    """What the API server fills in for templates and pods alike."""
    return {"restartPolicy": "Always", "schedulerName": "default-scheduler", **spec}
