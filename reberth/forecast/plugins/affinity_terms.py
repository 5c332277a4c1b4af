"""The terms of pod affinity as pods have them, in four groups, and whom the asking pod's own mean.

One malformed term spoils its group. A pod that asks with a spoilt group is turned away; one that stands
somewhere is taken as if it had no such group.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from reberth.cluster.kinds import NAMESPACE
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.records import Affinity, PodAffinity
from reberth.selectors import EVERYTHING, NOTHING, PodTerm, SelectorError, compile_pod_term

# Until then, a term whose namespaceSelector was put into names kept the selector as well, and asked it about
# no labels: one that is content with none, such as NotIn, means the pods of all namespaces.
_PUTS_INTO_NAMES = (1, 37)


class WeightedTerm(NamedTuple):
    """A term, and how much it counts: below zero if it keeps away."""

    term: PodTerm
    weight: int


class TermsError(ValueError):
    """Some terms of the asking pod are malformed."""


Terms = tuple[WeightedTerm, ...]


def _require(affinity: PodAffinity | None, namespace: str) -> Terms:
    terms = (affinity and affinity.required_during_scheduling_ignored_during_execution) or ()
    return tuple(WeightedTerm(compile_pod_term(each, namespace), 1) for each in terms)


def _prefer(affinity: PodAffinity | None, namespace: str, *, sign: int = 1) -> Terms:
    terms = (affinity and affinity.preferred_during_scheduling_ignored_during_execution) or ()
    return tuple(
        WeightedTerm(compile_pod_term(each.pod_affinity_term, namespace), sign * each.weight)
        for each in terms
    )


REQUIRED_AFFINITY, REQUIRED_ANTI_AFFINITY, PREFERRED_AFFINITY, PREFERRED_ANTI_AFFINITY = GROUPS = (
    "requiredAffinityTerms",
    "requiredAntiAffinityTerms",
    "preferredAffinityTerms",
    "preferredAntiAffinityTerms",
)
_COMPILERS: Mapping[str, Callable[[Affinity, str], Terms]] = {
    REQUIRED_AFFINITY: lambda affinity, namespace: _require(affinity.pod_affinity, namespace),
    REQUIRED_ANTI_AFFINITY: lambda affinity, namespace: _require(affinity.pod_anti_affinity, namespace),
    PREFERRED_AFFINITY: lambda affinity, namespace: _prefer(affinity.pod_affinity, namespace),
    PREFERRED_ANTI_AFFINITY: lambda affinity, namespace: _prefer(
        affinity.pod_anti_affinity, namespace, sign=-1
    ),
}


def compile_terms(affinity: Affinity, namespace: str, group: str) -> Terms:
    """Compile the terms of one group, of a pod in this namespace. Raises SelectorError."""
    return _COMPILERS[group](affinity, namespace)


def own_terms(incoming: IncomingPod, facts: SnapshotFacts) -> Mapping[str, Terms]:
    """Give the asking pod's terms by group, with the namespaces meant by name. Raises TermsError."""
    return facts.once(("own terms", incoming.template), lambda: _read(incoming, facts))


def _read(incoming: IncomingPod, facts: SnapshotFacts) -> Mapping[str, Terms]:
    affinity = incoming.template.spec.affinity or Affinity()
    found: dict[str, Terms] = {}
    errors = []
    for group in GROUPS:
        try:
            found[group] = compile_terms(affinity, incoming.namespace, group)
        except SelectorError as error:
            errors.append(f"{group}: {error}")
    if errors:
        raise TermsError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    return {
        group: tuple(each._replace(term=_name_namespaces(each.term, facts)) for each in terms)
        for group, terms in found.items()
    }


def _name_namespaces(term: PodTerm, facts: SnapshotFacts) -> PodTerm:
    """Put the names of the namespaces that it selects in the place of a namespaceSelector."""
    selector = term.namespace_selector
    if selector == EVERYTHING or (facts.version < _PUTS_INTO_NAMES and selector.matches(None)):
        names = frozenset(facts.snapshot.pods.namespaces)
    else:
        known = facts.snapshot.of(NAMESPACE)
        names = frozenset(each.metadata.name for each in known if selector.matches(each.metadata.labels))
    return PodTerm(term.topology_key, term.selector, term.namespaces | names, NOTHING)
