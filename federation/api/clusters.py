"""Cluster: how a member cluster is reached, its location, its API resources and its free capacity."""

import msgspec

from reberth.records import Condition, ObjectMeta, Quantities, Quantity, Record, Taint

CLUSTER_API_VERSION = "cluster.karmada.io/v1alpha1"
NO_EXECUTE = "NoExecute"
NOT_READY = "cluster.karmada.io/not-ready"
"""The taint of a cluster that is not Ready."""


class SecretReference(Record, frozen=True):
    namespace: str = ""
    name: str = ""


class ResourceModelRange(Record, frozen=True):
    name: str
    min: Quantity
    max: Quantity


class ResourceModel(Record, frozen=True):
    grade: int
    ranges: tuple[ResourceModelRange, ...] | None = None


class ClusterSpec(Record, frozen=True):
    id: str = ""
    sync_mode: str = ""
    api_endpoint: str = ""
    secret_ref: SecretReference | None = None
    impersonator_secret_ref: SecretReference | None = None
    insecure_skip_tls_verification: bool | None = msgspec.field(
        default=None, name="insecureSkipTLSVerification"
    )
    proxy_url: str = msgspec.field(default="", name="proxyURL")
    proxy_header: dict[str, str] | None = None
    provider: str = ""
    region: str = ""
    zone: str = ""
    zones: tuple[str, ...] | None = None
    taints: tuple[Taint, ...] | None = None
    resource_models: tuple[ResourceModel, ...] | None = None


class ApiResource(Record, frozen=True):
    name: str = ""
    kind: str = ""


class ApiEnablement(Record, frozen=True):
    group_version: str
    resources: tuple[ApiResource, ...] | None = None


class NodeSummary(Record, frozen=True):
    total_num: int = 0
    ready_num: int = 0


class ModeledNodes(Record, frozen=True):
    """The number of nodes in one grade of the resource models."""

    grade: int
    count: int


class ResourceSummary(Record, frozen=True):
    """Capacity of the cluster's nodes: in total, requested by pending pods, and requested by running pods."""

    allocatable: Quantities | None = None
    allocating: Quantities | None = None
    allocated: Quantities | None = None
    allocatable_modelings: tuple[ModeledNodes, ...] | None = None


class ClusterStatus(Record, frozen=True):
    kubernetes_version: str = ""
    api_enablements: tuple[ApiEnablement, ...] | None = None
    conditions: tuple[Condition, ...] | None = None
    node_summary: NodeSummary | None = None
    resource_summary: ResourceSummary | None = None
    remedy_actions: tuple[str, ...] | None = None


class Cluster(Record, frozen=True):
    metadata: ObjectMeta
    api_version: str = ""
    kind: str = ""
    spec: ClusterSpec = ClusterSpec()
    status: ClusterStatus = ClusterStatus()
