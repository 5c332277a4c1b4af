"""Node selectors and node affinity: the nodes that a pod or volume requires, and those a pod prefers."""

from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from reberth.records import (
    Labels,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodSpec,
    PreferredSchedulingTerm,
)
from reberth.selectors.labels import (
    EVERYTHING,
    LARGE_ONES,
    MOST_REMEMBERED,
    NOTHING,
    Pairs,
    Requirement,
    Selector,
    SelectorError,
    compile_clause,
    count_values,
    gather,
    sorted_pairs,
)

NODE_NAME = "metadata.name"


class NodeTerm(msgspec.Struct, frozen=True, gc=False):
    """One term of a node selector: all of its requirements must hold."""

    labels: Selector
    fields: Selector

    def matches(self, name: str, labels: Labels | None) -> bool:
        return self.labels.matches(labels) and self.fields.matches({NODE_NAME: name})


class NodeRule(msgspec.Struct, frozen=True, gc=False):
    """The nodes that are allowed: all labels of nodeSelector, and one of the affinity terms if there are any.

    If every term requires node names, `names` are the only candidates: kube-scheduler then checks no other
    node.
    """

    labels: Selector = EVERYTHING
    terms: tuple[NodeTerm, ...] | None = None
    names: frozenset[str] | None = None

    def matches(self, name: str, labels: Labels | None) -> bool:
        if not self.labels.matches(labels):
            return False
        return self.terms is None or any(term.matches(name, labels) for term in self.terms)


class NodePreferences(msgspec.Struct, frozen=True, gc=False):
    """Preferred nodes: weights and terms."""

    terms: tuple[tuple[int, NodeTerm], ...] = ()

    def weigh(self, name: str, labels: Labels | None) -> int:
        """Sum the weights of the matching terms."""
        return sum(weight for weight, term in self.terms if term.matches(name, labels))


def compile_node_selector(selector: NodeSelector | None) -> NodeRule:
    """Compile a node selector. None matches every node; empty and malformed terms match no node."""
    return _compile_rule((), selector)


def compile_node_rule(spec: PodSpec) -> NodeRule:
    """Compile nodeSelector and the required node affinity of a pod."""
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return _compile_rule(sorted_pairs(spec.node_selector), required)


def compile_node_preferences(spec: PodSpec) -> NodePreferences:
    """Compile preferred node affinity; kube-scheduler fails a pod if a term with a weight is malformed."""
    affinity = spec.affinity and spec.affinity.node_affinity
    preferred = affinity and affinity.preferred_during_scheduling_ignored_during_execution
    return compile_preferences(preferred or ())


def _compile_rule(pairs: Pairs, selector: NodeSelector | None) -> NodeRule:
    is_large = len(pairs) + _count_parts(selector.node_selector_terms if selector else ()) > MOST_REMEMBERED
    return _compile_large_rule(pairs, selector) if is_large else _compile_small_rule(pairs, selector)


def _compile_rule_anew(pairs: Pairs, selector: NodeSelector | None) -> NodeRule:
    if selector is None:
        return NodeRule(Selector(pairs))
    terms = selector.node_selector_terms or ()
    return NodeRule(Selector(pairs), tuple(_compile_sound(terms)), _find_names(terms))


_compile_small_rule = lru_cache(maxsize=2**14)(_compile_rule_anew)
_compile_large_rule = lru_cache(maxsize=LARGE_ONES)(_compile_rule_anew)


def compile_preferences(preferred: tuple[PreferredSchedulingTerm, ...]) -> NodePreferences:
    """Compile preferred terms that do not come from a pod. Raises SelectorError."""
    is_large = _count_parts(each.preference for each in preferred) > MOST_REMEMBERED
    return _compile_large_preferences(preferred) if is_large else _compile_small_preferences(preferred)


def _compile_preferences_anew(preferred: tuple[PreferredSchedulingTerm, ...]) -> NodePreferences:
    return NodePreferences(
        tuple((each.weight, _compile_term(each.preference)) for each in preferred if each.weight)
    )


_compile_small_preferences = lru_cache(maxsize=2**14)(_compile_preferences_anew)
_compile_large_preferences = lru_cache(maxsize=LARGE_ONES)(_compile_preferences_anew)


def _count_parts(terms: Iterable[NodeSelectorTerm] | None) -> int:
    return sum(
        1 + count_values(each.match_expressions or ()) + count_values(each.match_fields or ())
        for each in terms or ()
    )


def _compile_sound(terms: Iterable[NodeSelectorTerm]) -> Iterator[NodeTerm]:
    for term in terms:
        try:
            yield _compile_term(term)
        except SelectorError:
            continue  # it matches no node, but the other terms still may


def _compile_term(term: NodeSelectorTerm) -> NodeTerm:
    expressions, fields = term.match_expressions or (), term.match_fields or ()
    if not expressions and not fields:
        return NodeTerm(NOTHING, NOTHING)
    labels = gather(compile_clause(each.key, each.operator, each.values or ()) for each in expressions)
    return NodeTerm(labels, gather(map(_compile_field, fields)))


def _compile_field(field: NodeSelectorRequirement) -> Requirement:
    values = field.values or ()
    if field.operator not in {"In", "NotIn"} or len(values) != 1:
        raise SelectorError(f"field {field.key!r} needs In or NotIn with exactly one value")
    return Requirement(field.key, field.operator, frozenset(values))


def _find_names(terms: Iterable[NodeSelectorTerm]) -> frozenset[str] | None:
    """Unite the names that the terms require; None if a term requires no name."""
    names: frozenset[str] | None = None
    for term in terms:
        demanded = [
            frozenset(field.values or ())
            for field in term.match_fields or ()
            if field.key == NODE_NAME and field.operator == "In"
        ]
        if not demanded:
            return None
        names = frozenset.intersection(*demanded) | (names or frozenset())
    return names
