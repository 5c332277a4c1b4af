"""Work: the manifests for one cluster, and their status there."""

import msgspec

from reberth.records import Condition, ObjectMeta, Record

WORKS_API_VERSION = "work.karmada.io/v1alpha1"


class WorkloadManifests(Record, frozen=True):
    manifests: tuple[msgspec.Raw, ...] | None = None


class WorkSpec(Record, frozen=True):
    workload: WorkloadManifests = WorkloadManifests()
    suspend_dispatching: bool | None = None
    preserve_resources_on_deletion: bool | None = None


class ResourceIdentifier(Record, frozen=True):
    ordinal: int = 0
    group: str = ""
    version: str = ""
    kind: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""


class ManifestStatus(Record, frozen=True):
    identifier: ResourceIdentifier
    status: msgspec.Raw = msgspec.Raw()
    health: str = ""


class WorkStatus(Record, frozen=True):
    conditions: tuple[Condition, ...] | None = None
    manifest_statuses: tuple[ManifestStatus, ...] | None = None


class Work(Record, frozen=True):
    metadata: ObjectMeta
    api_version: str = ""
    kind: str = ""
    spec: WorkSpec = WorkSpec()
    status: WorkStatus = WorkStatus()
