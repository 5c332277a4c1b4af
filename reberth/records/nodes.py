"""Nodes, and the namespaces, services and leases that belong to the cluster."""

import msgspec

from reberth.records.meta import Condition, DatedMeta, Labels, ObjectMeta, Quantities, Record


class Taint(Record, frozen=True):
    key: str
    effect: str
    value: str | None = None
    time_added: str | None = None


class NodeSpec(Record, frozen=True):
    unschedulable: bool | None = None
    taints: tuple[Taint, ...] | None = None
    provider_id: str | None = msgspec.field(default=None, name="providerID")


class ContainerImage(Record, frozen=True):
    names: tuple[str, ...] | None = None
    size_bytes: int = 0


class NodeStatus(Record, frozen=True):
    allocatable: Quantities | None = None
    capacity: Quantities | None = None
    conditions: tuple[Condition, ...] | None = None
    images: tuple[ContainerImage, ...] | None = None
    declared_features: tuple[str, ...] | None = None


class Node(Record, frozen=True):
    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class NamespaceStatus(Record, frozen=True):
    phase: str | None = None


class Namespace(Record, frozen=True):
    metadata: DatedMeta
    status: NamespaceStatus = NamespaceStatus()


class ServiceSpec(Record, frozen=True):
    selector: Labels | None = None


class Service(Record, frozen=True):
    metadata: ObjectMeta
    spec: ServiceSpec = ServiceSpec()


class LeaseSpec(Record, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Record, frozen=True):
    metadata: ObjectMeta
    spec: LeaseSpec = LeaseSpec()


class ObjectReference(Record, frozen=True):
    api_version: str | None = None
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None


class Event(Record, frozen=True):
    """An Event of events.k8s.io/v1."""

    metadata: ObjectMeta
    reason: str | None = None
    note: str | None = None
    type: str | None = None
    action: str | None = None
    reporting_controller: str | None = None
    regarding: ObjectReference | None = None
    related: ObjectReference | None = None
    event_time: str | None = None
