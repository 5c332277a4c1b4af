"""InterPodAffinity agrees with its definition: every term, every pod, every node."""

from collections import Counter
from collections.abc import Iterator
from random import Random

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from reberth.cluster.pods.requests import Version
from reberth.forecast.plugins.inter_pod_affinity import filter_inter_pod_affinity, score_inter_pod_affinity
from reberth.forecast.state.plugin_args import InterPodAffinityArgs
from reberth.forecast.state.verdict import Rejected
from tests.support import builders
from tests.support.forecast.crowds import (
    Object,
    affinity,
    counted,
    crowd,
    dice,
    labels,
    labels_of,
    of_kind,
    selects,
)
from tests.support.forecast.worlds import asking, refused, world

NEAR = "node(s) didn't match pod affinity rules"
APART = "node(s) didn't match pod anti-affinity rules"
KEPT_OFF = "node(s) didn't satisfy existing pods anti-affinity rules"

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

versions = st.sampled_from([(1, 35), (1, 36), (1, 37)])
arguments = st.builds(
    InterPodAffinityArgs,
    hard_pod_affinity_weight=st.sampled_from([0, 1, 7]),
    ignore_preferred_terms_of_existing_pods=st.booleans(),
)


def side(pod: Object, name: str, group: str) -> list[Object]:
    affinity = pod["spec"].get("affinity") or {}
    return (affinity.get(name) or {}).get(group) or []


def own_namespaces(term: Object, pod: Object) -> set[str]:
    silent = not term["namespaces"] and term["namespaceSelector"] is None
    return {pod["metadata"]["namespace"]} if silent else set(term["namespaces"])


def own_term_means(term: Object, pod: Object, other: Object, objects: list[Object], version: Version) -> bool:
    """A term of the asking pod: its namespaceSelector has become names."""
    selector = term["namespaceSelector"]
    names = own_namespaces(term, pod) | {
        each["metadata"]["name"]
        for each in of_kind(objects, "Namespace")
        if selects(selector, labels_of(each))
    }
    everywhere = selector == {} or (version < (1, 37) and selects(selector, {}))
    meant = everywhere or other["metadata"]["namespace"] in names
    return meant and selects(term["labelSelector"], labels_of(other))


def other_term_means(term: Object, other: Object, pod: Object, objects: list[Object]) -> bool:
    """A term of a pod that stands somewhere: its namespaceSelector is asked about the namespace's labels."""
    name = pod["metadata"]["namespace"]
    known = {each["metadata"]["name"]: labels_of(each) for each in of_kind(objects, "Namespace")}
    meant = name in own_namespaces(term, other) or selects(term["namespaceSelector"], known.get(name, {}))
    return meant and selects(term["labelSelector"], labels_of(pod))


def same_domain(key: str, node: Object, other: Object) -> bool:
    return key in labels_of(node) and labels_of(node)[key] == labels_of(other).get(key)


def define_refusal(pod: Object, node: Object, objects: list[Object], version: Version) -> str | None:
    near, apart = (side(pod, name, REQUIRED) for name in ("podAffinity", "podAntiAffinity"))
    if near and not is_near(near, pod, node, objects, version):
        return NEAR
    for term in apart:
        for other, place in counted(objects):
            means = own_term_means(term, pod, other, objects, version)
            if means and same_domain(term["topologyKey"], node, place):
                return APART
    for other, place in counted(objects):
        for term in side(other, "podAntiAffinity", REQUIRED):
            means = other_term_means(term, other, pod, objects)
            if means and same_domain(term["topologyKey"], node, place):
                return KEPT_OFF
    return None


def is_near(terms: list[Object], pod: Object, node: Object, objects: list[Object], version: Version) -> bool:
    if not all(term["topologyKey"] in labels_of(node) for term in terms):
        return False

    def all_mean(other: Object) -> bool:
        return all(own_term_means(term, pod, other, objects, version) for term in terms)

    places = [place for other, place in counted(objects) if all_mean(other)]
    if all(any(same_domain(term["topologyKey"], node, place) for place in places) for term in terms):
        return True
    exists = any(term["topologyKey"] in labels_of(place) for term in terms for place in places)
    return not exists and all_mean(pod)


def weights(
    pod: Object, other: Object, objects: list[Object], version: Version, hard: int
) -> Iterator[tuple[str, int]]:
    """What one other pod weighs, and by which label."""
    for name, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
        for each in side(pod, name, PREFERRED):
            if own_term_means(each["podAffinityTerm"], pod, other, objects, version):
                yield each["podAffinityTerm"]["topologyKey"], sign * each["weight"]
        for each in side(other, name, PREFERRED):
            if other_term_means(each["podAffinityTerm"], other, pod, objects):
                yield each["podAffinityTerm"]["topologyKey"], sign * each["weight"]
    for term in side(other, "podAffinity", REQUIRED):
        if hard and other_term_means(term, other, pod, objects):
            yield term["topologyKey"], hard


def define_scores(
    pod: Object,
    feasible: list[Object],
    objects: list[Object],
    version: Version,
    arguments: InterPodAffinityArgs,
) -> list[int] | None:
    wishes = any(side(pod, name, PREFERRED) for name in ("podAffinity", "podAntiAffinity"))
    if arguments.ignore_preferred_terms_of_existing_pods and not wishes:
        return None
    sums: Counter[tuple[str, str]] = Counter()
    for other, place in counted(objects):
        for key, weight in weights(pod, other, objects, version, arguments.hard_pod_affinity_weight):
            if key in labels_of(place):
                sums[key, labels_of(place)[key]] += weight
    if not sums:
        return None
    raw = [sum(sums[pair] for pair in labels_of(node).items() if pair in sums) for node in feasible]
    least, most = min(raw), max(raw)
    return [int(100.0 * ((each - least) / (most - least))) if most > least else 0 for each in raw]


def asking_pod(drawn: Random) -> Object:
    namespace = drawn.choice(("default", "default", "shop", "unknown"))
    return builders.pod("asking", namespace=namespace, labels=labels(drawn), affinity=affinity(drawn))


@given(dice, versions)
@settings(max_examples=300)
def test_the_refusals_are_those_of_the_definition(drawn: Random, version: Version) -> None:
    pod = asking_pod(drawn)
    objects = [*crowd(drawn), pod]
    view = world(*objects, version=version)

    found = refused(
        view, filter_inter_pod_affinity(asking(view, namespace=pod["metadata"]["namespace"]), view)
    )

    expected = {
        node["metadata"]["name"]: [reason]
        for node in of_kind(objects, "Node")
        if (reason := define_refusal(pod, node, objects, version))
    }
    for reason in {reason for reasons in expected.values() for reason in reasons}:
        event(reason)
    assert found == expected


@given(dice, versions, arguments)
@settings(max_examples=300)
def test_the_scores_are_those_of_the_definition(
    drawn: Random, version: Version, given_arguments: InterPodAffinityArgs
) -> None:
    pod = asking_pod(drawn)
    objects = [*crowd(drawn), pod]
    nodes = of_kind(objects, "Node")
    chosen = drawn.sample(range(len(nodes)), drawn.randint(1, len(nodes)))
    view = world(*objects, version=version)

    asked = asking(view, namespace=pod["metadata"]["namespace"])
    found = score_inter_pod_affinity(asked, view, np.array(chosen, np.int32), given_arguments)

    feasible = [nodes[each] for each in chosen]
    expected = define_scores(pod, feasible, objects, version, given_arguments)
    event("skipped" if expected is None else "scored" if any(expected) else "all equal")
    assert not isinstance(found, Rejected)
    assert (None if found is None else found.tolist()) == expected
