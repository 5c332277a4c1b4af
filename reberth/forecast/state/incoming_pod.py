"""The pod to be scheduled: a pending pod, or the replacement that its controller would create.

"Incoming" as in kube-scheduler's plugins, beside the existing pods.
"""

from dataclasses import dataclass, replace
from functools import cached_property

from msgspec import structs

from reberth.cluster.pods.interning import PodOwnFields, join_pairs, join_spec
from reberth.cluster.pods.requests import PodRequests, count_incoming_requests
from reberth.cluster.rows import PodRow
from reberth.cluster.templates import Template
from reberth.forecast.replacement.next_pod import find_next
from reberth.forecast.state.facts import SnapshotFacts
from reberth.records import Labels, PodSpec, WorkloadIdentity
from reberth.values.refusal import Refused

# The API server copies these from the node to a pod when it is bound, since 1.35 by default.
# `plugin/pkg/admission/podtopologylabels/admission.go`: `(*Plugin).admitBinding`, `mergeLabels`
_COPIED_LABELS = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")


@dataclass(frozen=True, eq=False)
class IncomingPod:
    """A pod as kube-scheduler would get it. `place` is the snapshot's place of it, or of the old pod."""

    place: int
    row: PodRow
    own: PodOwnFields
    demand: PodRequests
    is_expected: bool
    nominated: str | None = None
    learnt: tuple[str, ...] = ()  # what webhooks would do to it, as its newest sibling shows

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
        """Give the spec of the pod; it has no node yet."""
        return join_spec(self.template.spec, self.own, node=None)


def read_pending_pod(facts: SnapshotFacts, place: int) -> IncomingPod:
    """Read a pending pod as it is."""
    row = facts.snapshot.pods.rows[place]
    return _make_incoming(facts, place, own=row.own, nominated=row.nominated_node)


def read_bound_pod(facts: SnapshotFacts, place: int) -> IncomingPod:
    """Read a bound pod as if it were to be scheduled once more, as it is.

    It lacks the labels that binding wrote to it.
    """
    row = facts.snapshot.pods.rows[place]
    return _make_incoming(facts, place, own=_drop_copied_labels(facts, row, row.own), is_expected=True)


def predict_replacement(facts: SnapshotFacts, place: int) -> IncomingPod | Refused:
    """Predict the pod that the controller would create in the place of this one.

    Its name and uid are not known yet.
    """
    row = facts.snapshot.pods.rows[place]
    found = find_next(facts.snapshot, row)
    if isinstance(found, Refused):
        return found
    own = _drop_copied_labels(facts, row, found.own_fields(row))
    incoming = _make_incoming(facts, place, own=own, is_expected=True, template=found.template)
    return replace(incoming, learnt=found.learnt)


def _make_incoming(
    facts: SnapshotFacts,
    place: int,
    *,
    own: PodOwnFields,
    is_expected: bool = False,
    nominated: str | None = None,
    template: Template | None = None,
) -> IncomingPod:
    row = facts.snapshot.pods.rows[place]
    if template is not None and template is not row.template:
        row = structs.replace(row, template=template)
    demand = facts.once(("demand", row.template), lambda: count_incoming_requests(row.template.spec))
    return IncomingPod(place, row, own, demand, is_expected, nominated)


def _drop_copied_labels(facts: SnapshotFacts, row: PodRow, own: PodOwnFields) -> PodOwnFields:
    """Drop the labels that binding copied from the pod's node."""
    nodes = facts.snapshot.nodes
    node = nodes.index.get(row.node or "")
    copied = (nodes.records[node].metadata.labels or {}) if node is not None else {}
    labels = tuple(
        (key, value) for key, value in own.labels if key not in _COPIED_LABELS or copied.get(key) != value
    )
    return own if len(labels) == len(own.labels) else own._replace(labels=labels)
