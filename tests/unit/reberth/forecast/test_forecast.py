"""Whole scheduling cycles: refusals, best nodes, and pods without a forecast."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from reberth.cluster.columns import Indices, Ints
from reberth.forecast.forecast import (
    Forecast,
    Victim,
    expect_victim,
    forecast,
    forecast_replacement,
    forecast_with_stale_cache,
)
from reberth.forecast.output import describe, tabulate
from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.forecast.state.profile import KubeScheduler, default_scheduler, parse_scheduler
from reberth.forecast.state.verdict import Refusal, Unforeseeable, refuse
from reberth.forecast.state.view import View
from tests.support.builders import node, owner, pod
from tests.support.forecast.worlds import asking, place_of, world

SCHEDULER = default_scheduler((1, 36))
OWNED = owner("ReplicaSet", "web-1")


def landing(*objects: dict[str, Any], scheduler: KubeScheduler = SCHEDULER) -> dict[str, Any]:
    view = world(*objects)
    return describe(forecast(asking(view), view, scheduler), view.facts.snapshot, state="pending")


def foreseen(view: View, name: str, *, victim: Victim | None = None) -> Forecast:
    found = forecast_replacement(place_of(view, name), view, SCHEDULER, victim=victim)
    assert isinstance(found, Forecast)
    return found


def names(view: View, places: Any) -> list[str]:
    return [view.nodes.names[place] for place in places]


def test_the_best_node_wins_with_the_scores_of_every_plugin() -> None:
    found = landing(
        node("a"), node("b"), pod("old", node="a", cpu="4", memory="16Gi"), pod("asking", cpu="1")
    )
    assert found["best"] == ["b"]
    assert found["chances"] == {"b": 1.0}
    assert found["feasible"]["b"]["total"] == sum(found["feasible"]["b"]["plugins"].values())
    assert found["feasible"]["b"]["plugins"]["TaintToleration"] == 300
    assert "VolumeBinding" not in found["feasible"]["b"]["plugins"]


def test_a_node_has_the_reasons_of_the_first_plugin_that_refuses_it() -> None:
    shut = node("a", unschedulable=True, taints=[{"key": "k", "effect": "NoSchedule"}], cpu="1")
    found = landing(shut, node("b", cpu="1", memory="1Gi"), pod("asking", cpu="2", memory="2Gi"))
    assert found["refused"] == {
        "a": ["node(s) were unschedulable"],
        "b": ["Insufficient cpu", "Insufficient memory"],
    }
    assert found["best"] == []


def test_a_single_feasible_node_is_not_scored() -> None:
    found = landing(node("a"), pod("asking"))
    assert found["feasible"] == {"a": {"total": None, "plugins": {}}}
    assert found["chances"] == {"a": 1.0}


def test_equal_nodes_share_the_chance() -> None:
    found = landing(node("a"), node("b"), pod("asking"))
    assert found["best"] == ["a", "b"]
    assert found["chances"] == {"a": 0.5, "b": 0.5}


def test_no_nodes_no_landing() -> None:
    assert landing(pod("asking"))["feasible"] == {}


def test_match_fields_refuse_all_other_nodes() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    }
    found = landing(node("a"), node("b"), pod("asking", affinity=affinity))
    assert found["best"] == ["a"]
    assert found["refused"] == {"b": ["node(s) didn't satisfy plugin(s) [NodeAffinity]"]}


def test_a_feasible_nominated_node_is_the_only_candidate() -> None:
    objects = [node("a"), node("b"), pod("old", node="a", cpu="4")]
    assert landing(*objects, pod("asking", cpu="1", status={"nominatedNodeName": "a"}))["best"] == ["a"]
    assert landing(*objects, pod("asking", cpu="5", status={"nominatedNodeName": "a"}))["best"] == ["b"]


@pytest.mark.parametrize(
    ("priority", "scheduler", "best"),
    [(5, None, ["b"]), (4, None, ["a"]), (5, "other", ["a"]), (9, None, ["b"])],
)
def test_a_nominated_pod_counts_for_pods_of_lower_or_equal_priority(
    priority: int, scheduler: str | None, best: list[str]
) -> None:
    named = {"schedulerName": scheduler} if scheduler else {}
    rival = pod("rival", cpu="7", priority=priority, status={"nominatedNodeName": "a"}, **named)
    found = landing(
        node("a"), node("b"), pod("old", node="b", cpu="4"), rival, pod("asking", cpu="2", priority=5)
    )
    assert found["best"] == best


@pytest.mark.parametrize(("namespace", "best"), [("default", ["b"]), ("other", ["a", "b"])])
def test_an_empty_selector_of_a_spread_constraint_counts_nominated_pods_alone(
    namespace: str, best: list[str]
) -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {},
    }
    there = [pod(f"there-{number}", node="b") for number in range(2)]
    rival = pod("rival", namespace=namespace, status={"nominatedNodeName": "a"})
    asking = pod("asking", topologySpreadConstraints=[spread])
    found = landing(node("a"), node("b"), *there, rival, asking)
    assert sorted(found["feasible"]) == best


def test_a_pod_of_an_unknown_profile_cannot_be_forecast() -> None:
    found = landing(node("a"), pod("asking", schedulerName="volcano"))
    assert found["unforeseeable"] == "the scheduler has no profile volcano"


def test_a_pod_with_a_malformed_preference_is_rejected() -> None:
    term = {"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["many"]}]}
    wish = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}
    found = landing(node("a"), node("b"), pod("asking", affinity={"nodeAffinity": wish}))
    assert found["feasible"] == {}
    assert found["refused"]["a"][0].startswith('running PreScore plugin "NodeAffinity"')


def test_a_replacement_is_scheduled_beside_the_terminating_pod() -> None:
    old = pod("old", node="a", cpu="5", owned_by=OWNED, terminationGracePeriodSeconds=30)
    view = world(node("a"), node("b"), old, pod("other", node="b", cpu="2"))
    assert names(view, foreseen(view, "old").best) == ["b"]
    assert names(view, foreseen(view, "old", victim=Victim.GONE).best) == ["a"]


@pytest.mark.parametrize(
    ("kind", "grace", "victim"),
    [
        ("ReplicaSet", 30, Victim.TERMINATING),
        ("ReplicaSet", 0, Victim.GONE),
        ("StatefulSet", 30, Victim.GONE),
    ],
)
def test_the_controller_decides_what_is_seen_of_the_old_pod(kind: str, grace: int, victim: Victim) -> None:
    view = world(pod("old", owned_by=owner(kind, "web"), terminationGracePeriodSeconds=grace))
    assert expect_victim(view.facts.snapshot.pods.rows[0]) is victim


def test_a_stale_cache_is_the_rare_case() -> None:
    old = pod("old", node="a", owned_by=OWNED, cpu="5")
    view = world(node("a"), node("b"), old, pod("x", node="b", cpu="2"))
    rare = forecast_with_stale_cache(place_of(view, "old"), view, SCHEDULER)
    found = describe(foreseen(view, "old"), view.facts.snapshot, state="next", rare=rare)
    assert found["best"] == ["a", "b"]
    assert found["chances"] == {"a": 0.98, "b": 0.02}
    assert list(found["feasible"]) == ["a", "b"]


def test_a_case_without_a_feasible_node_has_no_share() -> None:
    view = world(node("a", cpu="6"), pod("old", node="a", owned_by=OWNED, cpu="5"))
    rare = forecast_with_stale_cache(place_of(view, "old"), view, SCHEDULER)
    assert rare == ()
    assert describe(foreseen(view, "old"), view.facts.snapshot, state="next", rare=rare)["chances"] == {
        "a": 1.0
    }


def test_a_stale_cache_shows_an_earlier_state() -> None:
    assert Victim.GONE.earlier == (Victim.UNNOTICED, Victim.TERMINATING)
    assert Victim.TERMINATING.earlier == (Victim.UNNOTICED,)
    assert Victim.UNNOTICED.earlier == ()


def test_a_bare_pod_has_no_replacement() -> None:
    view = world(node("a"), pod("bare", node="a"))
    assert isinstance(forecast_replacement(place_of(view, "bare"), view, SCHEDULER), Unforeseeable)


def test_disabled_plugins_do_not_score() -> None:
    text = b"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {disabled: [{name: NodeResourcesFit}, {name: NodeAffinity}]}
"""
    found = landing(
        node("a", cpu="1"), node("b"), pod("asking", cpu="2", nodeSelector={"x": "y"}),
        scheduler=parse_scheduler(text, version=(1, 36)),
    )  # fmt: skip
    assert set(found["feasible"]) == {"a", "b"}
    assert "NodeResourcesFit" not in found["feasible"]["a"]["plugins"]


