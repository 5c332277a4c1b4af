"""InterPodAffinity: kube-scheduler's own scores and reasons, for malformed terms too."""

from typing import Any

import pytest

from reberth.cluster.pods.requests import Version
from reberth.forecast.plugins.inter_pod_affinity import (
    filter_inter_pod_affinity,
    score_inter_pod_affinity,
    skips_inter_pod_affinity,
)
from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.forecast.state.plugin_args import InterPodAffinityArgs
from reberth.forecast.state.verdict import FITS, Rejected, Unforeseeable
from reberth.forecast.state.view import View
from tests.support.builders import node, pod
from tests.support.forecast.worlds import asking, everywhere, next_of, place_of, refused, world

Object = dict[str, Any]

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
NEAR = ["node(s) didn't match pod affinity rules"]
APART = ["node(s) didn't match pod anti-affinity rules"]
KEPT_OFF = ["node(s) didn't satisfy existing pods anti-affinity rules"]
PLAIN = InterPodAffinityArgs()
MALFORMED = {"matchExpressions": [{"key": "app", "operator": "Near"}]}

NODES = (node("a0", zone="a"), node("a1", zone="a"), node("b0", zone="b"), node("c0"))


def term(app: str | None = "db", key: str = HOSTNAME, **fields: Any) -> Object:
    selector: Object = {"matchLabels": {"app": app}} if app else {}
    return {"topologyKey": key, "labelSelector": selector, **fields}


def near(*terms: Object) -> Object:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def apart(*terms: Object) -> Object:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def wish(
    *, likes: dict[str, int] | None = None, dislikes: dict[str, int] | None = None, key: str = HOSTNAME
) -> Object:
    """Would like to be near some apps, and apart from others."""

    def side(weights: dict[str, int] | None) -> Object:
        terms = [
            {"weight": weight, "podAffinityTerm": term(app, key)} for app, weight in (weights or {}).items()
        ]
        return {"preferredDuringSchedulingIgnoredDuringExecution": terms}

    return {"podAffinity": side(likes), "podAntiAffinity": side(dislikes)}


def standing(app: str, on: str | None, affinity: Object | None = None, **fields: Any) -> Object:
    return pod(fields.pop("name", f"{app}-{on}"), node=on, labels={"app": app}, affinity=affinity, **fields)


def web(affinity: Object | None = None, **fields: Any) -> Object:
    return standing("web", None, affinity, name="asking", **fields)


def namespace(name: str, **labels: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def refusals(view: View, asked: IncomingPod | None = None) -> dict[str, list[str]]:
    return refused(view, filter_inter_pod_affinity(asked or asking(view), view))


def scores(
    view: View, asked: IncomingPod | None = None, arguments: InterPodAffinityArgs = PLAIN
) -> list[int] | None:
    found = score_inter_pod_affinity(asked or asking(view), view, everywhere(view), arguments)
    assert not isinstance(found, Rejected)
    return None if found is None else found.tolist()


def test_scores_are_stretched_over_the_whole_range() -> None:
    view = world(
        *NODES[:3],
        standing("queue", "a0"),
        standing("db", "b0"),
        web(wish(likes={"db": 45}, dislikes={"queue": 30})),
    )
    assert scores(view) == [0, 40, 100]


def test_weights_add_up_over_terms_pods_and_both_directions() -> None:
    view = world(
        *NODES,
        standing("db", "a0", wish(likes={"web": 4}, key=ZONE)),
        standing("db", "b0", near(term("web", ZONE))),
        standing("queue", "b0", wish(dislikes={"web": 3, "db": 50}, key=ZONE)),
        web(wish(likes={"db": 10, "queue": 1})),
    )
    # a0: 4 + 10, a1: 4, b0: 1 - 3 + 10 + 1, c0: 0
    assert scores(view) == [100, 28, 64, 0]
    heavy = InterPodAffinityArgs(hard_pod_affinity_weight=6)
    assert scores(view, arguments=heavy) == [100, 28, 100, 0]
    none = InterPodAffinityArgs(hard_pod_affinity_weight=0)
    assert scores(view, arguments=none) == [100, 28, 57, 0]


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([], None),
        ([standing("db", "c0")], None),
        ([standing("db", None)], None),
        ([standing("db", "a0", phase="Failed")], None),
        ([standing("db", "a0", deleted="2026-11-18T09:15:31Z")], [100, 100, 0, 0]),
        ([standing("db", "a0"), standing("queue", "a0")], [0, 0, 0, 0]),
    ],
)
def test_without_matching_pods_in_any_domain_nothing_is_scored(
    objects: list[Object], expected: list[int] | None
) -> None:
    asked = web(wish(likes={"db": 10}, dislikes={"queue": 10}, key=ZONE))
    assert scores(world(*NODES, *objects, asked)) == expected


def test_hard_pod_affinity_weight_may_be_zero() -> None:
    none = InterPodAffinityArgs(hard_pod_affinity_weight=0)
    view = world(*NODES, standing("db", "a0", near(term("web"))), web())
    assert scores(view) == [100, 0, 0, 0]
    assert scores(view, arguments=none) is None


