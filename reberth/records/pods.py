"""Pods: every field that kube-scheduler reads, and the fields that show the pod's health."""

import msgspec

from reberth.records.meta import LabelSelector, ObjectMeta, Quantities, Record


class Resources(Record, frozen=True):
    requests: Quantities | None = None


class ContainerPort(Record, frozen=True):
    host_port: int | None = None
    host_ip: str | None = msgspec.field(default=None, name="hostIP")
    protocol: str | None = None


class RestartRule(Record, frozen=True):
    action: str | None = None


class Container(Record, frozen=True):
    name: str = ""
    image: str = ""
    ports: tuple[ContainerPort, ...] | None = None
    resources: Resources | None = None
    restart_policy: str | None = None
    restart_policy_rules: tuple[RestartRule, ...] | None = None


class NodeSelectorRequirement(Record, frozen=True):
    key: str
    operator: str
    values: tuple[str, ...] | None = None


class NodeSelectorTerm(Record, frozen=True):
    match_expressions: tuple[NodeSelectorRequirement, ...] | None = None
    match_fields: tuple[NodeSelectorRequirement, ...] | None = None


class NodeSelector(Record, frozen=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] | None = None


class PreferredSchedulingTerm(Record, frozen=True):
    weight: int
    preference: NodeSelectorTerm


class NodeAffinity(Record, frozen=True):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] | None = None


class PodAffinityTerm(Record, frozen=True):
    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] | None = None
    mismatch_label_keys: tuple[str, ...] | None = None


class WeightedPodAffinityTerm(Record, frozen=True):
    weight: int
    pod_affinity_term: PodAffinityTerm


class PodAffinity(Record, frozen=True):
    """Used for podAffinity and podAntiAffinity, which have the same form."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] | None = None


class Affinity(Record, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Record, frozen=True):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class TopologySpreadConstraint(Record, frozen=True):
    max_skew: int
    topology_key: str
    when_unsatisfiable: str
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] | None = None


class ClaimVolume(Record, frozen=True):
    claim_name: str = ""
    read_only: bool | None = None


class ClaimSpec(Record, frozen=True):
    """The resources that a PersistentVolumeClaim requests."""

    access_modes: tuple[str, ...] | None = None
    selector: LabelSelector | None = None
    resources: Resources | None = None
    volume_name: str | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class ClaimTemplate(Record, frozen=True):
    spec: ClaimSpec = ClaimSpec()


class EphemeralVolume(Record, frozen=True):
    """An ephemeral volume: its claim is created for one pod and deleted with it."""

    volume_claim_template: ClaimTemplate | None = None


class DiskVolume(Record, frozen=True):
    """gcePersistentDisk and awsElasticBlockStore."""

    pd_name: str | None = None
    volume_id: str | None = msgspec.field(default=None, name="volumeID")
    read_only: bool | None = None


class IscsiVolume(Record, frozen=True):
    target_portal: str = ""
    iqn: str = ""
    lun: int = 0
    read_only: bool | None = None


class RbdVolume(Record, frozen=True):
    monitors: tuple[str, ...] | None = None
    image: str = ""
    pool: str | None = None
    read_only: bool | None = None


class IdentifiedVolume(Record, frozen=True):
    """The form of cinder and portworxVolume."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class AzureDiskVolume(Record, frozen=True):
    disk_uri: str = msgspec.field(default="", name="diskURI")
    kind: str | None = None


class ImageVolume(Record, frozen=True):
    reference: str | None = None


class Present(Record, frozen=True):
    """A member of which only the presence matters."""


class Volume(Record, frozen=True):
    name: str = ""
    host_path: Present | None = None
    empty_dir: Present | None = None
    gce_persistent_disk: DiskVolume | None = None
    aws_elastic_block_store: DiskVolume | None = None
    iscsi: IscsiVolume | None = None
    persistent_volume_claim: ClaimVolume | None = None
    rbd: RbdVolume | None = None
    cinder: IdentifiedVolume | None = None
    azure_disk: AzureDiskVolume | None = None
    portworx_volume: IdentifiedVolume | None = None
    ephemeral: EphemeralVolume | None = None
    image: ImageVolume | None = None


class SchedulingGate(Record, frozen=True):
    name: str


class SchedulingGroup(Record, frozen=True):
    pod_group_name: str | None = None


class WorkloadReference(Record, frozen=True):
    name: str | None = None
    pod_group: str | None = None


class EvictionResponder(Record, frozen=True):
    name: str = ""
    priority: int | None = None


class PodResourceClaim(Record, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(Record, frozen=True):
    volumes: tuple[Volume, ...] | None = None
    init_containers: tuple[Container, ...] | None = None
    containers: tuple[Container, ...] | None = None
    restart_policy: str | None = None
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    node_selector: dict[str, str] | None = None
    node_name: str | None = None
    host_network: bool | None = None
    affinity: Affinity | None = None
    scheduler_name: str | None = None
    tolerations: tuple[Toleration, ...] | None = None
    priority_class_name: str | None = None
    priority: int | None = None
    preemption_policy: str | None = None
    overhead: Quantities | None = None
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] | None = None
    host_users: bool | None = None
    scheduling_gates: tuple[SchedulingGate, ...] | None = None
    resource_claims: tuple[PodResourceClaim, ...] | None = None
    resources: Resources | None = None
    scheduling_group: SchedulingGroup | None = None
    workload_ref: WorkloadReference | None = None
    eviction_responders: tuple[EvictionResponder, ...] | None = None


class Terminated(Record, frozen=True):
    reason: str | None = None
    exit_code: int = 0
    finished_at: str | None = None


class Waiting(Record, frozen=True):
    reason: str | None = None


class ContainerState(Record, frozen=True):
    waiting: Waiting | None = None
    terminated: Terminated | None = None


class ContainerStatus(Record, frozen=True):
    name: str = ""
    state: ContainerState | None = None
    last_state: ContainerState | None = None
    ready: bool = False
    restart_count: int = 0
    allocated_resources: Quantities | None = None
    resources: Resources | None = None


class PodCondition(Record, frozen=True):
    """Without the message: Reberth never reads it, and there are many of them."""

    type: str = ""
    status: str = ""
    last_transition_time: str | None = None
    reason: str | None = None


class PodStatus(Record, frozen=True):
    phase: str | None = None
    conditions: tuple[PodCondition, ...] | None = None
    reason: str | None = None
    nominated_node_name: str | None = None
    start_time: str | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    qos_class: str | None = None
    allocated_resources: Quantities | None = None
    resources: Resources | None = None


class Pod(Record, frozen=True):
    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
