"""Workload controllers, autoscalers, disruption budgets and quotas."""

from typing import Any

import msgspec

from reberth.records.meta import Condition, LabelSelector, ObjectMeta, Quantities, Record


class RollingUpdate(Record, frozen=True):
    partition: int | None = None


class UpdateStrategy(Record, frozen=True):
    type: str | None = None
    rolling_update: RollingUpdate | None = None


class Ordinals(Record, frozen=True):
    start: int | None = None


class OwnerSpec(Record, frozen=True):
    """The fields that Reberth reads in the spec of a ReplicaSet, StatefulSet, Deployment or Job."""

    replicas: int | None = None
    paused: bool | None = None
    min_ready_seconds: int | None = None
    progress_deadline_seconds: int | None = None
    selector: LabelSelector | None = None
    update_strategy: UpdateStrategy | None = None
    ordinals: Ordinals | None = None


class OwnerStatus(Record, frozen=True):
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    current_replicas: int = 0
    updated_replicas: int = 0
    current_revision: str | None = None
    update_revision: str | None = None


class Owner(Record, frozen=True):
    """A ReplicaSet, StatefulSet, Deployment or Job."""

    metadata: ObjectMeta
    spec: OwnerSpec = OwnerSpec()
    status: OwnerStatus = OwnerStatus()


class ReplicationControllerSpec(Record, frozen=True):
    replicas: int | None = None
    min_ready_seconds: int | None = None
    selector: dict[str, str] | None = None


class ReplicationController(Record, frozen=True):
    metadata: ObjectMeta
    spec: ReplicationControllerSpec = ReplicationControllerSpec()
    status: OwnerStatus = OwnerStatus()


class RolloutSpec(Record, frozen=True):
    replicas: int | None = None
    paused: bool | None = None


class RolloutStatus(Record, frozen=True):
    """Which ReplicaSets are the new and the stable one, by the hashes of their templates."""

    abort: bool | None = None
    current_pod_hash: str | None = None
    current_step_index: int | None = None
    observed_generation: str | None = None
    stable_rs: str | None = msgspec.field(default=None, name="stableRS")
    phase: str | None = None


class Rollout(Record, frozen=True):
    """A Rollout of Argo, which owns ReplicaSets as a Deployment does."""

    metadata: ObjectMeta
    spec: RolloutSpec = RolloutSpec()
    status: RolloutStatus = RolloutStatus()


class GangPolicy(Record, frozen=True):
    min_count: int | None = None


class GroupPolicy(Record, frozen=True):
    """How the pods of a group are scheduled; exactly one of these is set."""

    basic: dict[str, Any] | None = None
    gang: GangPolicy | None = None


class GroupConstraints(Record, frozen=True):
    topology: tuple[dict[str, Any], ...] | None = None


class PodGroupSpec(Record, frozen=True):
    scheduling_policy: GroupPolicy = GroupPolicy()
    scheduling_constraints: GroupConstraints | None = None
    disruption_mode: Any = None  # an object with one key, and a text before 1.37


class PodGroup(Record, frozen=True):
    metadata: ObjectMeta
    spec: PodGroupSpec = PodGroupSpec()


class ScaleTarget(Record, frozen=True):
    """The workload to scale; KEDA assumes a Deployment when the kind is missing."""

    api_version: str = ""
    kind: str = ""
    name: str = ""


class AutoscalerSpec(Record, frozen=True):
    scale_target_ref: ScaleTarget = ScaleTarget()


class Autoscaler(Record, frozen=True):
    """A HorizontalPodAutoscaler, or a ScaledObject of KEDA."""

    metadata: ObjectMeta
    spec: AutoscalerSpec = AutoscalerSpec()


class DisruptionBudgetSpec(Record, frozen=True):
    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str | None = None


class DisruptionBudgetStatus(Record, frozen=True):
    observed_generation: int = 0
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    disrupted_pods: dict[str, str] | None = None
    conditions: tuple[Condition, ...] | None = None


class PodDisruptionBudget(Record, frozen=True):
    metadata: ObjectMeta
    spec: DisruptionBudgetSpec = DisruptionBudgetSpec()
    status: DisruptionBudgetStatus = DisruptionBudgetStatus()


class QuotaScope(Record, frozen=True):
    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class QuotaScopeSelector(Record, frozen=True):
    match_expressions: tuple[QuotaScope, ...] | None = None


class QuotaSpec(Record, frozen=True):
    scopes: tuple[str, ...] | None = None
    scope_selector: QuotaScopeSelector | None = None


class QuotaStatus(Record, frozen=True):
    hard: Quantities | None = None
    used: Quantities | None = None


class ResourceQuota(Record, frozen=True):
    metadata: ObjectMeta
    spec: QuotaSpec = QuotaSpec()
    status: QuotaStatus = QuotaStatus()


class PriorityClass(Record, frozen=True):
    metadata: ObjectMeta
    value: int = 0
    global_default: bool | None = None
    preemption_policy: str | None = None
