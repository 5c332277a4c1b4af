"""From rows to columns. Every array is sealed before it leaves."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain, count, repeat
from operator import attrgetter
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from reberth.columns import (
    AmountColumns,
    Bools,
    Indices,
    Ints,
    NodeColumns,
    PodColumns,
    Sums,
    TemplateColumns,
)
from reberth.rows import FINISHED, PHASE_BITS, READY, TERMINATING, NodeRow, PodRow
from reberth.templates import RESOURCES, Template

Array = TypeVar("Array", bound=NDArray[Any])
Thing = TypeVar("Thing", bound=Hashable)

# An amount beyond this is as good as endless, and the sum of a thousand of them still fits into 64 bits.
_MOST = 2**53


def number_templates(rows: Sequence[PodRow]) -> tuple[tuple[Template, ...], Indices]:
    """Give each template once, in the order in which the pods come to it, and every pod's place there."""
    places: defaultdict[Template, int] = defaultdict(count().__next__)
    template = np.fromiter(map(places.__getitem__, map(attrgetter("template"), rows)), np.int32, len(rows))
    return tuple(places), template


def list_extended(nodes: Iterable[NodeRow], templates: Iterable[Template]) -> tuple[str, ...]:
    """Name the resources that only some nodes offer, or that a pod only wishes for."""
    offered, asked = map(attrgetter("extended"), nodes), map(attrgetter("extended"), templates)
    return tuple(sorted(set().union(*filter(None, chain(offered, asked)))))


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
        load=_tabulate(map(attrgetter("load"), templates), width=2),
    )


def tabulate_pods(
    rows: tuple[PodRow, ...], template: Indices, nodes: NodeColumns, templates: TemplateColumns
) -> PodColumns:
    node = _number(rows, "node", _places(nodes.names))
    marks = _read(rows, "marks", np.uint8)
    terminating = (marks & TERMINATING) != 0
    counted = (node >= 0) & ((marks & FINISHED) == 0)
    by_node, first_on_node = _group(node, counted, len(nodes.names))
    namespaces = tuple(dict.fromkeys(map(attrgetter("namespace"), templates.all)))
    namespace = _number(templates.all, "namespace", _places(namespaces))
    priority = _read(templates.all, "priority", np.int32)
    return PodColumns(
        rows=rows,
        node=seal(node),
        template=seal(template),
        namespace=seal(namespace[template]),
        namespaces=namespaces,
        priority=seal(priority[template]),
        phase=seal(marks & np.uint8(PHASE_BITS)),
        terminating=seal(terminating),
        ready=seal((marks & READY) != 0),
        counted=seal(counted),
        created=seal(_read(rows, "created", np.float64)),
        deleted=seal(_read_deleted(rows, terminating)),
        by_node=seal(by_node),
        first_on_node=seal(first_on_node),
    )


def sum_up(pods: PodColumns, templates: TemplateColumns) -> Sums:
    """Add up, node by node, what the counted pods request and weigh."""
    requests = templates.requests
    others = {name: _sum_by_node(pods, amounts) for name, amounts in requests.extended.items()}
    main = np.array([_sum_by_node(pods, amounts) for amounts in requests.main])
    load = np.array([_sum_by_node(pods, amounts) for amounts in templates.load])
    return Sums(AmountColumns(seal(main), MappingProxyType(others)), seal(load))


def seal(array: Array) -> Array:
    """Make sure that nobody writes into it."""
    array.flags.writeable = False
    return array


def _tabulate_amounts(things: Sequence[NodeRow | Template], extended: Sequence[str]) -> AmountColumns:
    columns = {name: np.zeros(len(things), np.int64) for name in extended}
    for place, amounts in [(place, thing.extended) for place, thing in enumerate(things) if thing.extended]:
        for name, amount in amounts.items():
            columns[name][place] = min(amount, _MOST)
    for column in columns.values():
        seal(column)
    main = _tabulate(map(attrgetter("main"), things), width=len(RESOURCES))
    return AmountColumns(main, MappingProxyType(columns))


def _tabulate(packed: Iterable[bytes], *, width: int) -> Ints:
    """Turn packed amounts, so many of each object, into as many columns."""
    amounts = np.frombuffer(b"".join(packed), np.int64).reshape(-1, width)
    columns: Ints = np.minimum(np.ascontiguousarray(amounts.T), _MOST)
    return seal(columns)


def _sum_by_node(pods: PodColumns, amounts: Ints) -> Ints:
    sums = np.zeros(len(pods.first_on_node) - 1, np.int64)
    np.add.at(sums, pods.node[pods.by_node], amounts[pods.template[pods.by_node]])
    return seal(sums)


def _places(things: Iterable[Thing]) -> dict[Thing, int]:
    return {thing: place for place, thing in enumerate(things)}


def _number(rows: Sequence[PodRow | Template], field: str, places: Mapping[Any, int]) -> Indices:
    """Give the place of what a field of each row names; -1 for what has none."""
    return np.fromiter(map(places.get, map(attrgetter(field), rows), repeat(-1)), np.int32, len(rows))


def _read(rows: Sequence[PodRow | Template], field: str, kind: type[np.generic]) -> NDArray[Any]:
    return np.fromiter(map(attrgetter(field), rows), kind, len(rows))


def _read_deleted(rows: Sequence[PodRow], terminating: Bools) -> NDArray[np.float64]:
    deleted = np.full(len(rows), np.nan)
    for place in np.flatnonzero(terminating).tolist():
        deleted[place] = rows[place].deleted
    return deleted


def _group(node: Indices, counted: Bools, nodes: int) -> tuple[Indices, Indices]:
    """Order the counted pods by node, and tell where each node begins. Small numbers sort in one pass."""
    pods = np.flatnonzero(counted).astype(np.int32)
    numbers = node[pods].astype(np.min_scalar_type(nodes))
    first = np.zeros(nodes + 1, np.int32)
    np.cumsum(np.bincount(numbers, minlength=nodes), out=first[1:])
    return pods[np.argsort(numbers, kind="stable")], first
