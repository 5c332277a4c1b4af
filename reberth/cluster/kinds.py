"""The kinds of objects that can be mirrored: what their JSON is read into, and what is kept of them."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from reberth.cluster.pods.identity import group_of
from reberth.cluster.rows import NodeRow, PodRow
from reberth.records import (
    REBERTH_API_VERSION,
    Autoscaler,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    EvictionHistory,
    MoveLedger,
    Namespace,
    Node,
    NodePlacementScore,
    Owner,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PriorityClass,
    Record,
    ReplicationController,
    ResourceQuota,
    Service,
    StorageClass,
    VolumeAttachment,
)

Wire = TypeVar("Wire", bound=Record)
Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True, eq=False)
class Kind(Generic[Wire, Kept]):
    """A kind of object: read as Wire, kept as Kept. There is one of each, so that it is found at once."""

    name: str
    record: type[Wire]
    group: str = ""


def plain(name: str, record: type[Wire], group: str = "") -> Kind[Wire, Wire]:
    """Make a kind that is kept as it is read."""
    return Kind(name, record, group)


POD: Kind[Pod, PodRow] = Kind("Pod", Pod)
NODE: Kind[Node, NodeRow] = Kind("Node", Node)
NAMESPACE = plain("Namespace", Namespace)
SERVICE = plain("Service", Service)
QUOTA = plain("ResourceQuota", ResourceQuota)
CLAIM = plain("PersistentVolumeClaim", PersistentVolumeClaim)
VOLUME = plain("PersistentVolume", PersistentVolume)
REPLICATION_CONTROLLER = plain("ReplicationController", ReplicationController)
REPLICA_SET = plain("ReplicaSet", Owner, "apps")
STATEFUL_SET = plain("StatefulSet", Owner, "apps")
DEPLOYMENT = plain("Deployment", Owner, "apps")
JOB = plain("Job", Owner, "batch")
AUTOSCALER = plain("HorizontalPodAutoscaler", Autoscaler, "autoscaling")
SCALED_OBJECT = plain("ScaledObject", Autoscaler, "keda.sh")
BUDGET = plain("PodDisruptionBudget", PodDisruptionBudget, "policy")
PRIORITY_CLASS = plain("PriorityClass", PriorityClass, "scheduling.k8s.io")
STORAGE_CLASS = plain("StorageClass", StorageClass, "storage.k8s.io")
ATTACHMENT = plain("VolumeAttachment", VolumeAttachment, "storage.k8s.io")
CSI_NODE = plain("CSINode", CSINode, "storage.k8s.io")
CSI_DRIVER = plain("CSIDriver", CSIDriver, "storage.k8s.io")
CSI_CAPACITY = plain("CSIStorageCapacity", CSIStorageCapacity, "storage.k8s.io")
HISTORY = plain("EvictionHistory", EvictionHistory, group_of(REBERTH_API_VERSION))
LEDGER = plain("MoveLedger", MoveLedger, group_of(REBERTH_API_VERSION))
SCORE = plain("NodePlacementScore", NodePlacementScore, group_of(REBERTH_API_VERSION))
