"""PropagationPolicy and ClusterPropagationPolicy: what is propagated, and its placement."""

from federation.api.placements import Failover, Placement, Suspension
from reberth.records import LabelSelector, ObjectMeta, Record

POLICY_API_VERSION = "policy.karmada.io/v1alpha1"
DEFAULT_SCHEDULER = "default-scheduler"


class ResourceSelector(Record, frozen=True):
    api_version: str
    kind: str
    namespace: str = ""
    name: str = ""
    label_selector: LabelSelector | None = None


class PolicySchedulePriority(Record, frozen=True):
    priority_class_source: str = ""
    priority_class_name: str = ""


class PropagationSpec(Record, frozen=True):
    resource_selectors: tuple[ResourceSelector, ...]
    association: bool | None = None  # the old spelling of propagateDeps
    propagate_deps: bool | None = None
    placement: Placement = Placement()
    priority: int | None = None
    preemption: str | None = None
    dependent_overrides: tuple[str, ...] | None = None
    scheduler_name: str = DEFAULT_SCHEDULER
    failover: Failover | None = None
    conflict_resolution: str | None = None
    activation_preference: str | None = None
    suspension: Suspension | None = None
    preserve_resources_on_deletion: bool | None = None
    schedule_priority: PolicySchedulePriority | None = None


class PropagationPolicy(Record, frozen=True):
    """A PropagationPolicy, or a ClusterPropagationPolicy if it has no namespace."""

    metadata: ObjectMeta
    spec: PropagationSpec
    api_version: str = ""
    kind: str = ""
