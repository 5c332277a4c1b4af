"""Placement: where a workload may go and how its replicas are divided, in policies and in bindings.

Fields with a default in the schema have the same default here, so that a hand-written file reads like a
stored object.
"""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from reberth.records import LabelSelector, NodeSelectorRequirement, Record, Toleration

Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Weight = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Texts = str | tuple[str, ...]


class FieldSelector(Record, frozen=True):
    """Requirements on a cluster's provider, region and zone."""

    match_expressions: tuple[NodeSelectorRequirement, ...] | None = None


class ClusterAffinity(Record, frozen=True):
    """A group of clusters: all set fields must match, and `exclude` takes precedence."""

    label_selector: LabelSelector | None = None
    field_selector: FieldSelector | None = None
    cluster_names: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None


class OverflowAffinity(ClusterAffinity, frozen=True):
    """A group that takes the replicas for which the groups before it have no room."""

    affinity_name: str = ""


class ClusterAffinityTerm(ClusterAffinity, frozen=True):
    """A named group; the groups are tried in the order of the list."""

    affinity_name: str = ""
    overflow_affinities: tuple[OverflowAffinity, ...] | None = None


class ClusterToleration(Toleration, frozen=True):
    """A toleration of a cluster's taint; without seconds it lasts forever."""

    toleration_seconds: int | None = None


class SpreadField(StrEnum):
    CLUSTER = "cluster"
    REGION = "region"
    ZONE = "zone"
    PROVIDER = "provider"


class SpreadConstraint(Record, frozen=True):
    """How many clusters, or regions, a workload uses; without `max_groups` there is no limit."""

    spread_by_field: SpreadField | None = None
    spread_by_label: str | None = None
    max_groups: Count | None = None
    min_groups: Count | None = None


class StaticWeight(Record, frozen=True):
    target_cluster: ClusterAffinity
    weight: Weight


class WeightPreference(Record, frozen=True):
    static_weight_list: tuple[StaticWeight, ...] | None = None
    dynamic_weight: str | None = None


class SchedulingType(StrEnum):
    DUPLICATED = "Duplicated"
    DIVIDED = "Divided"


class DivisionPreference(StrEnum):
    AGGREGATED = "Aggregated"
    WEIGHTED = "Weighted"


class ReplicaScheduling(Record, frozen=True):
    replica_scheduling_type: SchedulingType = SchedulingType.DIVIDED
    replica_division_preference: DivisionPreference = DivisionPreference.WEIGHTED
    weight_preference: WeightPreference | None = None


class WorkloadAffinityTerm(Record, frozen=True):
    group_by_label_key: str = ""


class WorkloadAffinity(Record, frozen=True):
    affinity: WorkloadAffinityTerm | None = None
    anti_affinity: WorkloadAffinityTerm | None = None


class Placement(Record, frozen=True):
    cluster_affinity: ClusterAffinity | None = None
    cluster_affinities: tuple[ClusterAffinityTerm, ...] | None = None
    cluster_tolerations: tuple[ClusterToleration, ...] | None = None
    spread_constraints: tuple[SpreadConstraint, ...] | None = None
    replica_scheduling: ReplicaScheduling | None = None
    workload_affinity: WorkloadAffinity | None = None


class PurgeMode(StrEnum):
    """What happens to the old copy after an eviction; both old spellings are read."""

    DIRECTLY = "Directly"
    GRACEFULLY = "Gracefully"
    NEVER = "Never"

    @classmethod
    def _missing_(cls, value: object) -> "PurgeMode | None":
        old = {"Immediately": cls.DIRECTLY, "Graciously": cls.GRACEFULLY}
        return old.get(str(value))


class StatePreservationRule(Record, frozen=True):
    alias_label_name: str
    json_path: str


class StatePreservation(Record, frozen=True):
    rules: tuple[StatePreservationRule, ...] | None = None


class PreConditions(Record, frozen=True):
    """Conditions before a failover may begin."""

    delay_seconds: int | None = None
    healthy_state: Texts | None = None


class DecisionConditions(Record, frozen=True):
    """How long a workload may be unhealthy; `healthyState` is read because old policies have it."""

    toleration_seconds: int | None = None
    healthy_state: Texts | None = None


class OnGraceEnd(StrEnum):
    """What becomes of an old copy whose grace period ends while it is better than the new ones."""

    KEEP_BETTER = "KeepBetter"
    PURGE = "Purge"


class ApplicationFailover(Record, frozen=True):
    pre_conditions: PreConditions | None = None
    decision_conditions: DecisionConditions | None = None
    purge_mode: PurgeMode | None = None
    grace_period_seconds: int | None = None
    block_predecessor_seconds: int = 600
    """0 is for ever."""
    on_grace_end: OnGraceEnd = OnGraceEnd.KEEP_BETTER
    state_preservation: StatePreservation | None = None
    preserve_available_replicas: bool = False
    """Replicas that get no node go to other clusters; the workload leaves if that does not help."""


class ClusterFailover(Record, frozen=True):
    purge_mode: PurgeMode | None = None
    state_preservation: StatePreservation | None = None


class Failback(Record, frozen=True):
    """Return to an earlier group after it could have taken the workload for this long."""

    stabilization_seconds: int = 300


class OnTimeout(StrEnum):
    """What happens when new copies are not ready in time: the workload returns, or old copies go anyway."""

    RETURN = "Return"
    LET_GO = "LetGo"


class HandoverMode(StrEnum):
    """Whether new copies are made before old ones go, or after."""

    MAKE_FIRST = "MakeFirst"
    BREAK_FIRST = "BreakFirst"


class HandoverPolicy(Record, frozen=True):
    """How copies change clusters when nothing forces them to; ours alone."""

    timeout_seconds: int | None = None
    on_timeout: OnTimeout = OnTimeout.RETURN
    mode: HandoverMode = HandoverMode.MAKE_FIRST


class Failover(Record, frozen=True):
    application: ApplicationFailover | None = None
    cluster: ClusterFailover | None = None
    failback: Failback | None = None
    handover: HandoverPolicy | None = None


class SuspendedClusters(Record, frozen=True):
    cluster_names: tuple[str, ...] | None = None


class Suspension(Record, frozen=True):
    """What is suspended; `scheduling` exists only in bindings."""

    dispatching: bool | None = None
    dispatching_on_clusters: SuspendedClusters | None = None
    scheduling: bool | None = None
