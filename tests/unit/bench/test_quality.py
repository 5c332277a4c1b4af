"""Balance for moves: the fleets, the planners compared, and a small race between all of them."""

import math
from statistics import median

import numpy as np
import pytest

from bench.quality import descheduling, reporting
from bench.quality.descheduling import Thresholds
from bench.quality.measuring import BLIND, DESCHEDULER, OURS, SINGLE, Grid, Measured, Run, race
from bench.quality.shapes import SHAPES, Shape, draw_fleet
from reberth.cluster.object_files import load_objects
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.view import view_snapshot
from tests.support import builders
from tests.support.rescheduler.plans import NOW, VERSION, replica

GRID = Grid(low=(0,), high=(5, 15), per_node=(1, None))
SHARES = (0.02, 0.05)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_drawn_fleet_is_reproducible_and_within_node_capacity(shape: Shape) -> None:
    objects = draw_fleet(shape, 24, 1)
    assert objects == draw_fleet(shape, 24, 1) != draw_fleet(shape, 24, 2)
    reading = load_objects(objects, now=NOW, version=VERSION)
    assert not reading.faults
    snapshot = reading.snapshot
    assert len(snapshot.pods.rows) > 5 * 24
    assert np.all(snapshot.sums.requested.main[:2] <= snapshot.nodes.allocatable.main[:2])


def test_the_descheduler_looks_at_means_of_nodes_and_sources_by_bytes() -> None:
    """Of 8 CPUs 7, 6, 1 and 0 are requested: a mean of 43.75 %. The second source holds more memory."""
    asked = {"a": ("7", "8Gi"), "b": ("6", "9Gi"), "c": ("1", "8Gi")}
    pods = [replica(f"{name}-1", name, name, cpu=cpu, memory=size) for name, (cpu, size) in asked.items()]
    objects = [*map(builders.node, "abcd"), *pods]
    seen = view_snapshot(SnapshotFacts(load_objects(objects, now=NOW, version=VERSION).snapshot, VERSION))
    sight = descheduling.look(seen, Thresholds(0, 10, None))
    assert (sight.under.tolist(), sight.sources) == ([False, False, False, True], [1, 0])
    assert sight.budget[0] == pytest.approx(0.5375 * 8000)
    assert sight.goes_on(0)
    sight.evict(0, np.array([3000, 2**30, 1]))
    assert not sight.goes_on(0)


def test_no_pod_is_evicted_without_an_under_utilised_node() -> None:
    objects = [
        *map(builders.node, "ab"),
        replica("a-1", "a", "a", cpu="4"),
        replica("b-1", "b", "b", cpu="4"),
    ]
    seen = view_snapshot(SnapshotFacts(load_objects(objects, now=NOW, version=VERSION).snapshot, VERSION))
    assert descheduling.look(seen, Thresholds(5, 0, None)).sources == []


def measured(*, theirs: float) -> Measured:
    runs = {arm: Run([0.2, 0.2 - theirs, 0.1]) for arm in (DESCHEDULER, SINGLE, BLIND)}
    return Measured("small", 100, 2, {OURS: Run([0.2, 0.15], "-0/+5"), **runs})


def test_arms_are_compared_after_as_many_moves_as_both_have_made() -> None:
    found = measured(theirs=0.04)
    assert found.compare(SINGLE) == pytest.approx(0.05 / 0.04)
    assert [found.rate(OURS), found.rate(SINGLE)] == pytest.approx([5, 5])


def test_an_arm_without_moves_is_not_beaten_by_one_with_moves() -> None:
    idle = Measured("small", 100, 2, {OURS: Run([0.2, 0.1]), SINGLE: Run([0.2])})
    assert (idle.compare(SINGLE), idle.rate(SINGLE)) == (1.0, 0.0)
    assert math.isclose(
        Measured("small", 100, 2, {OURS: Run([0.2]), SINGLE: Run([0.2, 0.1])}).compare(SINGLE), 0
    )


def test_goals_are_judged_on_the_worst_fleet_and_on_the_median() -> None:
    lines = reporting.describe_goals([measured(theirs=0.05), measured(theirs=0.052)]).splitlines()[2:]
    assert [line.removesuffix(" |").rpartition("| ")[2] for line in lines[:2]] == ["**no**", "**no**"]
    assert "0.962" in lines[0]
    assert "small" in reporting.describe_fleets([measured(theirs=0.05)])


def test_reberth_balances_small_fleets_as_well_per_move_as_the_others() -> None:
    found = [each for shape in SHAPES for each in race(shape, nodes=30, seed=1, shares=SHARES, grid=GRID)]
    for arm, least in ((DESCHEDULER, 0.98), (SINGLE, 0.95)):
        ratios = [each.compare(arm) for each in found]
        print(f"\nReberth / {arm}: {', '.join(f'{ratio:.3f}' for ratio in ratios)}")
        assert min(ratios) >= least
        assert median(ratios) >= least
    assert all(each.runs[OURS].moves for each in found)
