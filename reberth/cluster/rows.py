"""The cached rows of pods and nodes.

A pod's row is small: its template holds what it shares with its siblings. A node's row is its record, without
the fields that Reberth never reads, and its resources as numbers.
"""

from sys import intern
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from reberth.cluster.node_lifecycle import LeavingNode, YoungNode, judge_node
from reberth.cluster.object_size import LARGEST, limit
from reberth.cluster.pods.health import PodProblems, find_problems
from reberth.cluster.pods.interning import (
    PodOwnFields,
    join_pairs,
    join_spec,
    keep_known,
    keep_of_node,
    keep_one,
    split_pod,
)
from reberth.cluster.pods.requests import Amounts, node_amounts
from reberth.cluster.tables import meta_of
from reberth.cluster.templates import PriorityError, Template, Templates, pack, part_amounts
from reberth.records import (
    GIVEN_UP,
    DatedMeta,
    EvictionHistory,
    Labels,
    LimitRange,
    ManagedFields,
    Namespace,
    Node,
    NodeStatus,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    Record,
)
from reberth.values.object_error import ObjectError, find_unreadable
from reberth.values.quantity import QuantityError
from reberth.values.text_limits import cut
from reberth.values.timestamp import TimeError, parse_time, write_time

Plain = TypeVar("Plain", bound=Record)

# A pod's phase and flags in one small number, as the column stores them.
PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
PHASE_BITS, FINISHED, TERMINATING, READY = 7, 8, 16, 32
# Whether its spec is as it was created, or was changed since; neither is known of a pod without a generation.
AS_CREATED, CHANGED = 64, 128
_POD_SECURITY = b'"f:pod-security.kubernetes.io/enforce'
"""How managed fields name the label, and the one of its version."""
_ANNOTATIONS = b'"f:scheduler.alpha.kubernetes.io/'
"""And the annotations that PodNodeSelector and PodTolerationRestriction read."""
_PHASE_MARKS = {
    phase: number | (FINISHED if phase in ("Succeeded", "Failed") else 0)
    for number, phase in enumerate(PHASES)
}


class PodRow(msgspec.Struct, frozen=True, gc=False):
    """One pod. Times are seconds since the epoch."""

    template: Template
    own: PodOwnFields
    namespace: str
    name: str
    uid: str
    version: int
    node: str | None
    nominated_node: str | None
    marks: int
    created: float
    started: float | None
    deleted: float | None  # the end of the grace period, not its start
    grace: int | None
    ready_changed: float | None
    problems: PodProblems | None

    @property
    def phase(self) -> str:
        return PHASES[self.marks & PHASE_BITS]

    @property
    def is_finished(self) -> bool:
        return bool(self.marks & FINISHED)

    @property
    def is_terminating(self) -> bool:
        return bool(self.marks & TERMINATING)

    @property
    def is_ready(self) -> bool:
        return bool(self.marks & READY)

    @property
    def labels(self) -> Labels:
        return join_pairs(self.template.labels, self.own.labels)

    @property
    def annotations(self) -> Labels:
        """Keep only the annotations that Reberth reads."""
        return join_pairs(self.template.pod.metadata.annotations, self.own.annotations)

    @property
    def spec(self) -> PodSpec:
        """Give the spec with the pod's own parts: its node, its claims, and the node it is pinned to."""
        return join_spec(self.template.spec, self.own, node=self.node)

    @property
    def pod(self) -> Pod:
        """Give the pod with what is kept of its metadata and spec, and with its phase."""
        meta = replace(
            self.template.pod.metadata,
            name=self.name,
            namespace=self.namespace,
            uid=self.uid,
            resource_version=str(self.version),
            labels=self.labels,
            annotations=self.annotations,
            deletion_timestamp=None if self.deleted is None else write_time(self.deleted),
            deletion_grace_period_seconds=self.grace,
        )
        return replace(self.template.pod, metadata=meta, spec=self.spec, status=PodStatus(phase=self.phase))


class NodeRow(msgspec.Struct, frozen=True, gc=False):
    """One node."""

    record: Node
    main: bytes  # what the node offers of RESOURCES, packed
    extended: Amounts  # and of all other resources
    images: bytes  # identifies the images of the record, packed: nodes share them
    standing: LeavingNode | YoungNode | None  # why it is not a destination
    is_cut: bool = False  # the record was too large


def make_pod_row(pod: Pod, templates: Templates) -> PodRow:
    """Make the row of a pod. Raises ObjectError."""
    try:
        return _make_pod_row(pod, templates)
    except (QuantityError, TimeError) as error:
        raise ObjectError("Pod", pod.metadata, field=find_unreadable(pod), reason=str(error)) from error
    except PriorityError as error:
        raise ObjectError("Pod", pod.metadata, field="spec.priority", reason=str(error)) from error


