"""Pods that match a label selector, found through their templates.

A selector nearly always requires some label with a certain value. So of a namespace only the templates with
that value are matched, and of several such labels the rarest is looked up.
"""

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from reberth.cluster.columns import Indices, seal
from reberth.cluster.pods.interning import OWN_LABELS
from reberth.forecast.state.facts import SnapshotFacts
from reberth.selectors import Selector

Pair = tuple[str, str]


def find_matching_pods(facts: SnapshotFacts, selector: Selector, namespaces: frozenset[str]) -> Indices:
    """Give the pods of these namespaces that match a selector, bound or not, in any phase."""
    return facts.once(("pods", selector, namespaces), lambda: seal(_find_pods(facts, selector, namespaces)))


def _find_pods(facts: SnapshotFacts, selector: Selector, namespaces: Iterable[str]) -> Indices:
    if not selector.keys.isdisjoint(OWN_LABELS):
        parts = [facts.snapshot.select(selector, namespace) for namespace in namespaces]
        return np.concatenate([np.zeros(0, np.int32), *parts])
    templates = facts.snapshot.templates.all
    candidates = chain.from_iterable(
        _candidates(facts, namespace, selector.pairs) for namespace in namespaces
    )
    return facts.pods_of(each for each in candidates if selector.matches(templates[each].labels))


def _candidates(facts: SnapshotFacts, namespace: str, pairs: Iterable[Pair]) -> Sequence[int]:
    """Give the templates with the rarest of these labels; without labels, all of the namespace."""
    found = (facts.snapshot.templates_with(namespace, *pair) for pair in pairs)
    return min(found, key=len, default=facts.snapshot.templates_in(namespace))
