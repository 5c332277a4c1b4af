"""The kinds of objects that can be cached: the record they are read into, what is kept, and their API path.

A `Kind` describes the objects; a `Resource` is a kind with its place in the API, under the name that RBAC
uses.
"""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from reberth.cluster.pods.identity import group_of
from reberth.cluster.rows import NodeRow, PodRow
from reberth.records import (
    LEDGER_API_VERSION,
    REBERTH_API_VERSION,
    Autoscaler,
    ControllerRevision,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    EvictionHistory,
    KarpenterNodeClaim,
    LimitRange,
    MoveLedger,
    Namespace,
    Node,
    NodePlacementScore,
    NodePool,
    Owner,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PodGroup,
    PriorityClass,
    Record,
    ResourceQuota,
    Rollout,
    RuntimeClass,
    Service,
    ServiceAccount,
    StorageClass,
    TemplatedOwner,
    TemplatedReplicationController,
    VerticalPodAutoscaler,
    VolumeAttachment,
)
from reberth.values.api_path import join_path

Wire = TypeVar("Wire", bound=Record)
Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True, eq=False)
class Kind(Generic[Wire, Kept]):
    """A kind of object: read as Wire, kept as Kept. Each kind exists once; lookups compare identity."""

    name: str
    record: type[Wire]
    group: str = ""


@dataclass(frozen=True, slots=True)
class Resource(Generic[Wire]):
    """A kind and its place in the API; `name` is its plural, as in RBAC and metrics."""

    kind: Kind[Wire, Any]
    name: str
    version: str = "v1"
    namespaced: bool = True
    is_optional: bool = False
    """Installed by another project: where it is not installed, the kind is treated as empty."""
    is_large: bool = False
    """Often there are many: it is listed in pages, since a stream of them costs the server twice the CPU."""
    is_custom: bool = False
    """Of a kind that is not known beforehand: its plural may be that of a known one."""

    @property
    def full_name(self) -> str:
        """Its name, with its group if another kind may have the same plural."""
        return f"{self.name}.{self.kind.group}" if self.is_custom else self.name

    @property
    def record(self) -> type[Wire]:
        return self.kind.record

    @property
    def api_version(self) -> str:
        return f"{self.kind.group}/{self.version}" if self.kind.group else self.version

    def path(self, name: str | None = None, *, namespace: str = "", subresource: str = "") -> str:
        """Path of one object or of the collection; without a namespace, of all namespaces.

        Raises ImpossibleName for a name that no object can have.
        """
        root = f"{'/apis' if self.kind.group else '/api'}/{self.api_version}"
        within = ("namespaces", namespace) if namespace else ()
        named = () if name is None else (name,)
        return join_path(root, *within, self.name, *named, *((subresource,) if subresource else ()))

    def encode(self, body: Wire) -> bytes:
        """Give the body of a write; the API server requires apiVersion and kind in it."""
        fields = msgspec.to_builtins(body)
        return msgspec.json.encode({"apiVersion": self.api_version, "kind": self.kind.name, **fields})


def plain_kind(name: str, record: type[Wire], group: str = "") -> Kind[Wire, Wire]:
    """Make a kind whose objects are kept as they are read."""
    return Kind(name, record, group)