def test_preferred_terms_of_existing_pods_may_be_ignored() -> None:
    ignoring = InterPodAffinityArgs(ignore_preferred_terms_of_existing_pods=True)
    others = [standing("db", "a0", wish(likes={"web": 10})), standing("queue", "b0")]
    assert scores(world(*NODES, *others, web()), arguments=ignoring) is None
    assert scores(world(*NODES, *others, web(near(term("queue")))), arguments=ignoring) is None
    assert scores(world(*NODES, *others, web(wish(likes={"queue": 5}))), arguments=ignoring) == [
        100,
        0,
        50,
        0,
    ]


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        (near(term()), {"a1": NEAR, "b0": NEAR, "c0": NEAR}),
        (near(term(key=ZONE)), {"b0": NEAR, "c0": NEAR}),
        (near(term(), term("queue")), {"a1": NEAR, "b0": NEAR, "c0": NEAR, "a0": NEAR}),
        (near(term(key=ZONE), term()), {"a1": NEAR, "b0": NEAR, "c0": NEAR}),
        (near(term("web", "rack")), {"a0": NEAR, "a1": NEAR, "b0": NEAR, "c0": NEAR}),
        (near(term("web", ZONE)), {"c0": NEAR}),
        (near(term("web"), term()), {"a0": NEAR, "a1": NEAR, "b0": NEAR, "c0": NEAR}),
        (near(term(None, ZONE)), {"c0": NEAR}),
        (apart(term()), {"a0": APART}),
        (apart(term(key=ZONE), term("queue")), {"a0": APART, "a1": APART, "b0": APART}),
        (apart(term("web")), {}),
        (near(term(key=ZONE)) | apart(term()), {"a0": APART, "b0": NEAR, "c0": NEAR}),
    ],
)
def test_required_terms_refuse_nodes(affinity: Object, expected: dict[str, list[str]]) -> None:
    view = world(*NODES, standing("db", "a0"), standing("queue", "b0"), web(affinity))
    assert refusals(view) == expected


def test_only_refusals_that_preemption_cannot_resolve_are_final() -> None:
    keeping_off = standing("queue", "b0", apart(term("web")))
    view = world(*NODES, standing("db", "a0"), keeping_off, web(near(term(key=ZONE)) | apart(term())))
    verdict = filter_inter_pod_affinity(asking(view), view)
    assert not isinstance(verdict, Rejected | Unforeseeable)
    assert [(each.reason, each.final) for each in verdict] == [(NEAR[0], True), (APART[0], False)]
    view = world(*NODES, keeping_off, web())
    verdict = filter_inter_pod_affinity(asking(view), view)
    assert not isinstance(verdict, Rejected | Unforeseeable)
    assert [(each.reason, each.final) for each in verdict] == [(KEPT_OFF[0], False)]


def test_the_first_pod_of_its_kind_may_go_to_any_node_with_the_labels() -> None:
    alone = web(near(term("web", ZONE)))
    assert refusals(world(*NODES, alone)) == {"c0": NEAR}
    not_in_a_zone = standing("web", "c0")
    assert refusals(world(*NODES, not_in_a_zone, alone)) == {"c0": NEAR}
    in_a_zone = standing("web", "b0")
    assert refusals(world(*NODES, in_a_zone, alone)) == {"a0": NEAR, "a1": NEAR, "c0": NEAR}


def test_a_pod_keeps_its_own_replacement_away_until_it_is_gone() -> None:
    view = world(*NODES, standing("web", "a0", apart(term("web"))), standing("web", "b0", name="other"))
    place, asked = place_of(view, "web-a0"), next_of(view, "web-a0")
    assert refusals(view, asked) == {"a0": APART, "b0": APART}
    assert refusals(view.with_terminating(place), asked) == {"a0": APART, "b0": APART}
    assert refusals(view.without(place), asked) == {"b0": APART}
    moved = view.with_pod_on(place, view.nodes.index["c0"])
    assert refusals(moved, next_of(view, "other")) == {"c0": KEPT_OFF}


@pytest.mark.parametrize(
    ("fields", "version", "expected"),
    [
        ({}, (1, 36), {}),
        ({"namespaces": ["shop"]}, (1, 36), {"a0": APART}),
        ({"namespaceSelector": {}}, (1, 37), {"a0": APART, "b0": APART}),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, (1, 36), {"a0": APART}),
        ({"namespaceSelector": {"matchLabels": {"team": "b"}}}, (1, 36), {}),
        (
            {"namespaces": ["unknown"], "namespaceSelector": {"matchLabels": {"team": "a"}}},
            (1, 36),
            {"a0": APART, "b0": APART},
        ),
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}},
            (1, 35),
            {"a0": APART, "b0": APART},
        ),
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}},
            (1, 36),
            {"a0": APART, "b0": APART},
        ),
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}},
            (1, 37),
            {"a0": APART},
        ),
        (
            {
                "namespaceSelector": {
                    "matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]
                }
            },
            (1, 36),
            {"a0": APART, "b0": APART},
        ),
        (
            {
                "namespaceSelector": {
                    "matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]
                }
            },
            (1, 37),
            {},
        ),
    ],
)
def test_the_namespaces_of_the_pods_own_terms_become_names(
    fields: Object, version: Version, expected: dict[str, list[str]]
) -> None:
    """Until 1.37 a selector that is content without any label means all namespaces."""
    others = [standing("db", "a0", namespace="shop"), standing("db", "b0", namespace="unknown")]
    known = [namespace("default", team="b"), namespace("shop", team="a")]
    view = world(*NODES, *known, *others, web(apart(term(**fields))), version=version)
    assert refusals(view) == expected


