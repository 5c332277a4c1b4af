"""The cluster as a forecast sees it: the snapshot, with some pods removed, terminating or on another node.

A view never changes: each step gives a new view, which copies the few columns that differ. So a plan can try
a move, look at the result, and go back for free.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from reberth.cluster.columns import MOST, AmountColumns, Bools, Indices, Ints, NodeColumns, seal
from reberth.cluster.templates import Template
from reberth.forecast.state.facts import SnapshotFacts

Column = TypeVar("Column", Indices, Bools, NDArray[np.int8], NDArray[np.float64])


@dataclass(frozen=True, eq=False)
class View:
    """The node of each pod, whether it counts there and whether it terminates; and the sums of each node."""

    facts: SnapshotFacts
    node: Indices  # of each pod; -1: on none
    counted: Bools  # uses resources of its node: bound and not finished
    terminating: Bools
    requested: AmountColumns
    load: Ints
    changed: frozenset[int] = frozenset()  # the nodes whose sums differ from the snapshot's
    replaced: Mapping[int, Template] = field(default_factory=dict)  # pods that were replaced by unlike ones
    expected: tuple[int, ...] = ()  # nominated pods that are seen on their nodes, where they are not yet

    @property
    def nodes(self) -> NodeColumns:
        return self.facts.snapshot.nodes

    @property
    def is_unmoved(self) -> bool:
        """Tell whether every pod is where the snapshot has it; some may be terminating."""
        pods = self.facts.snapshot.pods
        return self.node is pods.node and self.counted is pods.counted

    def without(self, pod: int) -> "View":
        """See the cluster as if this pod were gone."""
        return self._move(pod, -1)

    def with_terminating(self, pod: int) -> "View":
        """See the pod still on its node, and terminating."""
        return replace(self, terminating=_put(self.terminating, pod, value=True))

    def with_pod_on(self, pod: int, node: int, template: Template | None = None) -> "View":
        """See the pod on this node and there to stay; or one of another template, which has replaced it."""
        return self._move(pod, node, template, terminating=_put(self.terminating, pod, value=False))

    def with_nominated(self, pod: int, node: int) -> "View":
        """See a nominated pod as if it were on its node already."""
        return replace(self.with_pod_on(pod, node), expected=(*self.expected, pod))

    def counts_on_nodes(self, pods: Indices) -> Ints:
        """Count those of these pods that count, by node."""
        where = self.node[pods[self.counted[pods]]]
        return np.bincount(where, minlength=self.facts.size).astype(np.int64)

    def counted_among(self, pods: Indices) -> Indices:
        """Give those of these pods that count."""
        return pods[self.counted[pods]]

    def by_node(self, key: Hashable, find: Callable[["View", Indices], Column], nodes: Indices) -> Column:
        """Find something that depends only on the nodes' sums: cached, and anew where the sums differ."""
        if len(nodes) <= len(self.changed):
            return find(self, nodes)
        facts = self.facts
        answers = facts.once(
            key, lambda: seal(find(view_snapshot(facts), np.arange(facts.size, dtype=np.int32)))
        )
        if self.changed:
            answers = answers.copy()
            answers[self._changed] = find(self, self._changed)
        return answers.take(nodes)

    @cached_property
    def _changed(self) -> Indices:
        return np.fromiter(self.changed, np.int32, len(self.changed))

    @cached_property
    def nominated(self) -> Mapping[int, tuple[int, ...]]:
        """Give the pending pods with a nominatedNodeName, by node."""
        found: dict[int, list[int]] = {}
        snapshot = self.facts.snapshot
        for pod in self.facts.once("waiting and nominated", self._list_nominated):
            if self.node[pod] < 0:
                node = snapshot.nodes.index[snapshot.pods.rows[pod].nominated_node or ""]
                found.setdefault(node, []).append(pod)
        return {node: tuple(pods) for node, pods in found.items()}

    def _list_nominated(self) -> tuple[int, ...]:
        pods, index = self.facts.snapshot.pods, self.facts.snapshot.nodes.index
        nowhere = [(place, pods.rows[place]) for place in np.flatnonzero(pods.node < 0).tolist()]
        return tuple(
            place
            for place, row in nowhere
            if row.nominated_node in index and not row.node and not row.is_finished
        )

    def _move(
        self, pod: int, node: int, template: Template | None = None, *, terminating: Bools | None = None
    ) -> "View":
        """Move the pod from where it counts to this node; -1 is nowhere."""
        own = self.facts.snapshot.pods.rows[pod].template
        before = self.replaced.get(pod, own)
        after = template or before
        leaves = [(int(self.node[pod]), -1)] if self.counted[pod] else []
        enters = [(node, 1)] if node >= 0 else []
        changes = [(before, leaves), (after, enters)] if before is not after else [(before, leaves + enters)]
        requested, load = self.requested, self.load
        for each, where in changes:
            requested = _shift_amounts(requested, each, where)
            load = _shift(load, np.minimum(np.frombuffer(each.load, np.int64), MOST), where)
        return replace(
            self,
            node=_put(self.node, pod, value=node),
            counted=_put(self.counted, pod, value=node >= 0),
            terminating=self.terminating if terminating is None else terminating,
            requested=requested,
            load=load,
            changed=self.changed.union(each for each, _ in leaves + enters),
            replaced=self.replaced if after is before else MappingProxyType({**self.replaced, pod: after}),
        )


def view_snapshot(facts: SnapshotFacts) -> View:
    """See the snapshot as it is."""
    snapshot = facts.snapshot
    pods, sums = snapshot.pods, snapshot.sums
    return View(facts, pods.node, pods.counted, pods.terminating, sums.requested, sums.load)


def _put(column: Column, place: int, *, value: int) -> Column:
    if column[place] == value:
        return column
    changed = column.copy()
    changed[place] = value
    return seal(changed)


def _shift(columns: Ints, amounts: Ints, changes: Iterable[tuple[int, int]]) -> Ints:
    changed = columns.copy()
    for node, sign in changes:
        changed[:, node] += sign * amounts
    return seal(changed)


def _shift_amounts(sums: AmountColumns, template: Template, changes: list[tuple[int, int]]) -> AmountColumns:
    """Move what pods of the template request. What no node offers and no pod requests has no column."""
    extended = {
        name: _shift(sums.extended[name][None], np.array([min(amount, MOST)]), changes)[0]
        for name, amount in template.extended.items()
        if amount and name in sums.extended
    }
    main = _shift(sums.main, np.minimum(np.frombuffer(template.main, np.int64), MOST), changes)
    return AmountColumns(main, MappingProxyType({**sums.extended, **extended}) if extended else sums.extended)
