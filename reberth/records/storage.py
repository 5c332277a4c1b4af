"""Volumes: only the fields that affect the placement of a pod."""

import msgspec

from reberth.records.meta import LabelSelector, ObjectMeta, Quantities, Record
from reberth.records.pods import AzureDiskVolume, ClaimSpec, DiskVolume, IdentifiedVolume, NodeSelector


class ClaimStatus(Record, frozen=True):
    phase: str | None = None


class PersistentVolumeClaim(Record, frozen=True):
    metadata: ObjectMeta
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class ClaimReference(Record, frozen=True):
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None


class VolumeNodeAffinity(Record, frozen=True):
    required: NodeSelector | None = None


class CSIVolumeSource(Record, frozen=True):
    driver: str = ""
    volume_handle: str = ""


class PersistentVolumeSpec(Record, frozen=True):
    capacity: Quantities | None = None
    gce_persistent_disk: DiskVolume | None = None
    aws_elastic_block_store: DiskVolume | None = None
    cinder: IdentifiedVolume | None = None
    azure_disk: AzureDiskVolume | None = None
    portworx_volume: IdentifiedVolume | None = None
    csi: CSIVolumeSource | None = None
    access_modes: tuple[str, ...] | None = None
    claim_ref: ClaimReference | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeStatus(Record, frozen=True):
    phase: str | None = None


class PersistentVolume(Record, frozen=True):
    metadata: ObjectMeta
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class TopologyRequirement(Record, frozen=True):
    key: str
    values: tuple[str, ...] | None = None


class TopologyTerm(Record, frozen=True):
    match_label_expressions: tuple[TopologyRequirement, ...] | None = None


class StorageClass(Record, frozen=True):
    metadata: ObjectMeta
    provisioner: str = ""
    parameters: dict[str, str] | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologyTerm, ...] | None = None


class CSINodeAllocatable(Record, frozen=True):
    count: int | None = None


class CSINodeDriver(Record, frozen=True):
    name: str
    node_id: str | None = msgspec.field(default=None, name="nodeID")
    topology_keys: tuple[str, ...] | None = None
    allocatable: CSINodeAllocatable | None = None


class CSINodeSpec(Record, frozen=True):
    drivers: tuple[CSINodeDriver, ...] | None = None


class CSINode(Record, frozen=True):
    metadata: ObjectMeta
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Record, frozen=True):
    attach_required: bool | None = None
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(Record, frozen=True):
    metadata: ObjectMeta
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Record, frozen=True):
    metadata: ObjectMeta
    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: str | int | None = None
    maximum_volume_size: str | int | None = None


class AttachmentSource(Record, frozen=True):
    persistent_volume_name: str | None = None


class AttachmentSpec(Record, frozen=True):
    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(Record, frozen=True):
    metadata: ObjectMeta
    spec: AttachmentSpec = AttachmentSpec()