def make_node_row(node: Node) -> NodeRow:
    """Make the row of a node. Raises ObjectError."""
    try:
        main, extended = part_amounts(node_amounts(node.status.allocatable))
    except QuantityError as error:
        raise ObjectError("Node", node.metadata, field=find_unreadable(node), reason=str(error)) from error
    record, is_cut = limit(_trim_node(node), LARGEST)
    images = pack(*map(id, record.status.images or ()))
    return NodeRow(record, main, extended, images, judge_node(record), is_cut)


def trim(record: Plain) -> Plain:
    """Keep any other object as it is, without the annotations that Reberth never reads."""
    meta = meta_of(record)
    if not meta.annotations:
        return record
    return replace(record, metadata=replace(meta, annotations=keep_known(meta.annotations)))


def trim_namespace(namespace: Namespace) -> Namespace:
    """Keep of the managed fields when what admission reads of it was last changed."""
    return replace(namespace, metadata=_keep_time(namespace.metadata, _POD_SECURITY, _ANNOTATIONS))


def trim_limit_range(limits: LimitRange) -> LimitRange:
    """Keep of the managed fields when it was last changed."""
    return replace(limits, metadata=_keep_time(limits.metadata, b""))


def find_last_change(meta: DatedMeta) -> float:
    """Tell when an object that was trimmed was last changed; infinity if that is not known."""
    times = [each.time for each in meta.managed_fields or ()]
    try:
        return max((parse_time(each or "") for each in times), default=float("inf"))
    except TimeError:
        return float("inf")


def trim_history(history: EvictionHistory) -> EvictionHistory:
    """Keep a history as it is, without conditions that others wrote."""
    own = tuple(
        replace(each, message=cut(each.message or ""))
        for each in history.status.conditions or ()
        if each.type == GIVEN_UP
    )
    return replace(trim(history), status=replace(history.status, conditions=own or None))


def _make_pod_row(pod: Pod, templates: Templates) -> PodRow:
    common, own = split_pod(pod, annotations=templates.annotations)
    meta, status, node = pod.metadata, pod.status, pod.spec.node_name
    conditions = {condition.type: condition for condition in status.conditions or ()}
    ready = conditions.get("Ready")
    return PodRow(
        template=templates.share(common),
        own=keep_one(own),
        namespace=intern(meta.namespace),
        name=meta.name,
        uid=meta.uid,
        version=int(meta.resource_version),
        node=intern(node) if node else None,
        nominated_node=intern(status.nominated_node_name) if status.nominated_node_name else None,
        marks=_mark(pod, ready),
        created=_read_time(meta.creation_timestamp) or 0.0,
        started=_read_time(status.start_time),
        deleted=_read_time(meta.deletion_timestamp),
        grace=meta.deletion_grace_period_seconds,
        ready_changed=_read_time(ready.last_transition_time) if ready else None,
        problems=find_problems(status, conditions),
    )


def _mark(pod: Pod, ready: PodCondition | None) -> int:
    marks = _PHASE_MARKS.get(pod.status.phase or "Pending", _PHASE_MARKS["Unknown"])
    if pod.metadata.deletion_timestamp:
        marks |= TERMINATING
    if ready is not None and ready.status == "True":
        marks |= READY
    if pod.metadata.generation:
        marks |= AS_CREATED if pod.metadata.generation == 1 else CHANGED
    return marks


def _read_time(text: str | None) -> float | None:
    return parse_time(text) if text else None


def _keep_time(meta: DatedMeta, *fields: bytes) -> DatedMeta:
    """Keep the time of the last change of any of these fields."""
    entries = [
        each for each in meta.managed_fields or () if any(field in bytes(each.fields_v1) for field in fields)
    ]
    last = find_last_change(replace(meta, managed_fields=tuple(entries)))
    known = (ManagedFields(write_time(last)),) if last < float("inf") else None
    return replace(meta, managed_fields=known)


def _trim_node(node: Node) -> Node:
    """Share values that many nodes have in common, but none that changes with every heartbeat."""
    meta = node.metadata
    labels = {intern(key): intern(text) for key, text in (meta.labels or {}).items()}
    return Node(
        replace(meta, labels=labels or None, annotations=keep_of_node(meta.annotations)),
        node.spec,
        _trim_status(node.status),
    )


def _trim_status(status: NodeStatus) -> NodeStatus:
    conditions = [keep_one(replace(condition, message=None)) for condition in status.conditions or ()]
    return NodeStatus(
        allocatable=status.allocatable,
        capacity=status.capacity,
        conditions=tuple(conditions) or None,
        images=tuple(map(keep_one, status.images or ())) or None,
        declared_features=status.declared_features,
    )