class Strict:
    """An extender that refuses one node and adds to another."""

    def filter(self, incoming: IncomingPod, view: View, nodes: Indices) -> Sequence[Refusal]:
        assert incoming.name == "asking"
        return refuse("kept away", np.isin(np.arange(view.facts.size), nodes[:1]))

    def prioritize(self, incoming: IncomingPod, view: View, nodes: Indices) -> Ints:
        assert incoming.name == "asking"
        return np.where(nodes == view.nodes.index["c"], np.int64(2000), np.int64(0))

    rank = prioritize


def test_extenders_refuse_after_the_filters_and_add_to_the_scores() -> None:
    view = world(node("a"), node("b"), node("c"), pod("old", node="c", cpu="7"), pod("asking", cpu="1"))
    found = forecast(asking(view), view, SCHEDULER, extenders=[Strict()])
    assert isinstance(found, Forecast)
    assert names(view, found.best) == ["c"]
    assert found.reasons(0) == ["kept away"]
    assert found.chance_of(2) == 1.0
    assert found.chance_of(1) == 0.0


def test_a_table_shows_nodes_by_their_chances_and_counts_the_reasons() -> None:
    shut = [node(name, unschedulable=True) for name in ("x", "y")]
    full = pod("old", node="a", cpu="4", memory="16Gi")
    text = tabulate({"default/asking": landing(node("a"), node("b"), *shut, full, pod("asking", cpu="1"))})
    lines = text.splitlines()
    assert lines[0] == "default/asking (pending)"
    assert lines[1].split()[:3] == ["NODE", "CHANCE", "TOTAL"]
    assert [line.split()[:2] for line in lines[2:4]] == [["b", "100.0%"], ["a", "0.0%"]]
    assert lines[4] == "  refused on 2: node(s) were unschedulable"


def test_the_table_names_the_reason_without_a_forecast() -> None:
    assert "cannot be forecast: the scheduler has no profile" in tabulate(
        {"p": landing(pod("asking", schedulerName="x"))}
    )
    assert "no node is feasible" in tabulate({"p": landing(node("a", pods=0), pod("asking"))})
