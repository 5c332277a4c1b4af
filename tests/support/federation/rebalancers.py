"""Builders for rebalancers, their entries, and the bindings they rebalance."""

from collections.abc import Mapping
from typing import Any

import msgspec

from federation.api import ObservedWorkload, RebalancedWorkload, ResourceBinding, WorkloadRebalancer
from federation.api.labels import LABELS
from federation.rebalancing.review import Limits, Review, review
from reberth.values.timestamp import parse_time, write_time
from tests.support.federation.clusters import binding

T = parse_time("2026-11-18T12:00:00Z")
HOUR = 3600
UNLIMITED = Limits()
CLAIM = {LABELS["PropagationPolicy"]: "id"}


def at(seconds: float) -> str:
    return write_time(T + seconds)


def workload(name: str) -> RebalancedWorkload:
    return RebalancedWorkload("apps/v1", "Deployment", name, "default")


def entry(name: str, **given: Any) -> ObservedWorkload:
    wire = {"workload": msgspec.to_builtins(workload(name)), **given}
    return msgspec.convert(wire, ObservedWorkload)


def rebalancer(*names: str, entries: tuple[ObservedWorkload, ...] = (), **spec: Any) -> WorkloadRebalancer:
    """One that was created at T."""
    wire = {
        "metadata": {
            "name": "demo",
            "uid": "u",
            "resourceVersion": "5",
            "generation": 1,
            "creationTimestamp": at(0),
        },
        "spec": {"workloads": [msgspec.to_builtins(workload(name)) for name in names], **spec},
        "status": {"observedWorkloads": [msgspec.to_builtins(each) for each in entries]},
    }
    return msgspec.convert(wire, WorkloadRebalancer)


def bound(
    clusters: Mapping[str, int], *, trigger: float | None = None, last: float | None = None, **more: Any
) -> ResourceBinding:
    """A binding with its clusters, and when it was triggered and scheduled, in seconds after T."""
    spec: dict[str, Any] = {"rescheduleTriggeredAt": at(trigger)} if trigger is not None else {}
    status = {"lastScheduledTime": at(last)} if last is not None else {}
    return binding(
        sum(clusters.values()),
        at=clusters,
        **spec,
        **{"metadata": {"labels": CLAIM}, **more, "status": {**status, **more.get("status", {})}},
    )


def well(**replicas: int) -> dict[str, Any]:
    """The status of a binding whose copies have so many replicas available."""
    return {
        "aggregatedStatus": [
            {
                "clusterName": name,
                "applied": True,
                "health": "Healthy",
                "status": {"availableReplicas": count},
            }
            for name, count in replicas.items()
        ]
    }


def look(
    one: WorkloadRebalancer,
    bindings: Mapping[str, ResourceBinding],
    *,
    now: float = 1,
    limits: Limits = UNLIMITED,
) -> Review:
    wanted = one.spec.workloads or ()
    return review(one, wanted, lambda each: bindings.get(each.name), limits=limits, now=T + now)


def results(found: Review) -> dict[str, str | None]:
    return {each.workload.name: each.result for each in found.status.observed_workloads or ()}
