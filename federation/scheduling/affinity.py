"""Cluster groups by label, field and name, compiled once and then matched against every cluster.

A group has one tier, and further tiers where its policy has overflow affinities.
"""

from collections.abc import Iterator

import msgspec

from federation.api import ClusterAffinity, FieldSelector, Placement
from federation.scheduling.fleet import Member
from reberth.records import NodeSelectorRequirement
from reberth.selectors import EVERYTHING, Selector, SelectorError, compile_selector

_FIELDS = ("provider", "region", "zone")
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


class FieldError(ValueError):
    """A field with an invalid value, and the reason."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(field, reason)
        self.field = field
        self.reason = reason


class FieldRule(msgspec.Struct, frozen=True):
    """A requirement on a field. A cluster may span several zones: `In` then requires all of them to match."""

    field: str
    operator: str
    values: frozenset[str]

    def matches(self, member: Member) -> bool:
        held = member.fields(self.field)
        match self.operator:
            case "In":
                return bool(held) and self.values.issuperset(held)
            case "NotIn":
                return self.values.isdisjoint(held)
            case "Exists":
                return bool(held)
            case _:
                return not held


class CompiledAffinity(msgspec.Struct, frozen=True):
    """All parts must match; an empty set of names matches every name."""

    labels: Selector = EVERYTHING
    fields: tuple[FieldRule, ...] = ()
    names: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()

    def matches(self, member: Member) -> bool:
        if member.name in self.excluded or (self.names and member.name not in self.names):
            return False
        return self.labels.matches(member.labels) and all(rule.matches(member) for rule in self.fields)


class AffinityGroup(msgspec.Struct, frozen=True):
    """Clusters to choose from, tier by tier; `index` is the group's position in the placement."""

    tiers: tuple[CompiledAffinity, ...] = (CompiledAffinity(),)
    name: str = ""
    index: int = 0


def list_groups(placement: Placement, path: str, *, with_overflow: bool) -> tuple[AffinityGroup, ...]:
    """Compile the placement's groups, in their order; errors name fields below `path`. Raises FieldError."""
    terms = placement.cluster_affinities
    if not terms:
        return (AffinityGroup((compile_affinity(placement.cluster_affinity, f"{path}.clusterAffinity"),)),)
    groups = []
    for index, term in enumerate(terms):
        place = f"{path}.clusterAffinities[{index}]"
        overflow = [
            compile_affinity(each, f"{place}.overflowAffinities[{tier}]")
            for tier, each in enumerate((term.overflow_affinities or ()) if with_overflow else ())
        ]
        groups.append(AffinityGroup((compile_affinity(term, place), *overflow), term.affinity_name, index))
    return tuple(groups)


def compile_affinity(affinity: ClusterAffinity | None, path: str) -> CompiledAffinity:
    """Compile the affinity; None matches every cluster. Raises FieldError."""
    if affinity is None:
        return CompiledAffinity()
    return CompiledAffinity(
        EVERYTHING if affinity.label_selector is None else _compile_labels(affinity, f"{path}.labelSelector"),
        tuple(_compile_fields(affinity.field_selector, f"{path}.fieldSelector")),
        frozenset(affinity.cluster_names or ()),
        frozenset(affinity.exclude or ()),
    )


def _compile_labels(affinity: ClusterAffinity, path: str) -> Selector:
    try:
        return compile_selector(affinity.label_selector)
    except SelectorError as error:
        raise FieldError(path, str(error)) from error


def _compile_fields(selector: FieldSelector | None, path: str) -> Iterator[FieldRule]:
    for index, each in enumerate((selector.match_expressions if selector else None) or ()):
        _refuse_unknown(each, f"{path}.matchExpressions[{index}]")
        yield FieldRule(each.key, each.operator, frozenset(each.values or ()))


def _refuse_unknown(rule: NodeSelectorRequirement, path: str) -> None:
    if rule.key not in _FIELDS:
        raise FieldError(f"{path}.key", f"{rule.key!r} is not one of {', '.join(_FIELDS)}")
    if rule.operator not in _OPERATORS:
        raise FieldError(f"{path}.operator", f"{rule.operator!r} is not one of {', '.join(_OPERATORS)}")
