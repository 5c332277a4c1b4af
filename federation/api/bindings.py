"""ResourceBinding and ClusterResourceBinding: a workload, its clusters and its eviction tasks."""

import msgspec

from federation.api.placements import Count, Failover, Placement, PurgeMode, Suspension
from reberth.records import (
    Condition,
    Labels,
    NodeSelector,
    ObjectMeta,
    Quantities,
    Record,
    Toleration,
)

WORK_API_VERSION = "work.karmada.io/v1alpha2"
BINDING_KINDS = NAMESPACED, CLUSTER_SCOPED = "ResourceBinding", "ClusterResourceBinding"
SCHEDULED = "Scheduled"
APPLIED_PLACEMENT = "policy.karmada.io/applied-placement"


class BoundResource(Record, frozen=True):
    """The object that is propagated."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class NodeClaim(Record, frozen=True):
    hard_node_affinity: NodeSelector | None = None
    node_selector: Labels | None = None
    tolerations: tuple[Toleration, ...] | None = None


class ReplicaRequirements(Record, frozen=True):
    """What one replica requires of a node."""

    node_claim: NodeClaim | None = None
    resource_request: Quantities | None = None
    namespace: str = ""
    priority_class_name: str = ""


class Component(Record, frozen=True):
    """A part of a workload that has several, each with its own replicas."""

    name: str
    replicas: Count = 0
    replica_requirements: ReplicaRequirements | None = None


class TargetCluster(Record, frozen=True):
    name: str
    replicas: Count = 0


class GracefulEvictionTask(Record, frozen=True):
    from_cluster: str
    purge_mode: PurgeMode | None = None
    replicas: Count | None = None
    reason: str = ""
    message: str = ""
    producer: str = ""
    grace_period_seconds: int | None = None
    suppress_deletion: bool | None = None
    creation_timestamp: str | None = None
    preserved_label_state: Labels | None = None
    clusters_before_failover: tuple[str, ...] | None = None
    affinity_name: str = ""
    """The cluster group that was in use."""


class Handover(Record, frozen=True):
    """Make before break: these old replicas stay until the new ones are ready.

    `origin` is where all replicas were, with their cluster group: there the workload returns if the new ones
    are not ready `until` the time given. `returns` counts that since the last handover that succeeded.
    """

    timeout_seconds: int | None = None
    clusters: tuple[TargetCluster, ...] | None = None
    until: str | None = None
    origin: tuple[TargetCluster, ...] | None = None
    origin_affinity: str | None = None
    returns: int | None = None
    returned_at: str | None = None


class ActiveEviction(Record, frozen=True):
    """A past eviction; old objects call its time `createTimestamp`.

    `fruitless` is how many moves in a row had brought nothing when it began.
    """

    cluster_name: str
    creation_timestamp: str | None = None
    reason: str = ""
    fruitless: Count = 0
    create_timestamp: str | None = None


class BindingSnapshot(Record, frozen=True):
    name: str
    namespace: str = ""
    clusters: tuple[TargetCluster, ...] | None = None


class BindingSchedulePriority(Record, frozen=True):
    priority: int = 0


class BindingSpec(Record, frozen=True):
    resource: BoundResource = BoundResource()
    propagate_deps: bool | None = None
    replica_requirements: ReplicaRequirements | None = None
    replicas: Count = 0
    components: tuple[Component, ...] | None = None
    clusters: tuple[TargetCluster, ...] | None = None
    placement: Placement | None = None
    graceful_eviction_tasks: tuple[GracefulEvictionTask, ...] | None = None
    active_eviction_history: tuple[ActiveEviction, ...] | None = None
    required_by: tuple[BindingSnapshot, ...] | None = None
    scheduler_name: str = ""
    failover: Failover | None = None
    conflict_resolution: str | None = None
    reschedule_triggered_at: str | None = None
    handover: Handover | None = None
    suspension: Suspension | None = None
    preserve_resources_on_deletion: bool | None = None
    schedule_priority: BindingSchedulePriority | None = None


class AggregatedStatus(Record, frozen=True):
    """The status of the copy in one cluster."""

    cluster_name: str
    status: msgspec.Raw = msgspec.Raw()
    applied: bool | None = None
    applied_message: str = ""
    health: str = ""
    settled: bool | None = None
    creation_timestamp: str | None = None
    unhealthy_since: str | None = None
    create_timestamp: str | None = None


class FailbackStatus(Record, frozen=True):
    """An earlier cluster group that could take the workload back, and since when."""

    affinity_name: str
    since: str


class BindingStatus(Record, frozen=True):
    scheduler_observed_generation: int = 0
    scheduler_observing_affinity_name: str = ""
    old_observed_affinity_name: str = msgspec.field(default="", name="SchedulerObservedAffinityName")
    last_scheduled_time: str | None = None
    failback: FailbackStatus | None = None
    conditions: tuple[Condition, ...] | None = None
    aggregated_status: tuple[AggregatedStatus, ...] | None = None

    @property
    def observed_affinity(self) -> str:
        """The cluster group that the last decision used, in either spelling."""
        return self.scheduler_observing_affinity_name or self.old_observed_affinity_name


class ResourceBinding(Record, frozen=True):
    """A ResourceBinding, or without a namespace a ClusterResourceBinding."""

    metadata: ObjectMeta
    api_version: str = ""
    kind: str = ""
    spec: BindingSpec = BindingSpec()
    status: BindingStatus = BindingStatus()


def kind_of(binding: ResourceBinding) -> str:
    """Give the kind of a binding. Objects of a list do not say it; a namespace does."""
    return NAMESPACED if binding.metadata.namespace else CLUSTER_SCOPED