@pytest.mark.parametrize(
    ("fields", "keeps_off"),
    [
        ({}, False),
        ({"namespaces": ["default"]}, True),
        ({"namespaceSelector": {}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "b"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, False),
        ({"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}}, False),
    ],
)
def test_the_namespaces_of_others_terms_are_asked_by_label(fields: Object, *, keeps_off: bool) -> None:
    other = standing("db", "a0", apart(term("web", **fields)), namespace="shop")
    view = world(*NODES, namespace("default", team="b"), namespace("shop", team="a"), other, web())
    assert refusals(view) == ({"a0": KEPT_OFF} if keeps_off else {})


def test_terms_without_a_certain_label_and_labels_of_the_pods_own_are_asked_too() -> None:
    index = "apps.kubernetes.io/pod-index"
    some = {"matchExpressions": [{"key": index, "operator": "Exists"}]}
    first = {"matchLabels": {index: "0"}}
    others = [
        standing("db", "a0", apart(term(labelSelector=some))),
        standing("db", "b0", apart(term(labelSelector=first))),
    ]
    asked = [pod(f"web-{each}", labels={"app": "web", index: str(each)}) for each in (0, 1)]
    view = world(*NODES, *others, *asked, web())
    assert refusals(view, asking(view, "web-0")) == {"a0": KEPT_OFF, "b0": KEPT_OFF}
    assert refusals(view, asking(view, "web-1")) == {"a0": KEPT_OFF}
    assert refusals(view) == {}


def test_a_repeated_term_counts_twice() -> None:
    twice = wish(likes={"web": 5})
    side = twice["podAffinity"]
    side["preferredDuringSchedulingIgnoredDuringExecution"] *= 2
    view = world(
        *NODES[:3], standing("db", "a0", twice), standing("queue", "b0", wish(likes={"web": 5})), web()
    )
    assert scores(view) == [100, 0, 50]


def test_a_malformed_term_of_the_incoming_pod_rejects_it() -> None:
    view = world(*NODES, web(near(term(labelSelector=MALFORMED))))
    verdict = filter_inter_pod_affinity(asking(view), view)
    assert isinstance(verdict, Rejected)
    assert verdict.reason.startswith("parsing pod: requiredAffinityTerms: operator 'Near'")
    scored = score_inter_pod_affinity(asking(view), view, everywhere(view), PLAIN)
    assert isinstance(scored, Rejected)
    assert scored.reason.startswith(
        'running PreScore plugin "InterPodAffinity": failed to parse pod: requiredAffinityTerms: operator'
    )
    view = world(*NODES, web(near(term(labelSelector=MALFORMED)) | apart(term(namespaceSelector=MALFORMED))))
    verdict = filter_inter_pod_affinity(asking(view), view)
    assert isinstance(verdict, Rejected)
    assert verdict.reason.startswith("parsing pod: [requiredAffinityTerms: operator 'Near'")
    assert ", requiredAntiAffinityTerms: operator 'Near'" in verdict.reason


def test_a_malformed_term_of_an_existing_pod_invalidates_only_its_group() -> None:
    spoilt = apart(term("web"), term("web", labelSelector=MALFORMED)) | near(term("web"))
    view = world(*NODES[:3], standing("db", "a0", spoilt), web())
    assert filter_inter_pod_affinity(asking(view), view) == FITS
    assert scores(view) == [100, 0, 0]


@pytest.mark.parametrize(
    ("other", "affinity", "skips"),
    [
        (standing("db", "a0"), None, True),
        (standing("db", "a0", apart(term("web"))), None, False),
        (standing("db", "c0", apart(term("web", ZONE))), None, True),
        (standing("db", None, apart(term("web"))), None, True),
        (standing("db", "a0", apart(term("queue"))), None, True),
        (standing("db", "a0"), near(term("queue")), False),
        (standing("db", "a0"), apart(term("queue")), False),
        (standing("db", "a0"), wish(likes={"db": 1}), True),
    ],
)
def test_the_plugin_is_left_out_where_nothing_required_concerns_the_pod(
    other: Object, affinity: Object | None, *, skips: bool
) -> None:
    view = world(*NODES, other, web(affinity))
    assert skips_inter_pod_affinity(asking(view), view) is skips
