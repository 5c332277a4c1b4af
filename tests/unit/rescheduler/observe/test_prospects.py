"""Where a pod lands when the extender draws it, and which destinations are listed."""

from typing import Any

import numpy as np
import pytest

from reberth.cluster.object_files import load_objects
from reberth.forecast.cycle import NodeScores, run_scores
from reberth.forecast.extender import ExtenderForecastSettings, find_reberth_extenders
from reberth.forecast.forecast import profile_of
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.profile import Profile, parse_scheduler
from reberth.forecast.state.view import view_snapshot
from reberth.values.refusal import Refused
from rescheduler.observe.prospects import (
    Prospect,
    draw,
    find_avoided,
    forecast_move,
    list_destinations,
)
from rescheduler.observe.scheduler_model import AdvisedScheduler, CachedAdvice
from tests.support import builders
from tests.support.rescheduler.plans import NOW, VERSION, WITH_EXTENDER, Object, replica


def look(objects: list[Object], *, weight: int = 20, **advice: Any) -> tuple[Prospect, AdvisedScheduler]:
    """The prospect of web-1, as a scheduler sees it that asks our extender with this weight."""
    content = WITH_EXTENDER.read_text().replace("weight: 20", f"weight: {weight}")
    scheduler = parse_scheduler(content.encode(), version=VERSION)
    facts = SnapshotFacts(load_objects(objects, now=NOW, version=VERSION).snapshot, VERSION)
    settings = ExtenderForecastSettings()
    settings = type(settings)(advice=type(settings.advice)(**advice))
    advised = AdvisedScheduler(scheduler, find_reberth_extenders(scheduler, CachedAdvice(facts, settings)))
    place = facts.snapshot.pods.named("default", "web-1")
    assert place is not None
    found = forecast_move(place, view_snapshot(facts), advised)
    assert isinstance(found, Prospect)
    return found, advised


def uneven() -> list[Object]:
    """web-1 is on a, which is nearly empty; c is the fullest."""
    full = [replica("db-1", "db", "b", cpu="2"), replica("db-2", "db", "c", cpu="4")]
    return [*map(builders.node, "abc"), replica("web-1", "web", "a", cpu="1"), *full]


def chances(found: Prospect) -> list[float]:
    return [round(found.chance_of(node), 3) for node in range(3)]


def test_without_a_draw_the_pod_lands_on_the_node_with_the_best_score() -> None:
    found, _ = look(uneven())
    assert chances(found) == [1.0, 0.0, 0.0]
    assert found.gains.tolist()[0] == 0
    assert (found.gains[1:] < 0).all()


def test_a_drawn_pod_lands_on_its_first_destination_despite_scores() -> None:
    found, advised = look(uneven())
    assert chances(draw(found, np.array([2], np.int32), advised.extenders)) == [0.0, 0.0, 1.0]
    assert chances(draw(found, np.array([2, 1], np.int32), advised.extenders)) == [0.0, 0.0, 1.0]


def test_an_extender_with_too_little_weight_cannot_draw_a_pod() -> None:
    found, advised = look(uneven(), weight=1, notes=False)
    drawn = draw(found, np.array([2], np.int32), advised.extenders)
    assert drawn.chance_of(2) == 1.0  # a hundred points are more than the few that c lacks
    found, advised = look([*uneven(), replica("etl-1", "etl", "c", cpu="3")], weight=1, draw=False)
    assert draw(found, np.array([2], np.int32), advised.extenders).chance_of(2) == 0.0


def test_without_the_draw_the_note_on_the_source_still_counts() -> None:
    found, advised = look(uneven(), draw=False)
    assert chances(draw(found, np.array([2], np.int32), advised.extenders)) == [0.0, 1.0, 0.0]
    found, advised = look(uneven(), draw=False, notes=False)
    assert chances(draw(found, np.array([2], np.int32), advised.extenders)) == [1.0, 0.0, 0.0]


