"""The forecast knows the responses of our own extender."""

import json
from typing import Any

import numpy as np

from reberth.forecast.extender import (
    ReberthExtender,
    SnapshotMemory,
    find_reberth_extenders,
    list_other_extenders,
)
from reberth.forecast.forecast import Forecast, forecast, forecast_replacement
from reberth.forecast.state.profile import KubeScheduler, parse_scheduler
from reberth.forecast.state.view import View
from reberth.records import OpenMove, Phase
from tests.support.builders import node, owner, pod
from tests.support.forecast.worlds import asking, everywhere, place_of, world

OWNED = owner("ReplicaSet", "web-1", uid="rs-1")
CONFIGURATION = b"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- {urlPrefix: "https://10.0.0.1/avoid", filterVerb: filter, prioritizeVerb: prioritize, weight: 20}
- {urlPrefix: "https://10.0.0.1/scores/", prioritizeVerb: prioritize, weight: 1}
- {urlPrefix: "http://other:1/x", prioritizeVerb: prioritize, weight: 1}
"""


def scheduler() -> KubeScheduler:
    return parse_scheduler(CONFIGURATION, version=(1, 36))


def noted(name: str, *, strict: bool = False) -> dict[str, Any]:
    entry = {
        "podSignature": {"podController": {**OWNED}},
        "evictionTime": "1970-01-01T00:00:00Z",
        "reason": "too full",
        "reberth": {
            "id": "m-1", "namespace": "default", "policy": "balance", "expiresAt": "1970-01-01T01:00:00Z",
        } | ({"strict": True} if strict else {}),
    }  # fmt: skip
    text = json.dumps({"preferAvoidPods": [entry]})
    return node(name, annotations={"scheduler.alpha.kubernetes.io/preferAvoidPods": text})


def extenders(view: View) -> tuple[ReberthExtender, ...]:
    return find_reberth_extenders(scheduler(), SnapshotMemory(view.facts))


def landing(view: View) -> Forecast:
    found = forecast(asking(view), view, scheduler(), extenders=extenders(view))
    assert isinstance(found, Forecast)
    return found


def best(view: View, found: Forecast) -> list[str]:
    return [view.nodes.names[place] for place in found.best]


def test_reberths_extenders_are_recognized_by_their_paths() -> None:
    view = world()
    assert [each.path for each in extenders(view)] == ["avoid", "scores"]
    assert list_other_extenders(scheduler()) == ["http://other:1/x"]


def test_a_noted_node_loses_against_a_fuller_one() -> None:
    busy = pod("old", node="b", cpu="6", memory="24Gi")
    view = world(noted("a"), node("b"), busy, pod("asking", owned_by=OWNED, cpu="1"))
    assert best(view, landing(view)) == ["b"]


def test_a_strict_note_refuses_its_node() -> None:
    view = world(noted("a", strict=True), node("b"), pod("asking", owned_by=OWNED))
    found = landing(view)
    assert found.reasons(0) == ["reberth keeps this workload off the node"]
    assert best(view, found) == ["b"]


def test_a_path_without_a_filter_refuses_nothing() -> None:
    view = world(noted("a", strict=True), pod("asking", owned_by=OWNED))
    silent = ReberthExtender(SnapshotMemory(view.facts), "avoid", refuses=False, weight=20)
    assert silent.filter(asking(view), view, everywhere(view)) == ()


def test_a_path_without_a_prioritize_verb_adds_nothing() -> None:
    view = world(noted("a"), pod("asking", owned_by=OWNED))
    silent = ReberthExtender(SnapshotMemory(view.facts), "avoid", refuses=True, weight=0)
    assert silent.prioritize(asking(view), view, everywhere(view)).tolist() == [0]


def test_a_planned_move_is_forecast_as_if_it_were_open() -> None:
    old = pod("old", node="a", owned_by=OWNED, cpu="1")
    view = world(node("a"), node("b"), node("c"), pod("busy", node="b", cpu="7"), old)
    move = OpenMove(
        id="m-2", pod="old", pod_uid="u", controller_uid="rs-1", from_="a", phase=Phase.NOTED,
        planned_at="1970-01-01T00:00:00Z", expires_at="1970-01-01T01:00:00Z", destinations=("b", "a"),
    )  # fmt: skip
    plain = extenders(view)
    moving = tuple(each.moving(move) if each.path == "avoid" else each for each in plain)
    without = forecast_replacement(place_of(view, "old"), view, scheduler(), extenders=plain)
    drawn = forecast_replacement(place_of(view, "old"), view, scheduler(), extenders=moving)
    assert isinstance(without, Forecast)
    assert isinstance(drawn, Forecast)
    assert "b" not in best(view, without)
    assert best(view, drawn) == ["b"]


def opened(namespace: str = "default") -> dict[str, Any]:
    """The history of a workload with a move that draws to b."""
    return {
        "apiVersion": "reberth.dev/v1alpha1",
        "kind": "EvictionHistory",
        "metadata": {"name": "replicaset-web-1", "namespace": namespace},
        "spec": {"workload": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "rs-1"}},
        "status": {"open": [{
            "id": "m-3", "pod": "gone", "podUID": "u", "controllerUID": "rs-1", "from": "a",
            "phase": "Evicted",
            "destinations": ["b"], "plannedAt": "1970-01-01T00:00:00Z", "expiresAt": "1970-01-01T01:00:00Z",
        }]},
    }  # fmt: skip


WAITING = pod("asking", owned_by=OWNED, created="1970-01-01T00:00:01Z")
BUSY = pod("busy", node="b", cpu="7")


def test_a_replica_is_drawn_by_the_open_move_of_its_controller() -> None:
    view = world(node("a"), node("b"), BUSY, WAITING, opened())
    avoid, _ = extenders(view)
    assert avoid.prioritize(asking(view), view, np.array([1, 0])).tolist() == [2000, 0]
    assert best(view, landing(view)) == ["b"]


def test_a_history_of_another_namespace_draws_nobody() -> None:
    view = world(node("a"), node("b"), BUSY, WAITING, opened("tenant"))
    assert best(view, landing(view)) == ["a"]


def test_a_pod_of_another_namespace_is_no_replica_that_takes_the_draw() -> None:
    foreign = pod("x", namespace="tenant", node="b", owned_by=OWNED, created="1970-01-01T00:00:01Z")
    view = world(node("a"), node("b"), BUSY, WAITING, opened(), foreign)
    assert best(view, landing(view)) == ["b"]


def test_where_a_destination_may_be_missed_the_next_one_draws() -> None:
    """Of 200 nodes kube-scheduler looks at 100: half of the time at the first, else mostly at the second."""
    old = pod("old", node="n000", owned_by=OWNED, cpu="1")
    noted_ones = [noted(f"n{number:03d}") for number in range(3, 6)]
    view = world(
        *(node(f"n{number:03d}") for number in range(200) if number not in range(3, 6)), *noted_ones, old
    )
    move = OpenMove(
        id="m-4", pod="old", pod_uid="u", controller_uid="rs-1", from_="n000", phase=Phase.NOTED,
        planned_at="1970-01-01T00:00:00Z", expires_at="1970-01-01T01:00:00Z",
        destinations=("n150", "n003", "gone", "n020"),
    )  # fmt: skip
    sampling = parse_scheduler(CONFIGURATION + b"percentageOfNodesToScore: 50\n", version=(1, 36))
    moving = [each.moving(move) for each in find_reberth_extenders(sampling, SnapshotMemory(view.facts))]
    found = forecast_replacement(place_of(view, "old"), view, sampling, extenders=moving)
    assert isinstance(found, Forecast)
    index = view.nodes.index
    chances = [found.chance_of(index[name]) for name in ("n150", "n020")]
    assert np.allclose(chances, [100 / 200, 100 / 200 * 100 / 199])
    assert best(view, found) == ["n150"]
    assert found.chance_of(index["n000"]) == found.chance_of(index["n003"]) == 0.0
    assert 0.0 < found.chance_of(index["n001"]) < 0.01
