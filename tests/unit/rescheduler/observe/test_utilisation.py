"""The utilisation of nodes, and its thresholds."""

from typing import Any

import numpy as np
import pytest

from reberth.cluster.object_files import load_objects
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.view import View, view_snapshot
from rescheduler.observe.utilisation import (
    count_on_leaving,
    list_shares,
    measure_excess,
    measure_spread,
    set_bounds,
    shares,
)
from tests.support import builders
from tests.support.rescheduler.plans import NOW, VERSION, Object, replica

GPU = "example.com/gpu"


def see(*objects: Object) -> View:
    return view_snapshot(
        SnapshotFacts(load_objects(list(objects), now=NOW, version=VERSION).snapshot, VERSION)
    )


def fleet(**last: Any) -> View:
    """Three nodes of 8 CPUs, of which 6, 2 and 1 are requested."""
    asked = {"a": "6", "b": "2", "c": "1"}
    pods = [replica(f"{name}-1", name, name, cpu=cpu) for name, cpu in asked.items()]
    return see(builders.node("a"), builders.node("b"), builders.node("c", **last), *pods)


def test_hot_is_any_resource_above_and_cold_are_all_at_or_below() -> None:
    bounds = set_bounds(fleet(), {"cpu": 0.25}, {"cpu": 0.5}, around_mean=False)
    assert bounds.find_hot(fleet()).tolist() == [True, False, False]
    assert bounds.find_cold(fleet()).tolist() == [False, True, True]


def test_requests_of_a_terminating_pod_do_not_count() -> None:
    """Else pods that were moved a moment ago would drive others off the node that they are leaving."""
    pods = [replica("a-1", "a", "a", cpu="3"), replica("a-2", "a", "a", cpu="3")]
    pods[0]["metadata"]["deletionTimestamp"] = "2026-11-18T12:00:30Z"
    view = see(builders.node("a"), builders.node("b"), *pods)
    bounds = set_bounds(view, {"cpu": 0.375, GPU: 0.0}, {"cpu": 0.5, GPU: 0.0}, around_mean=False)
    assert bounds.find_hot(view).tolist() == [False, False]
    assert bounds.find_cold(view).tolist() == [True, True]
    assert shares(view, "cpu").tolist() == [0.375, 0.0]


def test_around_the_mean_thresholds_are_distances() -> None:
    """The mean of 75 %, 25 % and 12.5 % is 37.5 %."""
    bounds = set_bounds(fleet(), {"cpu": 0.125}, {"cpu": 0.25}, around_mean=True)
    assert bounds.low[0].tolist() == [2000, 2000, 2000]
    assert bounds.high[0].tolist() == [5000, 5000, 5000]


def test_thresholds_beyond_all_bounds_are_cut() -> None:
    bounds = set_bounds(fleet(), {"cpu": 0.9}, {"cpu": 0.9}, around_mean=True)
    assert (bounds.low[0].tolist(), bounds.high[0].tolist()) == ([0, 0, 0], [8000, 8000, 8000])


@pytest.mark.parametrize("last", [{"unschedulable": True}])
def test_a_leaving_node_is_neither_hot_nor_cold_nor_counted(last: dict[str, Any]) -> None:
    view = fleet(**last)
    bounds = set_bounds(view, {"cpu": 1.0}, {"cpu": 0.0}, around_mean=False)
    assert bounds.find_hot(view).tolist() == [True, True, False]
    assert bounds.find_cold(view).tolist() == [True, True, False]
    assert count_on_leaving(view) == 1
    assert measure_spread(view) == pytest.approx(0.25)


def test_an_extended_resource_counts_where_it_is_offered() -> None:
    nodes = [
        builders.node("a", extended={GPU: "4"}),
        builders.node("b", extended={GPU: "4"}),
        builders.node("c"),
    ]
    container = {"name": "m", "resources": {"requests": {GPU: "3"}}}
    view = see(*nodes, replica("x-1", "x", "a", containers=[container]))
    assert shares(view, GPU).tolist() == [0.75, 0.0, 0.0]
    bounds = set_bounds(view, {GPU: 0.1}, {GPU: 0.5}, around_mean=False)
    assert bounds.find_hot(view).tolist() == [True, False, False]
    mean = set_bounds(view, {GPU: 0.1}, {GPU: 0.1}, around_mean=True)
    assert mean.high[0][:2].tolist() == [1, 1]
    assert list_shares(view, np.array([0], np.int32), [GPU])[0][GPU] == 75.0


def test_an_unknown_resource_changes_nothing() -> None:
    bounds = set_bounds(fleet(), {"no/such": 0.1}, {"no/such": 0.2}, around_mean=True)
    assert not bounds.find_hot(fleet()).any()


def test_excess_is_the_usage_above_the_bound_in_parts_of_nodes() -> None:
    bounds = set_bounds(fleet(), {"cpu": 0.1}, {"cpu": 0.2}, around_mean=False)
    assert measure_excess(fleet(), bounds) == pytest.approx(0.55 + 0.05, abs=1e-3)


def test_no_nodes_are_no_trouble() -> None:
    view = see(replica("x-1", "x", "gone"))
    bounds = set_bounds(view, {"cpu": 0.1}, {"cpu": 0.2}, around_mean=True)
    assert (measure_spread(view), measure_excess(view, bounds)) == (0.0, 0.0)
    assert bounds.find_hot(view).shape == (0,)
    assert np.array_equal(shares(view, "cpu"), [])
