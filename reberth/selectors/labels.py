"""Label selectors: the API's LabelSelector, plain maps, and the text form of `kubectl -l`."""

import re
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from reberth.records import Labels, LabelSelector, LabelSelectorRequirement, NodeSelectorRequirement

_PART = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_DNS_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_KEY = re.compile(rf"(?:(?=.{{1,253}}/){_DNS_LABEL}(?:\.{_DNS_LABEL})*/)?(?=.{{1,63}}\Z){_PART}")
_VALUE = re.compile(rf"(?=.{{0,63}}\Z)(?:{_PART})?")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_WORD = r"[^\s=!<>(),]+"
_CLAUSE = re.compile(
    rf"\s*+(?:!\s*+(?P<absent>{_WORD})"
    rf"|(?P<key>{_WORD})(?:\s*+(?P<sign>==?|!=|<|>)\s*+(?P<value>(?:{_WORD})?)"
    rf"|\s++(?P<set>in|notin)\s*+\((?P<values>[^()]*)\))?)\s*+(?P<end>,|\Z)"
)
_SIGNS = {"=": "In", "==": "In", "!=": "NotIn", "in": "In", "notin": "NotIn", ">": "Gt", "<": "Lt"}
_NO_LABELS: Labels = {}

LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
NODE_OPERATORS = (*LABEL_OPERATORS, "Gt", "Lt")

MOST_REMEMBERED = 16
"""Keys and values of a selector that is remembered among thousands: at their longest these take 45 MB."""
LARGE_ONES = 64
"""Selectors with more that are remembered: each may be as large as an object."""

Pairs = tuple[tuple[str, str], ...]


class SelectorError(ValueError):
    """The selector is malformed."""


