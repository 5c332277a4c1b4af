"""The (anti-)affinity terms of all existing pods, to be matched against the incoming pod.

There are thousands of terms and few match: a term is looked at only if the pod has the rarest label that its
selector requires.

kube-scheduler: `pkg/scheduler/framework/plugins/interpodaffinity/filtering.go`:
`(*InterPodAffinity).getExistingAntiAffinityCounts`;
`pkg/scheduler/framework/plugins/interpodaffinity/scoring.go`: `(*InterPodAffinity).processExistingPod`
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from reberth.cluster.columns import Indices, Ints, seal
from reberth.cluster.templates import Template
from reberth.forecast.plugins.affinity_terms import GROUPS, Terms, WeightedTerm, compile_terms
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.forecast.state.label_index import Pair
from reberth.records import Affinity, Labels
from reberth.selectors import SelectorError

# The terms of a template are compiled once: templates outlive many snapshots.
_COMPILED: WeakKeyDictionary[Template, Mapping[str, Terms]] = WeakKeyDictionary()


class WeightedPods(NamedTuple):
    """Pods, and the weight that each adds to its domain of this topology key."""

    topology_key: str
    pods: Indices
    weights: Ints


class ExistingTerms:
    """The terms of some groups, each with the templates that have it; a template that has it twice, twice."""

    def __init__(self, templates: Mapping[WeightedTerm, tuple[int, ...]]) -> None:
        self._templates = templates
        self._by_pair = _group_by_pair(templates)
        self._keys = frozenset(chain.from_iterable(each.term.selector.keys for each in templates))

    def matching(self, incoming: IncomingPod, facts: SnapshotFacts) -> tuple[WeightedPods, ...]:
        """Give the pods that have a term which matches the incoming pod, by topology key."""
        own = tuple(pair for pair in incoming.own.labels if pair[0] in self._keys)
        return facts.once(("matching", self, incoming.template, own), lambda: self._find(incoming, facts))

    def _find(self, incoming: IncomingPod, facts: SnapshotFacts) -> tuple[WeightedPods, ...]:
        found: dict[str, Counter[int]] = {}
        for each in self._find_terms(incoming, facts.snapshot.namespace_labels(incoming.namespace)):
            weights = found.setdefault(each.term.topology_key, Counter())
            for template in self._templates[each]:
                weights[template] += each.weight
        return tuple(_weigh(facts, key, weights) for key, weights in found.items())

    def _find_terms(self, incoming: IncomingPod, namespace_labels: Labels) -> Iterator[WeightedTerm]:
        for pair in (None, *incoming.labels.items()):
            for each in self._by_pair.get(pair, ()):
                if each.term.matches(incoming.namespace, incoming.labels, namespace_labels=namespace_labels):
                    yield each


def existing_terms(facts: SnapshotFacts, *groups: str) -> ExistingTerms:
    return facts.once(("standing terms", groups), lambda: ExistingTerms(_collect(facts, groups)))


def _collect(facts: SnapshotFacts, groups: tuple[str, ...]) -> Mapping[WeightedTerm, tuple[int, ...]]:
    found: dict[WeightedTerm, list[int]] = {}
    for place, compiled in facts.once("terms of templates", lambda: _list_compiled(facts)):
        for group in groups:
            for each in compiled.get(group, ()):
                found.setdefault(each, []).append(place)
    return {each: tuple(places) for each, places in found.items()}


def _list_compiled(facts: SnapshotFacts) -> list[tuple[int, Mapping[str, Terms]]]:
    templates = facts.snapshot.templates.all
    places = facts.templates_where(_has_terms)
    return [(place, _compile_sound(templates[place])) for place in places]


def _has_terms(template: Template) -> bool:
    affinity = template.spec.affinity
    return affinity is not None and (affinity.pod_affinity or affinity.pod_anti_affinity) is not None


def _compile_sound(template: Template) -> Mapping[str, Terms]:
    """Compile the terms of a template, by group; an invalid or empty group is absent."""
    known = _COMPILED.get(template)
    if known is None:
        found = {group: _compile(template, group) for group in GROUPS}
        known = _COMPILED[template] = {group: terms for group, terms in found.items() if terms}
    return known


def _compile(template: Template, group: str) -> Terms:
    try:
        return compile_terms(template.spec.affinity or Affinity(), template.namespace, group)
    except SelectorError:
        return ()


def _group_by_pair(terms: Mapping[WeightedTerm, tuple[int, ...]]) -> Mapping[Pair | None, list[WeightedTerm]]:
    """Group the terms by the rarest label that each requires; None for those that require no exact label."""
    often = Counter(chain.from_iterable(each.term.selector.pairs for each in terms))
    found: dict[Pair | None, list[WeightedTerm]] = {}
    for each in terms:
        found.setdefault(min(each.term.selector.pairs, key=often.__getitem__, default=None), []).append(each)
    return found


def _weigh(facts: SnapshotFacts, topology_key: str, weights: Mapping[int, int]) -> WeightedPods:
    pods = facts.pods_of(weights)
    column = np.zeros(len(facts.snapshot.templates.all), np.int64)
    column[list(weights)] = list(weights.values())
    return WeightedPods(topology_key, seal(pods), seal(column[facts.snapshot.pods.template[pods]]))
