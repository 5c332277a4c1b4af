"""The extender's data: the cache of a cluster and the memory index built from it, kept in step.

Every changed object is passed on to the index at once; after a new list, only the objects that differ. So an
answer never waits for anything, and uses everything that the cache has received.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec.structs import replace

from extender.answers.prioritize_response import Fragments, LocatedNodes
from reberth.cluster.cache import Cache, Listing
from reberth.cluster.kinds import HISTORY, JOB, NODE, POD, REPLICA_SET, SCORE, Kind
from reberth.cluster.pods.identity import find_controller
from reberth.cluster.pods.requests import Version
from reberth.cluster.rows import NodeRow, PodRow
from reberth.cluster.tables import Rows, meta_of
from reberth.memory.addon_scores import ScoreSettings, ValidScore, read_score
from reberth.memory.advice import AdviceSettings, PodAdvice, advise_pod
from reberth.memory.destination_draw import Replica, replica_of
from reberth.memory.index import MemoryIndex
from reberth.memory.notes import ANNOTATION, read_notes
from reberth.records import (
    EvictionHistory,
    Node,
    NodePlacementScore,
    NodeStatus,
    ObjectMeta,
    Owner,
    Pod,
    PodSpec,
    PodStatus,
    Record,
)
from reberth.values.refusal import Refused

_ANY = Kind[Any, Any]
_REMEMBERED: tuple[_ANY, ...] = (NODE, HISTORY, SCORE)


class ExpiryCounts:
    """The expiry times of the notes or scores of many objects: how many are valid or have expired."""

    def __init__(self) -> None:
        self._ends: dict[str, tuple[float, ...]] = {}

    def put(self, name: str, ends: tuple[float, ...]) -> None:
        self.drop(name)
        if ends:
            self._ends[name] = ends

    def drop(self, name: str) -> None:
        self._ends.pop(name, None)

    def valid(self, now: float) -> int:
        return sum(end > now for ends in self._ends.values() for end in ends)

    def expired(self, now: float) -> int:
        return sum(end <= now for ends in self._ends.values() for end in ends)


class ClusterMemory(Cache):
    """A cache that passes its changes on to the memory index."""

    def __init__(
        self,
        settings: ScoreSettings,
        *,
        version: Version,
        on_change: Callable[[], None] = lambda: None,
        on_bound: Callable[[PodRow], None] = lambda _: None,
    ) -> None:
        super().__init__(version=version, keeps_templates=False)
        self.index = MemoryIndex(settings)
        self.fragments = Fragments()
        self.notes = ExpiryCounts()
        self.scores = ExpiryCounts()
        self.owners: dict[str, ObjectMeta] = {}
        self._located: tuple[list[str], LocatedNodes] | None = None
        # By namespace and controller: a pod of another namespace that names the controller is no replica.
        self._replicas: dict[tuple[str, str], dict[str, PodRow]] = {}
        self._on_change = on_change
        self._on_bound = on_bound
        self._put: dict[_ANY, Callable[[Any], None]] = {
            NODE: self._put_node,
            POD: self._put_pod,
            HISTORY: self._put_history,
            SCORE: self._put_score,
            REPLICA_SET: self._put_owner,
            JOB: self._put_owner,
        }
        self._drop: dict[_ANY, Callable[[Any], None]] = {
            NODE: self._drop_node,
            POD: self._drop_pod,
            HISTORY: self._drop_history,
            SCORE: self._drop_score,
            REPLICA_SET: self._drop_owner,
            JOB: self._drop_owner,
        }

    def apply(self, kind: _ANY, event: str, subject: Record) -> bool:
        meta = meta_of(subject)
        table = self._mirror(kind).table
        before = table.named(meta.namespace, meta.name)
        changed = super().apply(kind, event, _lighten(subject))
        if changed:
            self._replace(kind, before, table.named(meta.namespace, meta.name))
            self._on_change()
        return changed

    def relist(self, kind: _ANY) -> Listing[Any, Any]:
        return _HandedOn(self._mirror(kind), partial(self._hand_on, kind))

    def retune(self, settings: ScoreSettings) -> None:
        """Rebuild the index, after a change of the settings for scores."""
        self.index, self.fragments, self._located = MemoryIndex(settings), Fragments(), None
        for kind in _REMEMBERED:
            for row in self.of(kind).rows():
                self._put[kind](row)
        self.index.gather_names()

    def version_of(self, kind: _ANY, namespace: str, name: str) -> int:
        """Give the version of a cached object; 0 for one that is not cached."""
        mirror = self._mirror(kind)
        row = mirror.table.named(namespace, name)
        return 0 if row is None else mirror.identify(row).version

    def locate(self, nodes: list[str]) -> LocatedNodes:
        """Find the rows of the nodes; quick if the list is the same as in the last call."""
        if self._located is None or self._located[0] is not nodes:
            self._located = nodes, self._locate(nodes)
        return self._located[1]

    def _locate(self, nodes: list[str]) -> LocatedNodes:
        rows = self.index.locate(nodes)
        if not self.index.are_distinct(rows):
            nodes = list(dict.fromkeys(nodes))
            rows = self.index.locate(nodes)
        return LocatedNodes(nodes, rows, are_seen=bool(rows.min(initial=0) >= 0))

    def advise(self, pod: ObjectMeta, *, now: float, settings: AdviceSettings) -> PodAdvice:
        """Gather the memory's advice for an unbound pod."""
        replicas = self._find_replicas(pod) if settings.draw else {}
        return advise_pod(self.index, pod, owners=self.owners, replicas=replicas, now=now, settings=settings)

    def _find_replicas(self, pod: ObjectMeta) -> dict[str, list[Replica]]:
        """Give the pod's siblings, if their controller has an open move that could draw them."""
        controller = find_controller(pod)
        if controller is None or not self.index.moves_of(pod.namespace, controller.uid):
            return {}
        siblings = self._replicas.get((pod.namespace, controller.uid), {})
        return {controller.uid: list(map(replica_of, siblings.values()))}

    def _hand_on(self, kind: _ANY, before: Rows[Any]) -> None:
        """Pass on the changes of a new list."""
        after, identify = self.of(kind).rows(), self._mirror(kind).identify
        for row in before:
            if after.by_uid(identify(row).uid) is None:
                self._replace(kind, row, None)
        for row in after:
            self._replace(kind, before.by_uid(identify(row).uid), row)
        if kind is NODE:
            self.index.gather_names()
        self._on_change()

    def _replace(self, kind: _ANY, before: Any, after: Any) -> None:  # noqa: ANN401 - a row of any kind
        if kind not in self._put or before is after:
            return
        if before is not None and not (kind is NODE and after is not None):  # a node keeps its row
            self._drop[kind](before)
        if after is not None:
            self._put[kind](after)
        if kind is POD and before and after and before.node is None and after.node is not None:
            self._on_bound(after)

    def _put_node(self, row: NodeRow) -> None:
        meta = row.record.metadata
        name = meta.name
        if name not in self.index.rows:
            self._located = None
        self.index.put_node(row.record)
        self.notes.put(name, _ends_of_notes(meta))
        self.fragments.seat(name, self.index.rows[name])

    def _drop_node(self, row: NodeRow) -> None:
        self._located = None
        self.index.drop_node(row.record.metadata.name)
        self.notes.drop(row.record.metadata.name)

    def _put_pod(self, row: PodRow) -> None:
        if row.template.controller:
            self._replicas.setdefault((row.namespace, row.template.controller.uid), {})[row.uid] = row

    def _drop_pod(self, row: PodRow) -> None:
        controller = row.template.controller
        if controller:
            siblings = self._replicas[row.namespace, controller.uid]
            del siblings[row.uid]
            if not siblings:
                del self._replicas[row.namespace, controller.uid]

    def _put_history(self, history: EvictionHistory) -> None:
        self.index.put_history(history)

    def _drop_history(self, history: EvictionHistory) -> None:
        self.index.drop_history(history.metadata.namespace, history.metadata.name)

    def _put_score(self, score: NodePlacementScore) -> None:
        self.index.put_score(score)
        self.scores.put(score.metadata.name, _ends_of_scores(score))

    def _drop_score(self, score: NodePlacementScore) -> None:
        self.index.drop_score(score.metadata.name)
        self.scores.drop(score.metadata.name)

    def _put_owner(self, owner: Owner) -> None:
        self.owners[owner.metadata.uid] = owner.metadata

    def _drop_owner(self, owner: Owner) -> None:
        del self.owners[owner.metadata.uid]


