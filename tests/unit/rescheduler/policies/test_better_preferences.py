"""Pods whose preferences are better met on another node."""

from typing import Any

import pytest

from tests.support import builders
from tests.support.rescheduler.plans import Object, make_plan, moves_of, policy, refusals_of, replica

HOSTNAME = "kubernetes.io/hostname"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def prefers(*values: str, key: str = "disk") -> Object:
    expression = {"key": key, "operator": "In", "values": list(values)}
    return {"nodeAffinity": {PREFERRED: [{"weight": 100, "preference": {"matchExpressions": [expression]}}]}}


def company(side: str, app: str) -> Object:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": app}}}
    return {side: {PREFERRED: [{"weight": 100, "podAffinityTerm": term}]}}


def even() -> list[Object]:
    matching = {"labelSelector": {"matchLabels": {"app": "web"}}}
    return [{"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "ScheduleAnyway", **matching}]


def two_nodes(**spec: Any) -> list[Object]:
    """A pod on a, its sibling and a database on b; b has the label that is preferred."""
    return [
        builders.node("a"),
        builders.node("b", labels={"disk": "ssd"}),
        replica("web-1", "web", "a", **spec),
        replica("web-2", "web", "b", **spec),
        replica("db-1", "db", "b"),
        replica("db-2", "db", "b"),
    ]


def ask(objects: list[Object], **settings: Any) -> tuple[dict[str, str], dict[str, str]]:
    made, _ = make_plan(
        objects,
        policy(
            level=5,
            policies={
                "betterPreferences": settings,
                "brokenRules": {"enabled": False},
                "underUtilisedNodes": {"enabled": False},
            },
        ),
    )
    return moves_of(made), refusals_of(made)


@pytest.mark.parametrize(
    ("spec", "switch"),
    [
        ({"affinity": prefers("ssd")}, "nodeAffinity"),
        ({"affinity": company("podAffinity", "db")}, "podAffinity"),
    ],
)
def test_a_pod_goes_where_more_of_its_preferences_are_met(spec: Object, switch: str) -> None:
    assert ask(two_nodes(**spec)) == ({"default/web-1": "b"}, {})
    assert ask(two_nodes(**spec), **{switch: False}) == ({}, {})


@pytest.mark.parametrize(
    ("spec", "switch"),
    [
        ({"affinity": company("podAntiAffinity", "web")}, "podAffinity"),
        ({"topologySpreadConstraints": even()}, "topologySpread"),
    ],
)
def test_preferred_anti_affinity_separates_pods(spec: Object, switch: str) -> None:
    objects = [builders.node("a"), builders.node("b")]
    objects += [replica(f"web-{number}", "web", "a", **spec) for number in range(2)]
    assert ask(objects) == ({"default/web-0": "b"}, {})
    assert ask(objects, **{switch: False}) == ({}, {})


def test_a_full_preferred_node_gets_no_move() -> None:
    objects = two_nodes(affinity=prefers("ssd"), cpu="4")
    objects += [replica("etl-1", "etl", "b", cpu="4")]
    assert ask(objects) == ({}, {"default/web-1": "NoBetterNode"})


def test_a_preferred_node_that_the_pod_may_not_have_is_not_looked_at() -> None:
    objects = two_nodes(affinity=prefers("ssd"))
    objects[1]["spec"]["taints"] = [{"key": "team", "effect": "NoSchedule"}]
    assert ask(objects) == ({}, {})


def test_a_preferred_node_due_for_removal_is_refused_as_leaving() -> None:
    objects = two_nodes(affinity=prefers("ssd"))
    objects[1]["spec"]["taints"] = [
        {"key": "DeletionCandidateOfClusterAutoscaler", "effect": "PreferNoSchedule"}
    ]
    assert ask(objects) == ({}, {"default/web-1": "DestinationLeaving"})
    assert ask([*objects, builders.node("c", labels={"disk": "ssd"})])[0] == {"default/web-1": "c"}


def test_a_pod_on_its_preferred_node_stays() -> None:
    assert ask(two_nodes(affinity=prefers("hdd"))) == ({}, {})


def test_a_preference_outweighed_by_other_scores_gives_no_move() -> None:
    objects = two_nodes(affinity=prefers("ssd"))
    heavy = {"key": "busy", "effect": "PreferNoSchedule"}
    objects[1]["spec"]["taints"] = [heavy]
    assert ask(objects) == ({}, {"default/web-1": "NoBetterNode"})


def test_a_preference_that_cannot_be_read_counts_for_nothing() -> None:
    bad = {
        "nodeAffinity": {
            PREFERRED: [{"weight": 1, "preference": {"matchExpressions": [{"key": "x", "operator": "?"}]}}]
        }
    }
    assert ask(two_nodes(affinity=bad)) == ({}, {})


def test_a_scheduler_that_is_not_known_has_no_preferences() -> None:
    assert ask(two_nodes(affinity=prefers("ssd"), schedulerName="other")) == ({}, {})
