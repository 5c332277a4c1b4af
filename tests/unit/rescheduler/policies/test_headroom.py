"""The headroom of nodes, kept up to date while a plan makes moves."""

from random import Random

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reberth.cluster.object_files import load_objects
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.view import view_snapshot
from rescheduler.observe.utilisation import set_bounds
from rescheduler.policies.headroom import Headroom
from tests.support import builders
from tests.support.rescheduler.fleets import draw_objects
from tests.support.rescheduler.plans import NOW, VERSION, replica

RARE = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
HIGH = {"cpu": 0.5, "memory": 0.5}


def test_a_node_counts_by_its_fullest_resource_and_has_no_room_above_its_bound() -> None:
    objects = [*map(builders.node, "ab"), replica("p-1", "p", "a", cpu="2", memory="4Gi")]
    view = view_snapshot(SnapshotFacts(load_objects(objects, now=NOW, version=VERSION).snapshot, VERSION))
    sizes = np.array([[1_000, 3_000], [0, 0]])  # one core, three cores
    fitting = Headroom(
        set_bounds(view, HIGH, HIGH, around_mean=False), view, np.array([0, 1], np.int32), sizes
    )
    assert fitting.fill(np.array([0, 1]), view).tolist() == [[0.375, 0.125], [np.inf, 0.375]]


@RARE
@given(st.integers(0, 2**32))
def test_headroom_updated_by_moves_equals_headroom_computed_anew(seed: int) -> None:
    dice = Random(seed)
    snapshot = load_objects(draw_objects(dice), now=NOW, version=VERSION).snapshot
    begun = view = view_snapshot(SnapshotFacts(snapshot, VERSION))
    bounds, nodes = (
        set_bounds(begun, HIGH, HIGH, around_mean=False),
        np.arange(begun.facts.size, dtype=np.int32),
    )
    sizes = np.array([[100, 2_000], [2**28, 2**32]])
    known = Headroom(bounds, begun, nodes, sizes)
    for _ in range(3):
        view = view.with_pod_on(dice.randrange(len(snapshot.pods.rows)), dice.randrange(len(nodes)))
        anew = Headroom(bounds, view, nodes, sizes).fill(np.array([0, 1]), view)
        assert known.fill(np.array([0, 1]), view).tolist() == anew.tolist()
