"""Which pods break a rule, and which of them are moved."""

from typing import Any

import pytest

from tests.support import builders
from tests.support.rescheduler.plans import Object, make_plan, moves_of, policy, replica

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
RED = {"key": "team", "value": "red", "effect": "NoSchedule"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def spread(most: int, key: str = ZONE, **fields: Any) -> list[Object]:
    matching = {"labelSelector": {"matchLabels": {"app": "web"}}}
    return [{"maxSkew": most, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **matching, **fields}]


def zones(*sizes: int, most: int = 1, **fields: Any) -> list[Object]:
    """One node a zone, with so many replicas in each."""
    nodes = [builders.node(f"n{zone}", zone=f"z{zone}", cpu="64") for zone in range(len(sizes))]
    pods = [
        replica(f"web-{zone}-{number}", "web", f"n{zone}", topologySpreadConstraints=spread(most, **fields))
        for zone, size in enumerate(sizes)
        for number in range(size)
    ]
    return [*nodes, *pods]


def plan_moves(objects: list[Object], **rules: Any) -> dict[str, str]:
    """The moves when nothing limits them, of this policy alone."""
    settings = policy(
        limits={"perWorkload": None, "perNode": None},
        policies={"brokenRules": rules, "underUtilisedNodes": {"enabled": False}},
    )
    made, _ = make_plan(objects, settings)
    return moves_of(made)


@pytest.mark.parametrize(
    ("sizes", "most", "count"),
    [
        ((3, 1), 1, 1),
        ((5, 2), 1, 1),
        ((8, 7, 0), 1, 5),
        ((5, 5, 5), 1, 0),
        ((3, 3), 1, 0),
        ((2, 6), 2, 1),
        ((4, 2), 2, 0),
    ],
)
def test_domains_are_evened_out_with_as_few_moves_as_it_takes(
    sizes: tuple[int, ...], most: int, count: int
) -> None:
    assert len(plan_moves(zones(*sizes, most=most))) == count


def test_leaving_pods_do_not_count_for_spread() -> None:
    objects = zones(3, 2, 1)
    objects[3]["metadata"]["deletionTimestamp"] = "2026-11-18T12:00:30Z"
    assert plan_moves(objects) == {}


def test_a_node_without_the_label_is_no_place_for_the_pod() -> None:
    objects = zones(1, 1)
    del objects[0]["metadata"]["labels"][ZONE]
    assert plan_moves(objects) == {"default/web-0-0": "n1"}


def test_spread_that_cannot_be_read_is_left_to_others() -> None:
    bad = {"matchExpressions": [{"key": "app", "operator": "Sometimes", "values": ["web"]}]}
    assert plan_moves(zones(3, 0, labelSelector=bad)) == {}


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_hard_taint_moves_pods_that_do_not_tolerate_it(effect: str) -> None:
    objects = [
        builders.node("a", taints=[{**RED, "effect": effect}]),
        builders.node("b"),
        replica("web-1", "web", "a"),
        replica("web-2", "web", "b"),
        replica("log-1", "log", "a", tolerations=[{"key": "team", "operator": "Exists"}]),
        replica("log-2", "log", "b"),
    ]
    assert plan_moves(objects) == {"default/web-1": "b"}
    assert plan_moves(objects, taints={"enabled": False}) == {}


def test_a_soft_taint_moves_no_pod() -> None:
    soft = builders.node("a", taints=[{**RED, "effect": "PreferNoSchedule"}])
    assert (
        plan_moves([soft, builders.node("b"), replica("web-1", "web", "a"), replica("web-2", "web", "b")])
        == {}
    )


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {"disk": "ssd"}},
        {
            "affinity": {
                "nodeAffinity": {
                    REQUIRED: {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
                        ]
                    }
                }
            }
        },
    ],
)
def test_a_node_that_no_longer_matches_is_left(spec: Object) -> None:
    objects = [
        builders.node("a"),
        builders.node("b", labels={"disk": "ssd"}),
        replica("web-1", "web", "a", **spec),
        replica("web-2", "web", "b", **spec),
    ]
    assert plan_moves(objects) == {"default/web-1": "b"}
    assert plan_moves(objects, nodeAffinity={"enabled": False}) == {}


def apart(app: str, **fields: Any) -> Object:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": app}}, **fields}
    return {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}


def pair(**rule: Any) -> list[Object]:
    """Two workloads on one node, the first of which keeps the second away, and a free node."""
    return [
        builders.node("a"),
        builders.node("b"),
        builders.node("c", cpu="1"),
        replica("web-1", "web", "a", **rule),
        replica("web-2", "web", "c", cpu="1", **rule),
        replica("db-1", "db", "a", priority=1000),
        replica("db-2", "db", "b", priority=1000),
    ]


def test_of_two_that_are_to_be_apart_the_less_important_moves() -> None:
    objects = [each for each in pair(**apart("db")) if each["metadata"]["name"] != "db-2"]
    objects += [builders.node("d", cpu="1"), replica("db-2", "db", "d", cpu="1")]
    assert plan_moves(objects) == {"default/web-1": "b"}
    assert plan_moves(objects, antiAffinity=False) == {}


def test_if_one_pod_is_protected_the_other_moves() -> None:
    objects = pair(**apart("db"))
    for each in objects:
        if each["metadata"]["name"].startswith("web"):
            each["metadata"]["annotations"] = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    assert plan_moves(objects) == {"default/db-1": "b"}


def test_a_pod_does_not_keep_itself_away() -> None:
    objects = [builders.node("a"), builders.node("b"), replica("web-1", "web", "a", **apart("web"))]
    assert plan_moves(objects) == {}


def test_unreadable_affinity_terms_are_ignored() -> None:
    bad = {"matchExpressions": [{"key": "app", "operator": "Sometimes"}]}
    assert plan_moves(pair(**apart("db", labelSelector=bad))) == {}


def test_duplicates_are_spread_when_that_is_wanted() -> None:
    objects = [builders.node(name) for name in "abc"] + [replica(f"web-{n}", "web", "a") for n in range(3)]
    assert plan_moves(objects) == {}
    assert sorted(plan_moves(objects, duplicates=True).values()) == ["b", "c"]


def test_more_pods_than_nodes_are_no_duplicates() -> None:
    objects = [builders.node(name) for name in "ab"] + [
        replica(f"web-{n}", "web", "ab"[n % 2]) for n in range(4)
    ]
    assert plan_moves(objects, duplicates=True) == {}


def test_bare_pods_are_no_duplicates() -> None:
    objects = [
        builders.node("a"),
        builders.node("b"),
        builders.pod("x", node="a"),
        builders.pod("y", node="a"),
    ]
    assert plan_moves(objects, duplicates=True) == {}