POD: Kind[Pod, PodRow] = Kind("Pod", Pod)
NODE: Kind[Node, NodeRow] = Kind("Node", Node)
NAMESPACE = plain_kind("Namespace", Namespace)
SERVICE = plain_kind("Service", Service)
QUOTA = plain_kind("ResourceQuota", ResourceQuota)
LIMIT_RANGE = plain_kind("LimitRange", LimitRange)
SERVICE_ACCOUNT = plain_kind("ServiceAccount", ServiceAccount)
CLAIM = plain_kind("PersistentVolumeClaim", PersistentVolumeClaim)
VOLUME = plain_kind("PersistentVolume", PersistentVolume)
REPLICATION_CONTROLLER = plain_kind("ReplicationController", TemplatedReplicationController)
REPLICA_SET = plain_kind("ReplicaSet", TemplatedOwner, "apps")
STATEFUL_SET = plain_kind("StatefulSet", TemplatedOwner, "apps")
REVISION = plain_kind("ControllerRevision", ControllerRevision, "apps")
DEPLOYMENT = plain_kind("Deployment", Owner, "apps")
JOB = plain_kind("Job", Owner, "batch")
AUTOSCALER = plain_kind("HorizontalPodAutoscaler", Autoscaler, "autoscaling")
VERTICAL_AUTOSCALER = plain_kind("VerticalPodAutoscaler", VerticalPodAutoscaler, "autoscaling.k8s.io")
SCALED_OBJECT = plain_kind("ScaledObject", Autoscaler, "keda.sh")
ROLLOUT = plain_kind("Rollout", Rollout, "argoproj.io")
POD_GROUP = plain_kind("PodGroup", PodGroup, "scheduling.k8s.io")
BUDGET = plain_kind("PodDisruptionBudget", PodDisruptionBudget, "policy")
PRIORITY_CLASS = plain_kind("PriorityClass", PriorityClass, "scheduling.k8s.io")
RUNTIME_CLASS = plain_kind("RuntimeClass", RuntimeClass, "node.k8s.io")
NODE_CLAIM = plain_kind("NodeClaim", KarpenterNodeClaim, "karpenter.sh")
NODE_POOL = plain_kind("NodePool", NodePool, "karpenter.sh")
STORAGE_CLASS = plain_kind("StorageClass", StorageClass, "storage.k8s.io")
ATTACHMENT = plain_kind("VolumeAttachment", VolumeAttachment, "storage.k8s.io")
CSI_NODE = plain_kind("CSINode", CSINode, "storage.k8s.io")
CSI_DRIVER = plain_kind("CSIDriver", CSIDriver, "storage.k8s.io")
CSI_CAPACITY = plain_kind("CSIStorageCapacity", CSIStorageCapacity, "storage.k8s.io")
HISTORY = plain_kind("EvictionHistory", EvictionHistory, group_of(REBERTH_API_VERSION))
LEDGER = plain_kind("MoveLedger", MoveLedger, group_of(REBERTH_API_VERSION))
SCORE = plain_kind("NodePlacementScore", NodePlacementScore, group_of(REBERTH_API_VERSION))

OWNED_CONTROLLERS: tuple[Kind[Any, Any], ...] = (REPLICA_SET, JOB)
"""The controllers of pods that have an owner themselves: a Deployment or a CronJob."""

PODS = Resource(POD, "pods", is_large=True)
NODES = Resource(NODE, "nodes", namespaced=False, is_large=True)
BUDGETS = Resource(BUDGET, "poddisruptionbudgets")
HISTORIES = Resource(HISTORY, "evictionhistories", "v1alpha1")
LEDGERS = Resource(LEDGER, "moveledgers", LEDGER_API_VERSION.partition("/")[2], namespaced=False)
SCORES = Resource(SCORE, "nodeplacementscores", "v1alpha1", namespaced=False)

ALL_RESOURCES: tuple[Resource[Any], ...] = (
    PODS,
    NODES,
    BUDGETS,
    HISTORIES,
    LEDGERS,
    SCORES,
    Resource(NAMESPACE, "namespaces", namespaced=False),
    Resource(SERVICE, "services"),
    Resource(QUOTA, "resourcequotas"),
    Resource(LIMIT_RANGE, "limitranges"),
    Resource(SERVICE_ACCOUNT, "serviceaccounts", is_large=True),
    Resource(CLAIM, "persistentvolumeclaims"),
    Resource(VOLUME, "persistentvolumes", namespaced=False),
    Resource(REPLICATION_CONTROLLER, "replicationcontrollers"),
    Resource(REPLICA_SET, "replicasets", is_large=True),
    Resource(STATEFUL_SET, "statefulsets"),
    Resource(REVISION, "controllerrevisions", is_large=True),
    Resource(DEPLOYMENT, "deployments"),
    Resource(JOB, "jobs", is_large=True),
    Resource(AUTOSCALER, "horizontalpodautoscalers", "v2"),
    Resource(VERTICAL_AUTOSCALER, "verticalpodautoscalers", is_optional=True),
    Resource(SCALED_OBJECT, "scaledobjects", "v1alpha1", is_optional=True),
    Resource(ROLLOUT, "rollouts", "v1alpha1", is_optional=True),
    Resource(POD_GROUP, "podgroups", "v1beta1", is_optional=True),
    Resource(NODE_CLAIM, "nodeclaims", namespaced=False, is_optional=True),
    Resource(NODE_POOL, "nodepools", namespaced=False, is_optional=True),
    Resource(RUNTIME_CLASS, "runtimeclasses", namespaced=False),
    Resource(PRIORITY_CLASS, "priorityclasses", namespaced=False),
    Resource(STORAGE_CLASS, "storageclasses", namespaced=False),
    Resource(ATTACHMENT, "volumeattachments", namespaced=False),
    Resource(CSI_NODE, "csinodes", namespaced=False),
    Resource(CSI_DRIVER, "csidrivers", namespaced=False),
    Resource(CSI_CAPACITY, "csistoragecapacities"),
)
