"""Builders for clusters and bindings to be scheduled, with the field names of the API."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from federation.api import APPLIED_PLACEMENT, Cluster, ResourceBinding
from federation.scheduling import Decision, Fleet, decide
from tests.support.federation.objects import NOW

DEPLOYMENT = {"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]}

DUPLICATED: dict[str, Any] = {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}
AGGREGATED: dict[str, Any] = {
    "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
}
DYNAMIC: dict[str, Any] = {
    "replicaScheduling": {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {"dynamicWeight": "AvailableReplicas"},
    }
}


def weighted(**weights: int) -> dict[str, Any]:
    """A placement with fixed weights."""
    rules = [
        {"targetCluster": {"clusterNames": [name]}, "weight": weight} for name, weight in weights.items()
    ]
    scheduling = {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        **({"weightPreference": {"staticWeightList": rules}} if rules else {}),
    }
    return {"replicaScheduling": scheduling}


def spread(**bounds: tuple[int | None, int | None]) -> dict[str, Any]:
    """Spread constraints: cluster=(least, most), region=(least, most)."""
    return {
        "spreadConstraints": [
            {"spreadByField": field, "minGroups": least, "maxGroups": most}
            for field, (least, most) in bounds.items()
        ]
    }


def groups(**names: Iterable[str]) -> dict[str, Any]:
    """Affinity groups by name."""
    return {
        "clusterAffinities": [
            {"affinityName": name, "clusterNames": list(members)} for name, members in names.items()
        ]
    }


def cluster(
    name: str,
    available: int = 100,
    *,
    labels: Mapping[str, str] | None = None,
    status: Mapping[str, Any] | None = None,
    leaving: bool = False,
    **spec: Any,
) -> Cluster:
    """A cluster with room for so many pods; a taint is written `key=value:Effect`."""
    metadata: dict[str, Any] = {"name": name, "labels": labels}
    if leaving:
        metadata["deletionTimestamp"] = "2026-11-18T12:00:00Z"
    if "taints" in spec:
        spec["taints"] = [read_taint(text) for text in spec["taints"]]
    fields = {
        "apiEnablements": [DEPLOYMENT],
        "resourceSummary": {"allocatable": {"pods": available}},
        **(status or {}),
    }
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": fields}, Cluster)


def read_taint(text: str) -> dict[str, str]:
    pair, effect = text.split(":")
    key, _, value = pair.partition("=")
    return {"key": key, "value": value, "effect": effect}


def binding(
    replicas: int = 0,
    placement: Mapping[str, Any] | None = None,
    *,
    at: Mapping[str, int] | None = None,
    uid: str = "",
    applied: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    evicting: Iterable[str] = (),
    **spec: Any,
) -> ResourceBinding:
    """A binding of a Deployment, that is in the clusters `at`, with the placement that was `applied` last."""
    annotations = {} if applied is None else {APPLIED_PLACEMENT: msgspec.json.encode(applied).decode()}
    return _read(
        {
            "metadata": {
                "name": "web",
                "namespace": "default",
                "annotations": annotations,
                **(metadata or {}),
            },
            "spec": {
                "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": uid},
                "replicas": replicas,
                "placement": dict(placement or {}),
                "clusters": [{"name": name, "replicas": count} for name, count in (at or {}).items()],
                "gracefulEvictionTasks": [{"fromCluster": name} for name in evicting],
                **spec,
            },
            "status": dict(status or {}),
        },
    )


def _read(wire: Any) -> ResourceBinding:
    """Read it as it comes: some parts of it stay as they were written."""
    return msgspec.json.decode(msgspec.json.encode(wire), type=ResourceBinding)


DONE = "2026-11-18T12:00:01Z"


def triggered_binding(*args: Any, status: Mapping[str, Any] | None = None, **kwargs: Any) -> ResourceBinding:
    """A binding with a trigger that the scheduler has not handled."""
    return binding(
        *args,
        status={"lastScheduledTime": DONE, **(status or {})},
        rescheduleTriggeredAt="2026-11-18T12:00:02Z",
        **kwargs,
    )


def decided(asked: ResourceBinding, *clusters: Cluster) -> Decision:
    return decide(asked, Fleet(clusters), now=NOW)


def placed(asked: ResourceBinding, *clusters: Cluster) -> dict[str, int]:
    """Where the replicas go."""
    return {target.name: target.replicas for target in decided(asked, *clusters).clusters}


def rooms(*available: int) -> list[Cluster]:
    """Clusters m1, m2, ... with so much room each."""
    return [cluster(f"m{number}", room) for number, room in enumerate(available, 1)]
