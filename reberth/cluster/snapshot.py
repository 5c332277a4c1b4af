"""A cluster at one moment. A snapshot never changes, so every reader sees the same state.

`take` collects the rows of a cache, which is quick, and builds columns from them. Where an event loop must
not wait for the second step, `build` may run in a thread: it only reads rows, which never change.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate, chain, pairwise
from types import MappingProxyType
from typing import Any

import numpy as np

from reberth.cluster.cache import Cache, Contents
from reberth.cluster.columns import (
    Bools,
    Indices,
    NodeColumns,
    PodColumns,
    Sums,
    TemplateColumns,
    list_extended,
    read_pods,
    sum_up,
    tabulate_nodes,
    tabulate_pods,
    tabulate_templates,
)
from reberth.cluster.kinds import NAMESPACE, NODE, POD, Kept, Kind
from reberth.cluster.pods.interning import OWN_LABELS
from reberth.cluster.tables import Rows
from reberth.cluster.templates import Template
from reberth.records import Labels
from reberth.selectors import Selector


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Nodes and pods as columns, all other objects as sorted rows. `now` is in seconds since the epoch."""

    now: float
    nodes: NodeColumns
    pods: PodColumns
    templates: TemplateColumns
    sums: Sums
    contents: Contents

    def of(self, kind: Kind[Any, Kept]) -> Rows[Kept]:
        """Give the objects of a kind; none if the kind is not cached."""
        return self.contents.get(kind, _NOTHING)

    def namespace_labels(self, namespace: str) -> Labels:
        found = self.of(NAMESPACE).named("", namespace)
        return (found.metadata.labels or {}) if found else {}

    def templates_where(self, question: Callable[[Template], bool]) -> tuple[int, ...]:
        """List the templates that satisfy a predicate, which must depend on the template alone.

        The result for a namespace is reused until one of its pods changes.
        """
        found: list[int] = []
        for part, places in zip(self.of(POD).parts, self._templates_within.values(), strict=True):
            templates = part.read(read_pods).templates
            where = part.once(("where", question), partial(_list_places, templates, question))
            found += [places[place] for place in where]
        return tuple(found)

    def templates_in(self, namespace: str) -> range:
        """Give the templates of a namespace: they are contiguous."""
        return self._templates_within.get(namespace, _NOWHERE)

    def templates_with(self, namespace: str, key: str, value: str) -> Sequence[int]:
        """List the templates of a namespace that have a label."""
        part, places = self.of(POD).part(namespace), self.templates_in(namespace)
        if not places:
            return ()
        found = part.once(("by value", key), lambda: _group_by_value(part.read(read_pods).templates, key))
        return [places[place] for place in found.get(value, ())]

    def select(self, selector: Selector, namespace: str) -> Indices:
        """Give the pods of a namespace that match a label selector, in any phase.

        The selector is evaluated once per template, unless it reads labels that pods of a template do not
        share.
        """
        places = self.pods.within(namespace)
        pods = slice(places.start, places.stop)
        if selector.keys.isdisjoint(OWN_LABELS):
            matches = self._ask_templates(selector, self.pods.template[pods])
        else:
            matches = np.array([selector.matches(row.labels) for row in self.pods.rows[pods]], np.bool_)
        return (np.flatnonzero(matches) + places.start).astype(np.int32)

    @cached_property
    def _templates_within(self) -> dict[str, range]:
        parts = [part.read(read_pods) for part in self.of(POD).parts]
        firsts = accumulate((len(part.templates) for part in parts), initial=0)
        return {part.namespace: range(*ends) for part, ends in zip(parts, pairwise(firsts), strict=True)}

    def _ask_templates(self, selector: Selector, templates: Indices) -> Bools:
        answers = np.zeros(len(self.templates.all), np.bool_)
        for template in np.unique(templates):
            answers[template] = selector.matches(self.templates.all[template].labels)
        return answers[templates]


def take(cache: Cache, *, now: float) -> Snapshot:
    return build(cache.contents(), now=now)


def build(contents: Contents, *, now: float) -> Snapshot:
    """Build the columns from the contents of a cache."""
    node_rows = contents[NODE].all
    parts = [part.read(read_pods) for part in contents[POD].parts]
    all_templates = tuple(chain.from_iterable(part.templates for part in parts))
    extended = list_extended(node_rows, all_templates)
    nodes = tabulate_nodes(node_rows, extended)
    templates = tabulate_templates(all_templates, extended)
    pods = tabulate_pods(contents[POD], parts, nodes, templates)
    return Snapshot(
        now=now,
        nodes=nodes,
        pods=pods,
        templates=templates,
        sums=sum_up(pods, templates),
        contents=MappingProxyType(contents),
    )


def _list_places(templates: tuple[Template, ...], question: Callable[[Template], bool]) -> list[int]:
    return [place for place, each in enumerate(templates) if question(each)]


def _group_by_value(templates: tuple[Template, ...], key: str) -> Mapping[str, list[int]]:
    found: dict[str, list[int]] = {}
    for place, template in enumerate(templates):
        value = template.labels.get(key)
        if value is not None:
            found.setdefault(value, []).append(place)
    return found


_NOWHERE = range(0)
_NOTHING: Rows[Any] = Rows((), lambda row: row)
