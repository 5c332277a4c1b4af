"""Limits on the cost of a plan, relative to plain numpy, and on its growth with the fleet.

What is compared stands in one process and is measured in CPU time, so a busy machine does not matter much.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from statistics import median
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from bench.event_loop.cycles import run_cycles
from bench.planning.fleet import NOW, Fleet
from bench.planning.planning import ARMS, settings_of
from reberth.cluster.cache import Cache
from reberth.cluster.kinds import POD
from reberth.cluster.snapshot import Snapshot, take
from reberth.records import OpenMove, Phase, Pod
from reberth.values.timestamp import write_time
from rescheduler.execution.replacement import ReplacementWatcher
from rescheduler.execution.validation import MoveValidator
from rescheduler.model.plan import PlannedMove
from rescheduler.moves.revalidation import Revalidation
from rescheduler.planning.planner import plan
from rescheduler.settings import ReschedulerSettings
from tests.support.builders import as_record, owner, pod
from tests.support.cpu_cost import cost, few_collections
from tests.support.rescheduler.plans import MODEL

pytestmark = pytest.mark.speed

SMALL, LARGE = 400, 1_600
TURNS = 3


@pytest.fixture(scope="module")
def caches() -> Iterator[Mapping[int, Cache]]:
    made = {nodes: Fleet(nodes).fill_cache() for nodes in (SMALL, LARGE)}
    with few_collections():
        yield made


@pytest.fixture(scope="module")
def fleets(caches: Mapping[int, Cache]) -> Mapping[int, Snapshot]:
    return {nodes: take(cache, now=NOW) for nodes, cache in caches.items()}


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


async def test_the_event_loop_has_next_to_nothing_of_a_cycle_to_do_at_a_time(
    caches: Mapping[int, Cache],
) -> None:
    """It renews the lease, answers probes and makes moves meanwhile."""
    cycles = await run_cycles(caches[LARGE], "utilisation", cycles=TURNS)
    assert min(one.longest / one.process for one in cycles) <= 0.02


def test_moves_that_are_validated_together_share_what_is_the_same_for_all(
    fleets: Mapping[int, Snapshot],
) -> None:
    settings, snapshot = settings_of("utilisation"), fleets[LARGE]
    planned = plan(snapshot, settings, None, model=MODEL)[0].moves[:10]

    def validate(moves: tuple[PlannedMove, ...]) -> None:
        rules = Revalidation(snapshot, policy=settings, schedulers=MODEL.scheduler_names)
        for entry, move in zip(map(_open, moves), moves, strict=True):
            assert rules.refuse(entry, move.destinations[0].node) is None
            rules.count_open(entry)

    validate(planned)
    found = [cost(lambda: validate(planned)) / cost(lambda: validate(planned[:1])) for _ in range(5)]
    assert median(found) <= 4


def _open(planned: PlannedMove) -> OpenMove:
    return OpenMove(
        id=planned.uid, pod=planned.pod.partition("/")[2], pod_uid=planned.uid, controller_uid="rs",
        from_=planned.from_, phase=Phase.NOTED, policy=planned.policy, planned_at=write_time(NOW),
        expires_at=write_time(NOW + 300), destinations=(planned.destinations[0].node,),
    )  # fmt: skip


def test_a_look_for_a_replacement_costs_the_same_in_a_large_namespace() -> None:
    costs = [
        median(cost(partial(_look, *awaited)) for _ in range(5))
        for awaited in map(_await_replacement, (100, 10_000))
    ]
    assert costs[1] <= 5 * costs[0]


def _await_replacement(pods: int) -> tuple[ReplacementWatcher, OpenMove]:
    """A namespace with workloads of ten pods, and a move of one of them, whose replacement was looked for."""
    cache = Cache(version=(1, 36))
    of = [owner("ReplicaSet", f"web-{number // 10}", uid=f"rs-{number // 10}") for number in range(pods)]
    listed = [pod(f"p-{number}", node="n1", owned_by=of[number], uid=f"u-{number}") for number in range(pods)]
    for number, each in enumerate(listed):
        each["metadata"]["resourceVersion"] = str(number + 1)
    cache.replace(POD, [as_record(Pod, each) for each in listed], str(pods))
    move = OpenMove(
        id="m-1", pod="old", pod_uid="u", controller_uid="rs-7", from_="n1", phase=Phase.EVICTED,
        policy="manual", planned_at="2026-11-19T12:00:00Z", expires_at="2026-11-19T12:05:00Z",
    )  # fmt: skip
    context = SimpleNamespace(
        mirror=SimpleNamespace(cache=cache),
        store=SimpleNamespace(find_history=lambda _namespace, _name: None),
        find_controller=lambda _uid: None,
        find_min_ready=lambda _uid: 0.0,
        clock=lambda: 0.0,
        settings=lambda: ReschedulerSettings(extender="none"),
    )
    handle = SimpleNamespace(namespace="default", history="replicaset-web-7")
    watcher = ReplacementWatcher(
        cast("Any", context), cast("Any", handle), cast("MoveValidator", None), evicted_at=0.0
    )
    assert len(cache.of(POD).group("default", "rs-7")) == 10
    return watcher, move


def _look(watcher: ReplacementWatcher, move: OpenMove) -> None:
    """Look a hundred times; none of these looks waits for anything."""

    async def look() -> None:
        for _ in range(100):
            with pytest.raises(StopIteration):
                watcher._judge(move).send(None)

    asyncio.run(look())
