"""The generated cluster is as the benchmark describes it."""

import pytest

from bench.landing import workloads
from bench.landing.workloads import PLAIN, RICH, SORTS, Crowd
from reberth.forecast.forecast import Forecast, forecast_replacement
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.profile import default_scheduler
from reberth.forecast.state.view import view_snapshot


@pytest.fixture(scope="module")
def crowd() -> Crowd:
    return workloads.gather(30, 200)


def foretell(crowd: Crowd, sort: int) -> Forecast:
    """Forecast the first pod of the first application of a sort."""
    seen = view_snapshot(SnapshotFacts(crowd.snapshot, workloads.VERSION))
    found = forecast_replacement(crowd.apps[sort][0], seen, default_scheduler(workloads.VERSION))
    assert isinstance(found, Forecast)
    return found


def test_every_application_has_its_ten_pods(crowd: Crowd) -> None:
    assert [len(places) for places in crowd.apps] == [10] * 20
    assert sorted(place for places in crowd.apps for place in places) == list(range(200))


@pytest.mark.parametrize("sort", range(SORTS))
def test_a_pod_of_every_sort_fits_somewhere_and_is_scored(crowd: Crowd, sort: int) -> None:
    assert foretell(crowd, sort).scores


def test_a_plain_pod_is_spread_by_default_and_minds_no_company(crowd: Crowd) -> None:
    scores = foretell(crowd, PLAIN).scores
    assert scores
    assert "PodTopologySpread" in scores.plugins
    assert len(set(scores.plugins["PodTopologySpread"].tolist())) > 1
    assert "InterPodAffinity" not in scores.plugins


def test_a_pod_with_spread_and_affinity_keeps_off_its_own_kind_and_likes_its_team(crowd: Crowd) -> None:
    found = foretell(crowd, RICH)
    assert found.scores
    assert {"PodTopologySpread", "InterPodAffinity"} <= found.scores.plugins.keys()
    assert [refusal.reason for refusal in found.refusals] == ["node(s) didn't match pod anti-affinity rules"]