def test_leaving_nodes_are_avoided() -> None:
    objects = uneven()
    soft = {"key": "DeletionCandidateOfClusterAutoscaler", "effect": "PreferNoSchedule"}
    objects[1]["spec"]["taints"] = [soft]
    found, advised = look(objects)
    assert find_avoided(found, advised.extenders).tolist() == [False, True, False]
    found, advised = look(objects, standing=False)
    assert not find_avoided(found, advised.extenders).any()


@pytest.mark.parametrize(("count", "listed"), [(3, 2), (50, 3), (99, 3), (200, 10), (2000, 17)])
def test_enough_destinations_are_listed_for_the_scheduler_to_find_one(count: int, listed: int) -> None:
    nodes = [builders.node(f"n{number:04}") for number in range(count)]
    found, _ = look([*nodes, replica("web-1", "web", "n0000")])
    chosen = found.nodes != found.source
    destinations = list_destinations(found, chosen)
    assert abs(len(destinations) - listed) <= max(1, listed // 5)
    assert found.source not in destinations


def test_preferred_destinations_come_first_and_scores_break_ties() -> None:
    found, _ = look(uneven())
    chosen = found.nodes != found.source
    by_points = list_destinations(found, chosen).tolist()
    against = np.where(found.nodes == by_points[0], 0.0, 1.0)
    assert list_destinations(found, chosen, preferred=against).tolist() == by_points[::-1]
    assert list_destinations(found, chosen, preferred=np.zeros(3)).tolist() == by_points


def test_the_source_is_scored_even_where_it_is_not_feasible() -> None:
    objects = uneven()
    objects[0]["spec"]["taints"] = [{"key": "team", "effect": "NoSchedule"}]
    found, _ = look(objects)
    assert (found.nodes.tolist(), found.feasible.tolist()) == ([0, 1, 2], [False, True, True])


def test_a_pod_without_a_forecast_is_refused() -> None:
    facts = SnapshotFacts(
        load_objects([builders.node("a"), builders.pod("x", node="a")], now=NOW, version=VERSION).snapshot,
        VERSION,
    )
    scheduler = parse_scheduler(WITH_EXTENDER.read_bytes(), version=VERSION)
    refused = forecast_move(0, view_snapshot(facts), AdvisedScheduler(scheduler))
    assert isinstance(refused, Refused)
    assert refused.rule == "CannotForecast"


def test_expectations_weigh_each_node_by_its_chance() -> None:
    found, advised = look(uneven())
    drawn = draw(found, np.array([1], np.int32), advised.extenders)
    assert drawn.expect(drawn.gains) == drawn.gains[1]
    assert drawn.chance_among(np.array([1, 2], np.int32)) == pytest.approx(1.0)


@pytest.mark.parametrize("taints", [(), [{"key": "team", "effect": "NoSchedule"}]])
def test_rescoring_gives_the_scores_of_a_cluster_without_the_pod(taints: list[Object]) -> None:
    """Its node may be feasible or not, and it alone scores otherwise than while the pod was leaving."""
    objects = uneven()
    objects[0]["spec"]["taints"] = taints
    objects[3]["spec"]["terminationGracePeriodSeconds"] = 30
    found, advised = look(objects)
    profile = profile_of(found.forecast.incoming, advised.scheduler)
    assert isinstance(profile, Profile)
    whole = run_scores(found.forecast.incoming, found.view.without(found.place), profile, found.nodes)
    assert isinstance(whole, NodeScores)
    before = run_scores(
        found.forecast.incoming, found.view.with_terminating(found.place), profile, found.nodes
    )
    assert isinstance(before, NodeScores)
    assert np.flatnonzero(before.totals != found.scores.totals).tolist() == [found.source]
    assert found.scores.totals.tolist() == whole.totals.tolist()
    assert {name: each.tolist() for name, each in found.scores.plugins.items()} == {
        name: each.tolist() for name, each in whole.plugins.items()
    }
