"""Limits on the cost of a plan, relative to plain numpy, and on its growth with the fleet.

What is compared stands in one process and is measured in CPU time, so a busy machine does not matter much.
"""

from collections.abc import Callable, Iterator, Mapping
from statistics import median

import numpy as np
import pytest

from bench.planning.fleet import Fleet
from bench.planning.planning import ARMS, settings_of
from reberth.cluster.snapshot import Snapshot
from rescheduler.planning.planner import plan
from tests.support.cpu_cost import cost, few_collections
from tests.support.rescheduler.plans import MODEL

pytestmark = pytest.mark.speed

SMALL, LARGE = 400, 1_600
TURNS = 3


@pytest.fixture(scope="module")
def fleets() -> Iterator[Mapping[int, Snapshot]]:
    made = {nodes: Fleet(nodes).take() for nodes in (SMALL, LARGE)}
    with few_collections():
        yield made


@pytest.fixture(scope="module")
def yardstick() -> Callable[[], object]:
    """Rate 5,000 nodes a hundred times: a plan of a hundred moves looks at all nodes oftener than that."""
    offered, used = np.random.default_rng(0).integers(1, 1000, (2, 5_000))

    def sweep() -> object:
        for asked in range(100):
            after = used + asked
            scores = np.where(after > offered, 0, offered - after) * 100 // offered
        return scores

    return sweep


def make_plan(snapshot: Snapshot, arm: str) -> None:
    """Plan; one without its hundred moves would have been too cheap."""
    made, _ = plan(snapshot, settings_of(arm), None, model=MODEL)
    assert len(made.moves) == 100


@pytest.mark.parametrize("arm", ARMS)
def test_a_plan_of_a_hundred_moves_costs_a_few_hundred_sweeps_over_the_nodes(
    arm: str, fleets: Mapping[int, Snapshot], yardstick: Callable[[], object]
) -> None:
    found = [
        cost(lambda: make_plan(fleets[LARGE], arm)) / median(cost(yardstick) for _ in range(5))
        for _ in range(TURNS)
    ]
    assert median(found) <= 500


@pytest.mark.parametrize("arm", ARMS)
def test_four_times_the_fleet_costs_less_than_four_times_the_plan(
    arm: str, fleets: Mapping[int, Snapshot]
) -> None:
    found = [
        cost(lambda: make_plan(fleets[LARGE], arm)) / cost(lambda: make_plan(fleets[SMALL], arm))
        for _ in range(TURNS)
    ]
    assert median(found) < LARGE / SMALL
