"""A wish that workloads be scheduled anew, and what became of it."""

from enum import StrEnum

from reberth.records import ObjectMeta, Record

APPS_API_VERSION = "apps.karmada.io/v1alpha1"


class WorkloadReference(Record, frozen=True):
    """The object to schedule anew; without a namespace one that lives in none."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""


class RebalanceResult(StrEnum):
    SUCCESSFUL = "Successful"
    FAILED = "Failed"


class ObservedWorkload(Record, frozen=True):
    workload: WorkloadReference
    result: RebalanceResult | None = None
    reason: str | None = None


class RebalancerSpec(Record, frozen=True):
    workloads: tuple[WorkloadReference, ...]
    ttl_seconds_after_finished: int | None = None


class RebalancerStatus(Record, frozen=True):
    observed_workloads: tuple[ObservedWorkload, ...] | None = None
    observed_generation: int = 0
    finish_time: str | None = None


class WorkloadRebalancer(Record, frozen=True):
    metadata: ObjectMeta
    spec: RebalancerSpec
    api_version: str = ""
    kind: str = ""
    status: RebalancerStatus = RebalancerStatus()
