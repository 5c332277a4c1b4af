"""The pod that asks for a node: one that waits for it, or the next one that its owner would make."""

from dataclasses import dataclass
from functools import cached_property

from reberth.cluster.pods.interning import PodOwnFields, join_pairs, join_spec
from reberth.cluster.pods.requests import PodRequests, count_incoming_requests
from reberth.cluster.rows import PodRow
from reberth.cluster.templates import Template
from reberth.forecast.state.facts import SnapshotFacts
from reberth.records import Labels, PodSpec, WorkloadIdentity

# The API server writes these onto a pod when it is bound, as they stand on its node.
_COPIED_LABELS = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")


@dataclass(frozen=True, eq=False)
class IncomingPod:
    """A pod as kube-scheduler would get it. `place` is where the pod that it is, or replaces, stands."""

    place: int
    row: PodRow
    own: PodOwnFields
    demand: PodRequests
    is_next: bool
    nominated: str | None = None

    @property
    def name(self) -> str:
        return self.row.name

    @property
    def uid(self) -> str:
        return self.row.uid

    @property
    def template(self) -> Template:
        return self.row.template

    @property
    def namespace(self) -> str:
        return self.template.namespace

    @property
    def priority(self) -> int:
        return self.template.priority

    @property
    def controller(self) -> WorkloadIdentity | None:
        return self.template.controller

    @cached_property
    def labels(self) -> Labels:
        return join_pairs(self.template.labels, self.own.labels)

    @cached_property
    def spec(self) -> PodSpec:
        """Give the spec of the pod, which has no node yet."""
        return join_spec(self.template.spec, self.own, node=None)


def read_pending_pod(facts: SnapshotFacts, place: int) -> IncomingPod:
    """Ask for a pod that has no node, as it is."""
    row = facts.snapshot.pods.rows[place]
    return _ask(facts, place, own=row.own, nominated=row.nominated_node)


def predict_replacement(facts: SnapshotFacts, place: int) -> IncomingPod:
    """Ask for the pod that the owner would make in the place of this one.

    Its own name and uid are not known yet, and it does not have what binding wrote onto the old one.
    """
    row = facts.snapshot.pods.rows[place]
    return _ask(facts, place, own=row.own._replace(labels=_unwritten(facts, row)), is_next=True)


def _ask(
    facts: SnapshotFacts,
    place: int,
    *,
    own: PodOwnFields,
    is_next: bool = False,
    nominated: str | None = None,
) -> IncomingPod:
    row = facts.snapshot.pods.rows[place]
    demand = facts.once(("demand", row.template), lambda: count_incoming_requests(row.template.spec))
    return IncomingPod(place, row, own, demand, is_next, nominated)


def _unwritten(facts: SnapshotFacts, row: PodRow) -> tuple[tuple[str, str], ...]:
    """Give a pod's own labels without those that binding copied from its node."""
    nodes = facts.snapshot.nodes
    node = nodes.index.get(row.node or "")
    copied = (nodes.records[node].metadata.labels or {}) if node is not None else {}
    return tuple(
        (key, value) for key, value in row.own.labels if key not in _COPIED_LABELS or copied.get(key) != value
    )
