"""Facts that all forecasts on one snapshot share: answers about its nodes and templates, found once.

A question about thousands of nodes is one about their few distinct labels; a question about thousands of pods
is one about their templates. Each is asked once, and the answers are spread over the array.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, partial
from operator import eq
from typing import Any, TypeVar

import numpy as np

from reberth.cluster.columns import Bools, Indices, seal
from reberth.cluster.kinds import NODE
from reberth.cluster.node_lifecycle import LeavingNode, YoungNode
from reberth.cluster.pods.requests import Version
from reberth.cluster.snapshot import Snapshot
from reberth.cluster.templates import Template
from reberth.records import Labels
from reberth.selectors import EVERYTHING, NODE_NAME, Clause, NodeRule, NodeTerm, Selector

T = TypeVar("T")

ABSENT = -1
# Least recently used caches, by number of entries. Chosen so that they hold the controllers that one plan
# looks at; an evicted answer is found again.
_MAX_FACTS = 4096
_MAX_RECENT = 256
_UNKNOWN: Any = object()


@dataclass(frozen=True, eq=False)
class LabelColumn:
    """One label on all nodes: its distinct values, and the code of each node's value; ABSENT without one."""

    values: tuple[str, ...]
    codes: Indices

    def ask(self, question: Callable[[str | None], bool]) -> Bools:
        """Ask a question about each value, and about its absence; give each node the answer for its value."""
        answers = np.array([*map(question, self.values), question(None)], np.bool_)
        return answers[self.codes]


@dataclass(frozen=True, eq=False)
class SnapshotFacts:
    """A snapshot, the version of its kube-scheduler, and a cache of what was found out about both."""

    snapshot: Snapshot
    version: Version
    _known: OrderedDict[Hashable, Any] = field(default_factory=OrderedDict, repr=False)
    _recent: OrderedDict[Hashable, Any] = field(default_factory=OrderedDict, repr=False)

    @property
    def size(self) -> int:
        """The number of nodes."""
        return len(self.snapshot.nodes.names)

    def once(self, key: Hashable, find: Callable[[], T]) -> T:
        """Give the cached answer of this key, or find it. The key names all that the answer depends on."""
        return _remember(self._known, _MAX_FACTS, key, find)

    def once_recently(self, key: Hashable, find: Callable[[], T]) -> T:
        """Do the same for answers as large as the cluster, of which fewer are kept."""
        return _remember(self._recent, _MAX_RECENT, key, find)

    @cached_property
    def lifecycles(self) -> tuple[LeavingNode | YoungNode | None, ...]:
        """Give what keeps each node from being a destination: that it is leaving, or too young."""
        return tuple(row.standing for row in self.snapshot.of(NODE))

    def label(self, key: str) -> LabelColumn:
        return self.once(("label", key), lambda: _read_label(self._labels, key))

    def matching(self, rule: NodeRule) -> Bools:
        """Tell which nodes match a rule of node affinity."""
        return self.once(("rule", rule), lambda: seal(self._ask_rule(rule)))

    def matching_term(self, term: NodeTerm) -> Bools:
        """Tell which nodes match one term of a node selector."""
        return self.once(("term", term), lambda: seal(self._ask_term(term)))

    def selecting(self, selector: Selector) -> Bools:
        """Tell which nodes match a label selector."""
        if selector.never:
            return np.zeros(self.size, np.bool_)
        fits = np.ones(self.size, np.bool_)
        for key, value in selector.pairs:
            fits &= self.label(key).ask(partial(eq, value))
        for clause in selector.clauses:
            fits &= self.label(clause.key).ask(partial(_passes, clause))
        return fits

    def pods_of(self, templates: Iterable[int]) -> Indices:
        """Give all pods of some templates, bound or not, in any phase, in no particular order."""
        order, first = self._pods_by_template
        parts = [order[first[template] : first[template + 1]] for template in templates]
        return np.concatenate(parts) if parts else np.zeros(0, np.int32)

    def templates_where(self, question: Callable[[Template], bool]) -> tuple[int, ...]:
        """List the templates of which something is true; the answer must depend on the template alone."""
        return self.once(("templates", question), lambda: self.snapshot.templates_where(question))

    def templates_of(self, controller: str) -> tuple[int, ...]:
        """List the templates of a controller's pods, by its uid."""
        return self._templates_by_controller.get(controller, ())

    def _ask_rule(self, rule: NodeRule) -> Bools:
        fits = self.selecting(rule.labels)
        if rule.terms is None:
            return fits
        alternatives = np.zeros(self.size, np.bool_)
        for term in rule.terms:
            alternatives |= self.matching_term(term)
        return fits & alternatives

    def _ask_term(self, term: NodeTerm) -> Bools:
        fits = self.selecting(term.labels)
        if term.fields != EVERYTHING:
            names = self.snapshot.nodes.names
            fits &= [term.fields.matches({NODE_NAME: name}) for name in names]
        return fits

    @cached_property
    def _labels(self) -> tuple[Labels, ...]:
        return tuple(record.metadata.labels or {} for record in self.snapshot.nodes.records)

    @cached_property
    def _templates_by_controller(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, list[int]] = {}
        for place, template in enumerate(self.snapshot.templates.all):
            if template.controller is not None:
                found.setdefault(template.controller.uid, []).append(place)
        return {uid: tuple(places) for uid, places in found.items()}

    @cached_property
    def _pods_by_template(self) -> tuple[Indices, Indices]:
        template = self.snapshot.pods.template
        first = np.zeros(len(self.snapshot.templates.all) + 1, np.int32)
        np.cumsum(np.bincount(template, minlength=len(first) - 1), out=first[1:])
        return np.argsort(template, kind="stable").astype(np.int32), first


def _remember(known: OrderedDict[Hashable, Any], most: int, key: Hashable, find: Callable[[], T]) -> T:
    found: T = known.get(key, _UNKNOWN)
    if found is not _UNKNOWN:
        known.move_to_end(key)
        return found
    found = known[key] = find()
    if len(known) > most:
        known.popitem(last=False)
    return found


def _read_label(labels: Iterable[Labels], key: str) -> LabelColumn:
    codes: dict[str, int] = {}
    column = [codes.setdefault(each[key], len(codes)) if key in each else ABSENT for each in labels]
    return LabelColumn(tuple(codes), seal(np.array(column, np.int32)))


def _passes(clause: Clause, value: str | None) -> bool:
    return clause.matches({} if value is None else {clause.key: value})
