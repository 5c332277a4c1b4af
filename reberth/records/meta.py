"""Metadata that all objects share, and the base class of the records.

A record declares only the fields that are read: skipping an undeclared field costs almost nothing. Fields are
declared in the order in which Go writes them, so the decoder finds each key where it expects it; this saves a
quarter of the decoding time. Go writes `null` for an absent value, so every optional field may also be None.
`gc=False` is safe because records are trees; it saves three quarters of the time.
"""

import msgspec


class Record(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A piece of an object in its wire format."""


_NO_FIELDS = msgspec.Raw(b"")
Labels = dict[str, str]
Quantity = str | int | float
Quantities = dict[str, Quantity]


class OwnerReference(Record, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Record, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: Labels | None = None
    annotations: Labels | None = None
    owner_references: tuple[OwnerReference, ...] | None = None


class ManagedFields(Record, frozen=True):
    """When one of the writers of an object last changed the fields that it manages."""

    time: str | None = None
    fields_v1: msgspec.Raw = _NO_FIELDS


class DatedMeta(ObjectMeta, frozen=True):
    """The metadata of kinds of which it is read when they were changed. Of pods it would cost too much."""

    managed_fields: tuple[ManagedFields, ...] | None = None


class PartialObject(Record, frozen=True):
    """Any object of which only the metadata is needed."""

    metadata: ObjectMeta
    api_version: str = ""
    kind: str = ""


class ListMeta(Record, frozen=True):
    resource_version: str = ""
    continue_: str | None = msgspec.field(default=None, name="continue")
    remaining_item_count: int | None = None


class Condition(Record, frozen=True):
    """A condition of a pod, node, PDB or any other object; not every kind fills every field."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None
    observed_generation: int | None = None


class LabelSelectorRequirement(Record, frozen=True):
    key: str
    operator: str
    values: tuple[str, ...] | None = None


class LabelSelector(Record, frozen=True):
    match_labels: Labels | None = None
    match_expressions: tuple[LabelSelectorRequirement, ...] | None = None


class StatusCause(Record, frozen=True):
    reason: str | None = None
    message: str | None = None
    field: str | None = None


class StatusDetails(Record, frozen=True):
    name: str | None = None
    group: str | None = None
    kind: str | None = None
    uid: str | None = None
    causes: tuple[StatusCause, ...] | None = None
    retry_after_seconds: int | None = None


class Status(Record, frozen=True):
    """The API server's answer when it returns no object."""

    kind: str = ""
    status: str | None = None
    message: str | None = None
    reason: str | None = None
    code: int | None = None
    details: StatusDetails | None = None