class Requirement(msgspec.Struct, frozen=True, gc=False):
    """A requirement on one label."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Labels) -> bool:
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case _:
                return self.key not in labels


class Comparison(msgspec.Struct, frozen=True, gc=False):
    """The value of a label must be a whole number above (Gt) or below (Lt) a limit."""

    key: str
    operator: str
    limit: int

    def matches(self, labels: Labels) -> bool:
        number = _read_integer(labels.get(self.key, ""))
        if number is None:
            return False
        return number > self.limit if self.operator == "Gt" else number < self.limit


Clause = Requirement | Comparison


class Selector(msgspec.Struct, frozen=True, gc=False):
    """All requirements must hold. `pairs` are the labels that must have exactly one value."""

    pairs: Pairs = ()
    clauses: tuple[Clause, ...] = ()
    never: bool = False

    @property
    def keys(self) -> frozenset[str]:
        """List the label keys that the selector reads."""
        return frozenset(key for key, _ in self.pairs).union(clause.key for clause in self.clauses)

    def matches(self, labels: Labels | None) -> bool:
        if self.never:
            return False
        labels = labels or _NO_LABELS
        for key, value in self.pairs:
            if labels.get(key) != value:
                return False
        return not self.clauses or all(clause.matches(labels) for clause in self.clauses)


EVERYTHING = Selector()
NOTHING = Selector(never=True)


def is_qualified_name(text: str) -> bool:
    """Tell whether this is a valid label key or resource name."""
    return _KEY.fullmatch(text) is not None


def compile_selector(selector: LabelSelector | None) -> Selector:
    """Compile a LabelSelector: None matches nothing, an empty one matches everything."""
    if selector is None:
        return NOTHING
    pairs, expressions = sorted_pairs(selector.match_labels), selector.match_expressions or ()
    is_large = len(pairs) + count_values(expressions) > MOST_REMEMBERED
    return _compile_large(pairs, expressions) if is_large else _compile_small(pairs, expressions)


def count_values(expressions: Iterable[LabelSelectorRequirement | NodeSelectorRequirement]) -> int:
    """Count what requirements name, each key as one."""
    return sum(1 + len(each.values or ()) for each in expressions)


def compile_labels(labels: Labels | None) -> Selector:
    """Compile a plain map, as in the spec of a Service; an empty one matches everything."""
    return Selector(sorted_pairs(labels))


def combine(selectors: Iterable[Selector]) -> Selector:
    """Require all selectors at once."""
    asked = tuple(selectors)
    if any(selector.never for selector in asked):
        return NOTHING
    pairs = {pair for selector in asked for pair in selector.pairs}
    return Selector(tuple(sorted(pairs)), tuple(clause for selector in asked for clause in selector.clauses))


def parse_selector(text: str) -> Selector:
    """Parse the form of `kubectl -l`: "a=b, c in (d,e), !f"; an empty text matches everything."""
    clauses: list[Clause] = []
    position, more = 0, bool(text.strip())
    while more:
        found = _CLAUSE.match(text, position)
        if not found:
            raise SelectorError(f"invalid label selector {text!r:.80}, from {text[position:]!r:.80} on")
        clauses.append(_read_clause(found))
        position, more = found.end(), found["end"] == ","
    return gather(clauses)


def sorted_pairs(labels: Labels | None) -> Pairs:
    return tuple(sorted(labels.items())) if labels else ()


def gather(clauses: Iterable[Clause]) -> Selector:
    pairs: set[tuple[str, str]] = set()
    others: list[Clause] = []
    for clause in clauses:
        if isinstance(clause, Requirement) and clause.operator == "In" and len(clause.values) == 1:
            pairs.update((clause.key, value) for value in clause.values)
        else:
            others.append(clause)
    return Selector(tuple(sorted(pairs)), tuple(others))


def compile_clause(
    key: str, operator: str, values: tuple[str, ...], *, operators: tuple[str, ...] = NODE_OPERATORS
) -> Clause:
    """Check and compile one requirement as kube-scheduler does."""
    if operator not in operators:
        raise SelectorError(
            f"operator {operator!r:.80} of label {key!r:.80} is invalid,"
            f" expected one of {', '.join(operators)}"
        )
    if not is_qualified_name(key):
        raise SelectorError(f"invalid label key {key!r:.80}")
    for value in values:
        if not _VALUE.fullmatch(value):
            raise SelectorError(f"invalid value {value!r:.80} of label {key!r:.330}")
    if operator in {"Gt", "Lt"}:
        return Comparison(key, operator, _read_limit(key, values))
    if bool(values) is not (operator in {"In", "NotIn"}):
        raise SelectorError(f"{operator} of label {key!r} {'takes no' if values else 'needs'} values")
    return Requirement(key, operator, frozenset(values))


def _compile(pairs: Pairs, expressions: tuple[LabelSelectorRequirement, ...]) -> Selector:
    equal = [compile_clause(key, "In", (value,)) for key, value in pairs]
    others = [
        compile_clause(each.key, each.operator, each.values or (), operators=LABEL_OPERATORS)
        for each in expressions
    ]
    return gather(equal + others)


# A cluster has some thousands of different selectors in hundreds of thousands of pods.
_compile_small = lru_cache(maxsize=2**14)(_compile)
_compile_large = lru_cache(maxsize=LARGE_ONES)(_compile)


def _read_clause(found: re.Match[str]) -> Clause:
    if found["absent"]:
        return compile_clause(found["absent"], "DoesNotExist", ())
    sign = found["sign"] or found["set"]
    if not sign:
        return compile_clause(found["key"], "Exists", ())
    values = [found["value"]] if found["values"] is None else found["values"].split(",")
    return compile_clause(found["key"], _SIGNS[sign], tuple(value.strip() for value in values))


def _read_limit(key: str, values: tuple[str, ...]) -> int:
    limit = _read_integer(values[0]) if len(values) == 1 else None
    if limit is None:
        raise SelectorError(f"Gt and Lt of label {key!r} need exactly one whole number")
    return limit


def _read_integer(text: str) -> int | None:
    """Parse an int64; None for any other text."""
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None
