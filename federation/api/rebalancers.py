"""WorkloadRebalancer: a request to reschedule workloads, and its results."""

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from federation.api.bindings import TargetCluster
from federation.api.policies import ResourceSelector
from reberth.records import ObjectMeta, Record

APPS_API_VERSION = "apps.karmada.io/v1alpha1"
BINDING_NOT_FOUND = "ReferencedBindingNotFound"
NOT_READY_IN_TIME = "NotReadyInTime"
NOT_SCHEDULED = "NotScheduled"
"""No scheduler looks at the binding: it only follows others, or no policy selects its object any more."""
DRY_RUN = "DryRun"
"""The reason of an entry that only says where a workload would move."""


class RebalancedWorkload(Record, frozen=True):
    """The object to reschedule; without a namespace it is cluster-scoped."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""


class RebalanceResult(StrEnum):
    SUCCESSFUL = "Successful"
    FAILED = "Failed"


class ObservedWorkload(Record, frozen=True):
    """The result for one workload: when it was triggered, where it moved, and its health there."""

    workload: RebalancedWorkload
    result: RebalanceResult | None = None
    reason: str | None = None
    message: str | None = None
    triggered_at: str | None = None
    origin: tuple[TargetCluster, ...] | None = msgspec.field(default=None, name="from")
    to: tuple[TargetCluster, ...] | None = None
    health: str | None = None


class RebalancerSpec(Record, frozen=True):
    """The workloads to reschedule, by name or by labels, and how many replicas may move at once.

    With `dry_run` none is rescheduled: the status says where they would move.
    """

    workloads: tuple[RebalancedWorkload, ...] | None = None
    workload_selectors: tuple[ResourceSelector, ...] | None = None
    make_before_break: bool = True
    handover_timeout_seconds: int | None = None
    max_moving_replicas: Annotated[int, Meta(ge=1)] | None = None
    ttl_seconds_after_finished: int | None = None
    dry_run: bool = False


class RebalancerStatus(Record, frozen=True):
    observed_workloads: tuple[ObservedWorkload, ...] | None = None
    observed_generation: int = 0
    finish_time: str | None = None


class WorkloadRebalancer(Record, frozen=True):
    metadata: ObjectMeta
    spec: RebalancerSpec = RebalancerSpec()
    api_version: str = ""
    kind: str = ""
    status: RebalancerStatus = RebalancerStatus()
