"""The imbalance of nodes, and how one pod changes it."""

from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reberth.cluster.object_files import load_objects
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.view import View, view_snapshot
from rescheduler.observe.utilisation import Bounds, measure_spread, set_bounds
from rescheduler.policies.balance import find_balance
from tests.support import builders
from tests.support.rescheduler.fleets import draw_objects
from tests.support.rescheduler.plans import NOW, VERSION, Object, replica

RARE = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
BOTH = {"cpu": 0.5, "memory": 0.5}


def see(objects: list[Object]) -> tuple[View, Bounds]:
    view = view_snapshot(SnapshotFacts(load_objects(objects, now=NOW, version=VERSION).snapshot, VERSION))
    return view, set_bounds(view, BOTH, BOTH, around_mean=False)


def asks_of(view: View, pod: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return view.facts.snapshot.templates.requests.main[:2, [view.facts.snapshot.pods.template[pod]]]


def test_a_node_counts_by_the_resource_of_which_most_is_in_use() -> None:
    """Shares of 50 % of memory and 0: the mean is 25 %. One CPU more on the first changes nothing."""
    objects = [*map(builders.node, "ab"), replica("p-1", "p", "a", cpu="2", memory="16Gi")]
    view, bounds = see(objects)
    balance = find_balance(bounds, view)
    assert (balance.largest.tolist(), balance.mean) == ([0.5, 0.0], 0.25)
    burdens = balance.measure_burdens(np.array([1000, 0]))
    assert burdens.tolist() == [0.0, pytest.approx(0.125**2 - 0.25**2)]
    assert balance.measure_relief(asks_of(view, 0), np.array([0], np.int32)).tolist() == [0.0]


def test_resources_that_a_node_does_not_offer_do_not_count() -> None:
    view, bounds = see([builders.node("a", cpu="0"), replica("p-1", "p", "a", cpu="2", memory="8Gi")])
    assert find_balance(bounds, view).largest.tolist() == [0.25]


def test_without_nodes_there_is_nothing_to_even_out() -> None:
    view, bounds = see([replica("p-1", "p", "gone")])
    assert find_balance(bounds, view).mean == 0.0


@RARE
@given(st.integers(0, 2**32))
def test_the_variance_changes_only_by_the_two_nodes_of_a_move(seed: int) -> None:
    """But for what it changes of the mean, which all nodes share."""
    view, bounds = see(draw_objects(Random(seed)))
    pods = np.flatnonzero(view.counted & (view.node >= 0))
    usable = [not record.spec.unschedulable for record in view.nodes.records]
    if not len(pods) or not all(usable):
        return
    pod = int(Random(seed).choice(pods.tolist()))
    source, target = int(view.node[pod]), Random(seed).randrange(view.facts.size)
    if source == target:
        return
    before, after = (find_balance(bounds, each) for each in (view, view.with_pod_on(pod, target)))
    asks, nodes = asks_of(view, pod), np.array([source], np.int32)
    changed = float(before.measure_burdens(asks[:, 0])[target] - before.measure_relief(asks, nodes)[0])
    of_mean = (after.mean - before.mean) ** 2
    found = measure_spread(view.with_pod_on(pod, target)) ** 2 - measure_spread(view) ** 2
    assert found == pytest.approx(changed / view.facts.size - of_mean, abs=1e-9)
