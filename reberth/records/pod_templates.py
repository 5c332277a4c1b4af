"""Pod templates, and the objects that decide what the API server makes of a pod at its creation.

A template is read only when it is needed: an owner keeps it as JSON, cut down to these fields, which takes a
quarter of the memory of the decoded form.
"""

from typing import Any

import msgspec

from reberth.records.meta import DatedMeta, Labels, ObjectMeta, Quantities, Record
from reberth.records.pods import Container, ContainerPort, PodSpec, Resources, Toleration
from reberth.records.workloads import (
    Owner,
    OwnerSpec,
    ReplicationController,
    ReplicationControllerSpec,
    ScaleTarget,
)

NO_TEMPLATE = msgspec.Raw(b"")


class LimitedResources(Resources, frozen=True):
    limits: Quantities | None = None


class TemplatePort(ContainerPort, frozen=True):
    container_port: int = 0


class Capabilities(Record, frozen=True):
    add: tuple[str, ...] | None = None
    drop: tuple[str, ...] | None = None


class SecurityProfile(Record, frozen=True):
    """A seccomp or an AppArmor profile."""

    type: str | None = None


class SeLinuxOptions(Record, frozen=True):
    type: str | None = None
    user: str | None = None
    role: str | None = None


class WindowsOptions(Record, frozen=True):
    host_process: bool | None = None


class Sysctl(Record, frozen=True):
    name: str = ""


class SecurityContext(Record, frozen=True):
    """Of a pod or a container: the fields of both, as far as Pod Security reads them."""

    privileged: bool | None = None
    allow_privilege_escalation: bool | None = None
    run_as_non_root: bool | None = None
    run_as_user: int | None = None
    capabilities: Capabilities | None = None
    proc_mount: str | None = None
    seccomp_profile: SecurityProfile | None = None
    app_armor_profile: SecurityProfile | None = None
    se_linux_options: SeLinuxOptions | None = None
    windows_options: WindowsOptions | None = None
    sysctls: tuple[Sysctl, ...] | None = None


class TemplateContainer(Container, frozen=True):
    ports: tuple[TemplatePort, ...] | None = None
    resources: LimitedResources | None = None
    security_context: SecurityContext | None = None


class PodOs(Record, frozen=True):
    name: str | None = None


class TemplateSpec(PodSpec, frozen=True):
    containers: tuple[TemplateContainer, ...] | None = None
    init_containers: tuple[TemplateContainer, ...] | None = None
    resources: LimitedResources | None = None
    runtime_class_name: str | None = None
    service_account_name: str | None = None
    security_context: SecurityContext | None = None
    host_pid: bool | None = msgspec.field(default=None, name="hostPID")
    host_ipc: bool | None = msgspec.field(default=None, name="hostIPC")
    os: PodOs | None = None


class TemplateMeta(Record, frozen=True):
    labels: Labels | None = None
    annotations: Labels | None = None


class PodTemplate(Record, frozen=True):
    metadata: TemplateMeta = TemplateMeta()
    spec: TemplateSpec = TemplateSpec()
    is_cut: bool = False
    """Never on the wire: the template was too large to be kept, and nothing of it was."""


class ClaimTemplateMeta(Record, frozen=True):
    name: str = ""


class NamedClaimTemplate(Record, frozen=True):
    metadata: ClaimTemplateMeta = ClaimTemplateMeta()


class TemplatedSpec(OwnerSpec, frozen=True):
    template: msgspec.Raw = NO_TEMPLATE
    volume_claim_templates: tuple[NamedClaimTemplate, ...] | None = None


class TemplatedOwner(Owner, frozen=True):
    """A ReplicaSet or StatefulSet, with the template of its pods."""

    spec: TemplatedSpec = TemplatedSpec()


class TemplatedReplicationSpec(ReplicationControllerSpec, frozen=True):
    template: msgspec.Raw = NO_TEMPLATE


class TemplatedReplicationController(ReplicationController, frozen=True):
    spec: TemplatedReplicationSpec = TemplatedReplicationSpec()


class CustomOwnerSpec(Record, frozen=True):
    template: msgspec.Raw = NO_TEMPLATE
    volume_claim_templates: msgspec.Raw = NO_TEMPLATE


class CustomOwner(Record, frozen=True):
    """A controller of a kind that is not Kubernetes' own. Most have the template in the same place."""

    metadata: ObjectMeta
    spec: CustomOwnerSpec = CustomOwnerSpec()
    status: Any = None
    """An object of any form. What says whether a rollout is in progress is kept of it."""


class RevisionSpec(Record, frozen=True):
    template: msgspec.Raw = NO_TEMPLATE


class RevisionData(Record, frozen=True):
    spec: RevisionSpec = RevisionSpec()


class ControllerRevision(Record, frozen=True):
    """An earlier or the newest template of a StatefulSet."""

    metadata: ObjectMeta
    data: RevisionData | None = None
    """Null in the bookmarks of a watch."""

    @property
    def template(self) -> msgspec.Raw:
        return NO_TEMPLATE if self.data is None else self.data.spec.template


class LimitRangeItem(Record, frozen=True):
    type: str = ""
    max: Quantities | None = None
    min: Quantities | None = None
    default: Quantities | None = None
    default_request: Quantities | None = None
    max_limit_request_ratio: Quantities | None = None


class LimitRangeSpec(Record, frozen=True):
    limits: tuple[LimitRangeItem, ...] | None = None


class LimitRange(Record, frozen=True):
    metadata: DatedMeta
    spec: LimitRangeSpec = LimitRangeSpec()


class RuntimeOverhead(Record, frozen=True):
    pod_fixed: Quantities | None = None


class RuntimeScheduling(Record, frozen=True):
    node_selector: Labels | None = None
    tolerations: tuple[Toleration, ...] | None = None


class RuntimeClass(Record, frozen=True):
    metadata: ObjectMeta
    overhead: RuntimeOverhead | None = None
    scheduling: RuntimeScheduling | None = None


class ServiceAccount(Record, frozen=True):
    """Only its name matters."""

    metadata: ObjectMeta


class VerticalUpdatePolicy(Record, frozen=True):
    update_mode: str | None = None


class VerticalContainerPolicy(Record, frozen=True):
    container_name: str = ""
    mode: str | None = None
    min_allowed: Quantities | None = None
    max_allowed: Quantities | None = None
    controlled_resources: tuple[str, ...] | None = None
    controlled_values: str | None = None


class VerticalResourcePolicy(Record, frozen=True):
    container_policies: tuple[VerticalContainerPolicy, ...] | None = None


class VerticalAutoscalerSpec(Record, frozen=True):
    target_ref: ScaleTarget = ScaleTarget()
    update_policy: VerticalUpdatePolicy | None = None
    resource_policy: VerticalResourcePolicy | None = None


class ContainerRecommendation(Record, frozen=True):
    container_name: str = ""
    target: Quantities | None = None


class VerticalRecommendation(Record, frozen=True):
    container_recommendations: tuple[ContainerRecommendation, ...] | None = None


class VerticalAutoscalerStatus(Record, frozen=True):
    recommendation: VerticalRecommendation | None = None


class VerticalPodAutoscaler(Record, frozen=True):
    metadata: ObjectMeta
    spec: VerticalAutoscalerSpec = VerticalAutoscalerSpec()
    status: VerticalAutoscalerStatus = VerticalAutoscalerStatus()