class _HandedOn(Listing[Any, Any]):
    """A list whose changes are passed on once it is complete."""

    def __init__(self, mirror: Any, hand_on: Callable[[Rows[Any]], None]) -> None:  # noqa: ANN401 - of any kind
        super().__init__(mirror)
        self._hand_on = hand_on

    def apply(self, event: str, subject: Record) -> None:
        super().apply(event, _lighten(subject))

    def finish(self, resource_version: str) -> None:
        before = self._mirror.table.rows()
        super().finish(resource_version)
        self._hand_on(before)


def _lighten(subject: Record) -> Record:
    """Leave out the resources of nodes and pods, which the extender does not read."""
    if isinstance(subject, Node):
        return replace(subject, status=NodeStatus(conditions=subject.status.conditions))
    if isinstance(subject, Pod):
        spec = PodSpec(node_name=subject.spec.node_name, scheduler_name=subject.spec.scheduler_name)
        status = PodStatus(phase=subject.status.phase, conditions=subject.status.conditions)
        return replace(subject, spec=spec, status=status)
    return subject


def _ends_of_notes(node: ObjectMeta) -> tuple[float, ...]:
    notes = read_notes((node.annotations or {}).get(ANNOTATION))
    return () if isinstance(notes, Refused) else tuple([note.expires_at for note in notes])


def _ends_of_scores(score: NodePlacementScore) -> tuple[float, ...]:
    read = [read_score(one, score.status.valid_until) for one in score.status.scores or ()]
    return tuple([one.valid_until for one in read if isinstance(one, ValidScore)])
