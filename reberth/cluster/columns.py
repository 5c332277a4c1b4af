"""Nodes, templates and pods as columns: one read-only array per fact.

Nodes are sorted by name, pods by namespace and name, templates by the first pod that uses them. So the same
objects give the same bytes, in whatever order they arrived. Amounts are stored as [resource, object], so that
a question about one resource reads contiguous memory: cpu in millis, everything else in units.

The pods of a namespace are read again only after one of them has changed; joining the parts is quick.
Templates do not reach beyond their namespace, so each part of the pods numbers its own.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, count, pairwise
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from reberth.cluster.rows import FINISHED, PHASE_BITS, READY, TERMINATING, NodeRow, PodRow
from reberth.cluster.tables import NamespaceRows, Rows
from reberth.cluster.templates import RESOURCES, Template
from reberth.records import Node

Ints = NDArray[np.int64]
Indices = NDArray[np.int32]
Bools = NDArray[np.bool_]
Times = NDArray[np.float64]

Marks = NDArray[np.uint8]
Array = TypeVar("Array", bound=NDArray[Any])
Thing = TypeVar("Thing", bound=Hashable)

# An amount above this is as good as unlimited, and the sum of a thousand of them still fits into 64 bits.
MOST = 2**53


_namespace_of = attrgetter("namespace")
_name_of = attrgetter("namespace", "name")


@dataclass(frozen=True, eq=False)
class AmountColumns:
    """Amounts of RESOURCES as [resource, object], and of every other resource by its name."""

    main: Ints
    extended: Mapping[str, Ints]


@dataclass(frozen=True, eq=False)
class NodeColumns:
    """All nodes. Their labels, taints, images and features are in the records."""

    records: tuple[Node, ...]
    names: tuple[str, ...]
    index: Mapping[str, int]
    allocatable: AmountColumns
    unschedulable: Bools


@dataclass(frozen=True, eq=False)
class TemplateColumns:
    """The templates of all pods, and the requests of each.

    The load is what LeastAllocated weighs: it assumes a default for containers that request nothing.
    """

    all: tuple[Template, ...]
    requests: AmountColumns
    load: Ints


@dataclass(frozen=True, eq=False)
class Sums:
    """Per node: the sums of the requests and of the load of its counted pods."""

    requested: AmountColumns
    load: Ints


@dataclass(frozen=True, eq=False)
class PodColumns:
    """All pods, including finished ones. Times are seconds since the epoch."""

    rows: tuple[PodRow, ...]
    node: Indices  # -1: not bound, or bound to an unknown node
    template: Indices
    namespace: Indices  # index into namespaces
    namespaces: tuple[str, ...]
    priority: Indices
    phase: NDArray[np.uint8]  # index into PHASES
    terminating: Bools
    ready: Bools
    counted: Bools  # uses resources of its node: bound to a known one, and not finished
    created: Times
    deleted: Times  # the end of its grace period; nan unless it is terminating
    by_node: Indices  # the counted pods, node by node
    first_on_node: Indices  # where each node begins there, and where the last one ends
    parts: tuple[NamespaceRows[PodRow], ...]

    def on(self, node: int) -> Indices:
        """Give the counted pods of a node."""
        return self.by_node[self.first_on_node[node] : self.first_on_node[node + 1]]

    def within(self, namespace: str) -> range:
        """Give the pods of a namespace: they are contiguous."""
        first = bisect_left(self.rows, namespace, key=_namespace_of)
        return range(first, bisect_right(self.rows, namespace, lo=first, key=_namespace_of))

    def named(self, namespace: str, name: str) -> int | None:
        """Give the index of the pod with this name."""
        place = bisect_left(self.rows, (namespace, name), key=_name_of)
        return place if place < len(self.rows) and _name_of(self.rows[place]) == (namespace, name) else None

    def by_uid(self, uid: str) -> int | None:
        """Give the index of the pod with this uid; a namespace is indexed once until it changes."""
        for first, places in self._places:
            place = places.get(uid)
            if place is not None:
                return first + place
        return None

    def is_alive(self, uid: str) -> bool:
        """Tell whether the pod with this uid is there and not terminating."""
        place = self.by_uid(uid)
        return place is not None and not self.rows[place].is_terminating

    @cached_property
    def _places(self) -> list[tuple[int, dict[str, int]]]:
        """Give for each namespace where it begins, and the place of each uid in it."""
        firsts = accumulate((len(part.rows) for part in self.parts), initial=0)
        return list(zip(firsts, (part.read(_number_uids) for part in self.parts), strict=False))


class PodPart(NamedTuple):
    """The pods of one namespace; their templates are sorted by the first pod that uses them."""

    namespace: str
    templates: tuple[Template, ...]
    template: Indices
    nodes: tuple[str | None, ...]
    marks: Marks
    created: Times


def read_pods(rows: Sequence[PodRow]) -> PodPart:
    """Read the pods of one namespace. Comprehensions read an attribute in half the time of `map`."""
    places: defaultdict[Template, int] = defaultdict(count().__next__)
    template = np.fromiter([places[row.template] for row in rows], np.int32, len(rows))
    return PodPart(
        namespace=rows[0].namespace,
        templates=tuple(places),
        template=template,
        nodes=tuple([row.node for row in rows]),
        marks=np.frombuffer(bytes([row.marks for row in rows]), np.uint8),
        created=np.fromiter([row.created for row in rows], np.float64, len(rows)),
    )


def _number_uids(rows: Sequence[PodRow]) -> dict[str, int]:
    return {row.uid: place for place, row in enumerate(rows)}


def list_extended(nodes: Iterable[NodeRow], templates: Iterable[Template]) -> tuple[str, ...]:
    """List the resources that only some nodes offer or some pods request."""
    offered = [node.extended for node in nodes if node.extended]
    asked = [template.extended for template in templates if template.extended]
    return tuple(sorted(set().union(*offered, *asked)))


def tabulate_nodes(rows: Sequence[NodeRow], extended: Sequence[str]) -> NodeColumns:
    records = tuple(row.record for row in rows)
    names = tuple(record.metadata.name for record in records)
    return NodeColumns(
        records=records,
        names=names,
        index=MappingProxyType(_places(names)),
        allocatable=_tabulate_amounts(rows, extended),
        unschedulable=seal(np.array([bool(record.spec.unschedulable) for record in records], np.bool_)),
    )


def tabulate_templates(templates: tuple[Template, ...], extended: Sequence[str]) -> TemplateColumns:
    return TemplateColumns(
        all=templates,
        requests=_tabulate_amounts(templates, extended),
        load=_tabulate([template.load for template in templates], width=2),
    )


def tabulate_pods(
    pods: Rows[PodRow], parts: Sequence[PodPart], nodes: NodeColumns, templates: TemplateColumns
) -> PodColumns:
    rows = pods.all
    node = _number([name for part in parts for name in part.nodes], nodes.index)
    marks = _join((part.marks for part in parts), np.uint8)
    terminating = (marks & TERMINATING) != 0
    counted = (node >= 0) & ((marks & FINISHED) == 0)
    by_node, first_on_node = _group(node, counted, len(nodes.names))
    sizes = [len(part.nodes) for part in parts]
    earlier = accumulate((len(part.templates) for part in parts), initial=0)
    template = _join((part.template for part in parts), np.int32) + _spread(earlier, sizes)
    priority = np.array([each.priority for each in templates.all], np.int32)
    return PodColumns(
        rows=rows,
        node=seal(node),
        template=seal(template),
        namespace=seal(_spread(count(), sizes)),
        namespaces=tuple(part.namespace for part in parts),
        priority=seal(priority[template]),
        phase=seal(marks & np.uint8(PHASE_BITS)),
        terminating=seal(terminating),
        ready=seal((marks & READY) != 0),
        counted=seal(counted),
        created=seal(_join((part.created for part in parts), np.float64)),
        deleted=seal(_read_deleted(rows, terminating)),
        by_node=seal(by_node),
        first_on_node=seal(first_on_node),
        parts=pods.parts,
    )


def sum_up(pods: PodColumns, templates: TemplateColumns) -> Sums:
    """Add up, node by node, the requests and the load of the counted pods."""
    template = pods.template[pods.by_node]

    def total(amounts: Ints) -> Ints:
        """Subtract the running sum at the beginning of each node from the one at its end."""
        until = np.zeros(len(template) + 1, np.int64)
        np.cumsum(amounts[template], out=until[1:])
        return seal(np.diff(until[pods.first_on_node]))

    requests = templates.requests
    others = {name: total(amounts) for name, amounts in requests.extended.items()}
    main, load = np.array([*map(total, requests.main)]), np.array([*map(total, templates.load)])
    return Sums(AmountColumns(seal(main), MappingProxyType(others)), seal(load))


def seal(array: Array) -> Array:
    """Make the array read-only."""
    array.flags.writeable = False
    return array


def _tabulate_amounts(things: Sequence[NodeRow | Template], extended: Sequence[str]) -> AmountColumns:
    columns = {name: np.zeros(len(things), np.int64) for name in extended}
    for place, amounts in [(place, thing.extended) for place, thing in enumerate(things) if thing.extended]:
        for name, amount in amounts.items():
            columns[name][place] = min(amount, MOST)
    for column in columns.values():
        seal(column)
    main = _tabulate([thing.main for thing in things], width=len(RESOURCES))
    return AmountColumns(main, MappingProxyType(columns))


def _tabulate(packed: Iterable[bytes], *, width: int) -> Ints:
    """Turn packed amounts, `width` of each object, into as many columns."""
    amounts = np.frombuffer(b"".join(packed), np.int64).reshape(-1, width)
    columns: Ints = np.minimum(np.ascontiguousarray(amounts.T), MOST)
    return seal(columns)


def _places(things: Iterable[Thing]) -> dict[Thing, int]:
    return {thing: place for place, thing in enumerate(things)}


def _number(names: Sequence[str | None], places: Mapping[str, int]) -> Indices:
    """Give the index of each name; -1 for None and unknown names."""
    known: defaultdict[Any, int] = defaultdict(lambda: -1, places)  # twice as fast as the read-only proxy
    return np.fromiter([known[name] for name in names], np.int32, len(names))


def _join(arrays: Iterable[NDArray[Any]], kind: type[np.generic]) -> NDArray[Any]:
    """Join the columns of the parts; without parts the column is empty."""
    return np.concatenate([np.empty(0, kind), *arrays])


def _spread(values: Iterable[int], sizes: Sequence[int]) -> Indices:
    """Repeat the value of each part for each of its pods."""
    return np.repeat(np.fromiter(values, np.int32, len(sizes)), sizes)


def _read_deleted(rows: Sequence[PodRow], terminating: Bools) -> NDArray[np.float64]:
    deleted = np.full(len(rows), np.nan)
    for place in np.flatnonzero(terminating).tolist():
        deleted[place] = rows[place].deleted
    return deleted


def _group(node: Indices, counted: Bools, nodes: int) -> tuple[Indices, Indices]:
    """Sort the counted pods by node, and give where each node begins. Small integers sort in one pass."""
    pods = np.flatnonzero(counted).astype(np.int32)
    numbers = node[pods].astype(np.min_scalar_type(nodes))
    first = np.zeros(nodes + 1, np.int32)
    np.cumsum(np.bincount(numbers, minlength=nodes), out=first[1:])
    return pods[np.argsort(numbers, kind="stable")], first


def group_codes(codes: Indices | Ints) -> Iterator[tuple[int, Indices]]:
    """Give each code that occurs, smallest first, and the places where it does, in their order."""
    order = np.argsort(codes, kind="stable").astype(np.int32)
    found = codes[order]
    first = [0, *(np.flatnonzero(found[1:] != found[:-1]) + 1).tolist(), len(codes)]
    for begin, end in pairwise(first) if len(codes) else ():
        yield int(found[begin]), order[begin:end]
