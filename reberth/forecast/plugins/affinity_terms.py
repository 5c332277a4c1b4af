"""The affinity and anti-affinity terms of pods, in four groups; the incoming pod's with namespaces resolved.

One malformed term invalidates its whole group. An incoming pod with an invalid group is rejected; an existing
pod is treated as if it had no such group: kube-scheduler keeps the groups that it could parse.

kube-scheduler:
* `k8s.io/kube-scheduler/framework/types.go`: `GetAffinityTerms`, `GetWeightedAffinityTerms`,
  `(*AffinityTerm).Matches`
* `pkg/scheduler/framework/types.go`: `(*PodInfo).Update`
* `pkg/scheduler/framework/plugins/interpodaffinity/plugin.go`:
  `(*InterPodAffinity).mergeAffinityTermNamespacesIfNotEmpty`
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from reberth.cluster.kinds import NAMESPACE
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.records import Affinity, PodAffinity
from reberth.selectors import EVERYTHING, NOTHING, PodTerm, SelectorError, compile_pod_term

# kube-scheduler 1.35 and 1.36 resolve a namespaceSelector in a copy of the term (the parameter is no
# pointer). So the selector stays, and is matched against an empty set of labels: one that matches it, such as
# NotIn or DoesNotExist, selects the pods of all namespaces.
# `pkg/scheduler/framework/plugins/interpodaffinity/plugin.go`:
# `(*InterPodAffinity).mergeAffinityTermNamespacesIfNotEmpty`. 1.37 passes a pointer.
_RESOLVES_NAMESPACE_SELECTOR = (1, 37)


class WeightedTerm(NamedTuple):
    """A term and its weight; the weight of an anti-affinity term is negative."""

    term: PodTerm
    weight: int


class TermsError(ValueError):
    """Some terms of the incoming pod are malformed."""


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
    """Compile the terms of one group of a pod in this namespace. Raises SelectorError."""
    return _COMPILERS[group](affinity, namespace)


def own_terms(incoming: IncomingPod, facts: SnapshotFacts) -> Mapping[str, Terms]:
    """Give the incoming pod's terms by group, with their namespaces by name. Raises TermsError."""
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
    """Replace a namespaceSelector by the names of the namespaces that it selects."""
    selector = term.namespace_selector
    if selector == EVERYTHING or (facts.version < _RESOLVES_NAMESPACE_SELECTOR and selector.matches(None)):
        names = frozenset(facts.snapshot.pods.namespaces)
    else:
        known = facts.snapshot.of(NAMESPACE)
        names = frozenset(each.metadata.name for each in known if selector.matches(each.metadata.labels))
    return PodTerm(term.topology_key, term.selector, term.namespaces | names, NOTHING)
