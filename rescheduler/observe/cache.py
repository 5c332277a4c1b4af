"""A cache that notifies a listener of nodes that change, pods that are pending, and pods that are bound."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from reberth.cluster.cache import ADDED, Cache
from reberth.cluster.kinds import NODE, POD, Kind
from reberth.cluster.pods.requests import Version
from reberth.cluster.rows import PodRow
from reberth.cluster.tables import meta_of
from reberth.records import Node, Pod, Record


class CacheListener(Protocol):
    """The receiver of the notifications."""

    def node_changed(self) -> None:
        """A node was added, deleted, or changed in a field that a plan reads."""

    def pod_waits(self, pod: PodRow) -> None:
        """A new pod is pending."""

    def pod_binds(self, pod: PodRow, node: str) -> None:
        """A pending pod is being bound; the cache still has the state before it."""


class _Look(NamedTuple):
    """The fields of a node that a plan reads; notes and heartbeats are not among them."""

    labels: object
    spec: object
    allocatable: object
    conditions: tuple[tuple[str, str], ...]


class NotifyingCache(Cache):
    """A cache with a listener for watch events; after a new list it is not notified."""

    def __init__(self, *, version: Version, annotations: frozenset[str] = frozenset()) -> None:
        super().__init__(version=version, annotations=annotations)
        self.listener: CacheListener | None = None
        self._heed: dict[Kind[Any, Any], Callable[[CacheListener, str, Any], bool]] = {
            NODE: self._apply_node,
            POD: self._apply_pod,
        }

    def apply(self, kind: Kind[Any, Any], event: str, subject: Record) -> bool:
        heed = self._heed.get(kind)
        if heed is None or self.listener is None:
            return super().apply(kind, event, subject)
        return heed(self.listener, event, subject)

    def _apply_node(self, listener: CacheListener, event: str, node: Node) -> bool:
        before = self._look_at(node)
        changed = super().apply(NODE, event, node)
        if changed and before != self._look_at(node):
            listener.node_changed()
        return changed

    def _look_at(self, node: Node) -> _Look | None:
        row = self.of(NODE).named("", meta_of(node).name)
        if row is None:
            return None
        record = row.record
        conditions = tuple((each.type, each.status) for each in record.status.conditions or ())
        return _Look(record.metadata.labels, record.spec, record.status.allocatable, conditions)

    def _apply_pod(self, listener: CacheListener, event: str, pod: Pod) -> bool:
        node, table = pod.spec.node_name, self.of(POD)
        before = table.by_uid(pod.metadata.uid)
        if before and node and before.node is None:
            listener.pod_binds(before, node)
        changed = super().apply(POD, event, pod)
        after = table.by_uid(pod.metadata.uid)
        if changed and event == ADDED and after and after.node is None:
            listener.pod_waits(after)
        return changed
