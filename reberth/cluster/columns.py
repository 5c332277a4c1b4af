"""Nodes, templates and pods as columns: one array per fact, none of which can be written.

Nodes stand by name, pods by namespace and name, templates in the order in which the pods come to them. So
the same objects give the same bytes, however they arrived. Amounts stand as [resource, object], so that a
question about one resource reads its memory from end to end: cpu in millis, everything else in units.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from reberth.cluster.rows import PodRow
from reberth.cluster.templates import Template
from reberth.records import Node

Ints = NDArray[np.int64]
Indices = NDArray[np.int32]
Bools = NDArray[np.bool_]
Times = NDArray[np.float64]

_namespace_of = attrgetter("namespace")
_name_of = attrgetter("namespace", "name")


@dataclass(frozen=True, eq=False)
class AmountColumns:
    """Amounts of RESOURCES, as [resource, object], and of each other resource by its name."""

    main: Ints
    extended: Mapping[str, Ints]


@dataclass(frozen=True, eq=False)
class NodeColumns:
    """All nodes. Their labels, taints, images and features stand in the records."""

    records: tuple[Node, ...]
    names: tuple[str, ...]
    index: Mapping[str, int]
    allocatable: AmountColumns
    unschedulable: Bools


@dataclass(frozen=True, eq=False)
class TemplateColumns:
    """What the pods are made from, and what each of them requests.

    The load is what LeastAllocated weighs: with something assumed for containers that request nothing.
    """

    all: tuple[Template, ...]
    requests: AmountColumns
    load: Ints


@dataclass(frozen=True, eq=False)
class Sums:
    """What the counted pods of each node request and weigh together."""

    requested: AmountColumns
    load: Ints


@dataclass(frozen=True, eq=False)
class PodColumns:
    """All pods, the finished ones too. Times are seconds since the epoch."""

    rows: tuple[PodRow, ...]
    node: Indices  # -1: not bound, or to a node that is not known
    template: Indices
    namespace: Indices  # as in namespaces
    namespaces: tuple[str, ...]
    priority: Indices
    phase: NDArray[np.uint8]  # as in PHASES
    terminating: Bools
    ready: Bools
    counted: Bools  # takes something from its node: bound to a known one, and not finished
    created: Times
    deleted: Times  # when it will have to be gone; nan where it is to stay
    by_node: Indices  # the counted pods, node by node
    first_on_node: Indices  # where each node begins there, and where the last one ends

    def on(self, node: int) -> Indices:
        """Give the counted pods of a node."""
        return self.by_node[self.first_on_node[node] : self.first_on_node[node + 1]]

    def within(self, namespace: str) -> range:
        """Give the pods of a namespace: they stand together."""
        first = bisect_left(self.rows, namespace, key=_namespace_of)
        return range(first, bisect_right(self.rows, namespace, lo=first, key=_namespace_of))

    def named(self, namespace: str, name: str) -> int | None:
        """Give the place of the pod of this name."""
        place = bisect_left(self.rows, (namespace, name), key=_name_of)
        return place if place < len(self.rows) and _name_of(self.rows[place]) == (namespace, name) else None

    def by_uid(self, uid: str) -> int | None:
        """Give the place of the pod with this uid."""
        return self._places.get(uid)

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {row.uid: place for place, row in enumerate(self.rows)}
