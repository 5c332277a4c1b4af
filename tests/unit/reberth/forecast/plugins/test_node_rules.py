"""Rules on single nodes: names, taints, node affinity, unschedulable nodes."""

from typing import Any

import numpy as np
import pytest

from reberth.forecast.plugins.node_rules import (
    filter_node_affinity,
    filter_node_declared_features,
    filter_node_unschedulable,
    filter_taint_toleration,
    prefilter_node_affinity,
    score_node_affinity,
    score_taint_toleration,
)
from reberth.forecast.state.plugin_args import NodeAffinityArgs
from reberth.forecast.state.verdict import Rejected
from reberth.records import NodeAffinity
from tests.support.builders import as_record, node, pod
from tests.support.forecast.worlds import asking, everywhere, refused, world

PLAIN = NodeAffinityArgs()


def taint(key: str, effect: str = "NoSchedule", value: str | None = None) -> dict[str, Any]:
    return {"key": key, "effect": effect} | ({"value": value} if value else {})


def in_zone(*zones: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "zone", "operator": "In", "values": list(zones)}]}


def named(*names: str) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(names)}]}


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    chosen = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"nodeAffinity": chosen}


def preferred(*weighed: tuple[int, dict[str, Any]]) -> dict[str, Any]:
    terms = [{"weight": weight, "preference": term} for weight, term in weighed]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}


def zoned(name: str, zone: str, **fields: Any) -> dict[str, Any]:
    return node(name, labels={"zone": zone}, **fields)


def test_an_unschedulable_node_accepts_only_pods_that_tolerate_it() -> None:
    shut = node("b")
    shut["spec"]["unschedulable"] = True
    tolerant = pod("asking", tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}])
    view = world(node("a"), shut, pod("asking"))
    assert refused(view, filter_node_unschedulable(asking(view), view)) == {
        "b": ["node(s) were unschedulable"]
    }
    view = world(node("a"), shut, tolerant)
    assert filter_node_unschedulable(asking(view), view) == ()


def test_only_taints_that_keep_away_refuse() -> None:
    view = world(
        node("free"),
        node("kept", taints=[taint("k", value="v")]),
        node("drained", taints=[taint("k", "NoExecute")]),
        node("soft", taints=[taint("k", "PreferNoSchedule")]),
        pod("asking", tolerations=[{"key": "k", "value": "v", "effect": "NoSchedule"}]),
    )
    found = refused(view, filter_taint_toleration(asking(view), view))
    assert found == {"drained": ["node(s) had untolerated taint(s)"]}


@pytest.mark.parametrize(("counts", "scores"), [((0, 1, 2), [100, 50, 0]), ((0, 0), [100, 100]), ((3,), [0])])
def test_preferred_taints_cost_in_proportion_to_the_worst_node(
    counts: tuple[int, ...], scores: list[int]
) -> None:
    nodes = [
        node(f"n{place}", taints=[taint(f"t{number}", "PreferNoSchedule") for number in range(count)])
        for place, count in enumerate(counts)
    ]
    view = world(*nodes, pod("asking"))
    assert score_taint_toleration(asking(view), view, everywhere(view)).tolist() == scores


def test_selector_and_affinity_must_both_hold() -> None:
    view = world(
        zoned("a", "z1"),
        zoned("b", "z2"),
        node("c", labels={"zone": "z1", "disk": "ssd"}),
        pod("asking", nodeSelector={"disk": "ssd"}, affinity=required(in_zone("z1"), in_zone("z3"))),
    )
    found = refused(view, filter_node_affinity(asking(view), view, PLAIN))
    reason = ["node(s) didn't match Pod's node affinity/selector"]
    assert found == {"a": reason, "b": reason}


def test_added_affinity_refuses_more_nodes() -> None:
    arguments = NodeAffinityArgs(
        added_affinity=as_record(NodeAffinity, required(in_zone("z1"))["nodeAffinity"])
    )
    view = world(zoned("a", "z1"), zoned("b", "z2"), pod("asking", nodeSelector={"zone": "z2"}))
    assert refused(view, filter_node_affinity(asking(view), view, arguments)) == {
        "a": ["node(s) didn't match Pod's node affinity/selector"],
        "b": ["node(s) didn't match scheduler-enforced node affinity"],
    }


def test_match_fields_narrow_the_search() -> None:
    view = world(node("a"), node("b"), node("c"), pod("asking", affinity=required(named("a"), named("x"))))
    narrowed = prefilter_node_affinity(asking(view), view)
    assert narrowed is not None
    assert narrowed.tolist() == [True, False, False]


def test_conflicting_match_fields_reject_the_pod() -> None:
    term = named("a")
    term["matchFields"] += named("b")["matchFields"]
    view = world(node("a"), node("b"), pod("asking", affinity=required(term)))
    assert filter_node_affinity(asking(view), view, PLAIN) == Rejected("pod affinity terms conflict")


def test_any_node_may_be_searched_unless_names_are_demanded() -> None:
    view = world(node("a"), pod("asking", affinity=required(named("a"), in_zone("z1"))))
    assert prefilter_node_affinity(asking(view), view) is None


def test_preferences_add_up_and_the_profile_adds_its_own() -> None:
    added = as_record(NodeAffinity, preferred((10, in_zone("z3")))["nodeAffinity"])
    wishes = preferred((30, in_zone("z1")), (10, in_zone("z1", "z2")), (5, {}))
    view = world(zoned("a", "z1"), zoned("b", "z2"), zoned("c", "z3"), pod("asking", affinity=wishes))
    plain, more = (
        score_node_affinity(asking(view), view, everywhere(view), arguments)
        for arguments in (PLAIN, NodeAffinityArgs(added_affinity=added))
    )
    assert isinstance(plain, np.ndarray)
    assert isinstance(more, np.ndarray)
    assert plain.tolist() == [100, 25, 0]
    assert more.tolist() == [100, 25, 25]


def test_a_pod_without_preferences_is_not_scored() -> None:
    view = world(node("a"), pod("asking"))
    assert score_node_affinity(asking(view), view, everywhere(view), PLAIN) is None


def test_a_malformed_preference_fails_the_cycle() -> None:
    term = {"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["many"]}]}
    view = world(node("a"), node("b"), pod("asking", affinity=preferred((1, term))))
    found = score_node_affinity(asking(view), view, everywhere(view), PLAIN)
    assert isinstance(found, Rejected)
    assert found.reason.startswith('running PreScore plugin "NodeAffinity": ')


FEATURES = ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport")


@pytest.mark.parametrize(("version", "lacking"), [((1, 36), ["b", "c"]), ((1, 35), [])])
def test_features_are_required_since_their_version(version: tuple[int, int], lacking: list[str]) -> None:
    able, half = node("a"), node("b")
    able["status"]["declaredFeatures"] = list(FEATURES)
    half["status"]["declaredFeatures"] = [FEATURES[0]]
    demanding = pod("asking", hostNetwork=True, hostUsers=False)
    demanding["spec"]["containers"][0]["restartPolicyRules"] = [{"action": "RestartAllContainers"}]
    view = world(able, half, node("c"), demanding, version=version)
    assert list(refused(view, filter_node_declared_features(asking(view), view))) == lacking


def test_a_plain_pod_requires_no_features() -> None:
    view = world(node("a"), pod("asking"))
    assert filter_node_declared_features(asking(view), view) == ()
