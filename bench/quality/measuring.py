"""One fleet and its arms, under the same rules: how evenly each leaves the nodes used, move by move."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

import yaml

from bench.quality import descheduling, searching
from bench.quality.descheduling import Thresholds
from bench.quality.refereeing import begin
from bench.quality.shapes import Object, Shape, draw_fleet
from reberth.cluster.object_files import load_objects
from reberth.cluster.pods.requests import Version
from reberth.cluster.snapshot import Snapshot
from reberth.config.settings import parse
from reberth.forecast.state.profile import parse_scheduler
from rescheduler.observe.scheduler_model import SchedulerModel
from rescheduler.planning.cycle import Cycle, begin_cycle
from rescheduler.planning.planner import write_plan
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.planning.worth import SAME

OURS, DESCHEDULER, SINGLE, BLIND = "Reberth", "descheduler", "best single move", "the same, blind to points"

_VERSION: Version = (1, 36)
_NOW = 1_795_003_200.0
_SCHEDULER = b"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 100
extenders:
  - {urlPrefix: "http://127.0.0.1:8443/avoid", filterVerb: filter, prioritizeVerb: prioritize, weight: 20}
  - {urlPrefix: "http://127.0.0.1:8443/scores", prioritizeVerb: prioritize, weight: 1}
"""
_PRICES = dict.fromkeys(("move", "minute", "size", "replicas", "budget", "landing"), 0)


class Grid(NamedTuple):
    """The thresholds to try: in hundredths below and above the mean, and evictions per node and cycle."""

    low: Sequence[int] = (0, 5)
    high: Sequence[int] = (5, 10, 15, 20)
    per_node: Sequence[int | None] = (1, 5, None)


@dataclass(frozen=True)
class Run:
    """What one arm made of a fleet: the standard deviation before its first move, and after each."""

    spreads: Sequence[float]
    settings: str = ""

    @property
    def moves(self) -> int:
        return len(self.spreads) - 1

    def gain(self, moves: int) -> float:
        """Return by how many hundredths the deviation fell after this many moves, or after the last."""
        return 100 * (self.spreads[0] - self.spreads[min(moves, self.moves)])


@dataclass(frozen=True)
class Measured:
    """One fleet: its pods, how many of them may be moved, and the result of each arm."""

    shape: str
    pods: int
    most: int
    runs: dict[str, Run]

    @property
    def spread(self) -> float:
        return 100 * self.runs[OURS].spreads[0]

    def compare(self, arm: str) -> float:
        """Divide our gain by that of an arm, both after as many moves as both have made."""
        ours, theirs = self.runs[OURS], self.runs[arm]
        moves = min(ours.moves, theirs.moves)
        return ours.gain(moves) / theirs.gain(moves) if moves else float(ours.moves >= theirs.moves)

    def rate(self, arm: str) -> float:
        """Return by how many hundredths the deviation fell for each hundredth of the pods that was moved."""
        run = self.runs[arm]
        return run.gain(run.moves) / (100 * run.moves / self.pods) if run.moves else 0.0


def race(
    shape: Shape, *, nodes: int, seed: int, shares: Sequence[float], grid: Grid | None = None
) -> list[Measured]:
    """Let every arm move up to each of these shares of the pods; those with settings by the best of them."""
    snapshot, tried = _read(draw_fleet(shape, nodes, seed)), grid or Grid()
    pods = len(snapshot.pods.rows)
    most = round(max(shares) * pods)
    cycle = _set_up(snapshot, most, tried.low[0], tried.high[0])
    runs = {
        OURS: [_plan(snapshot, most, low, high) for low in tried.low for high in tried.high],
        DESCHEDULER: [_deschedule(cycle, most, each, seed) for each in _list_thresholds(tried)],
        SINGLE: [_search(cycle, most, SAME)],
        BLIND: [_search(cycle, most, None)],
    }
    return [_cut(shape, pods, round(share * pods), runs) for share in shares]


def _cut(shape: Shape, pods: int, most: int, runs: Mapping[str, Sequence[Run]]) -> Measured:
    best = {arm: max(found, key=lambda run: run.gain(most)) for arm, found in runs.items()}
    return Measured(
        shape.name, pods, most, {arm: Run(run.spreads[: most + 1], run.settings) for arm, run in best.items()}
    )


def _read(objects: Sequence[Object]) -> Snapshot:
    reading = load_objects(objects, now=_NOW, version=_VERSION)
    if reading.faults:
        raise reading.faults[0]
    return reading.snapshot


def _set_up(snapshot: Snapshot, most: int, low: int, high: int) -> Cycle:
    scheduler = parse_scheduler(_SCHEDULER, version=_VERSION)
    return begin_cycle(snapshot, _write_policy(most, low, high), None, SchedulerModel(_VERSION, scheduler))


def _plan(snapshot: Snapshot, most: int, low: int, high: int) -> Run:
    cycle = _set_up(snapshot, most, low, high)
    course = begin(cycle)
    for move in write_plan(cycle)[0].moves:
        pod = snapshot.pods.by_uid(move.uid)
        if pod is None or not course.move(pod, snapshot.nodes.index[move.destinations[0].node]):
            raise ValueError(f"the limits are against the move of {move.pod}")
    return Run(course.spreads, f"-{low}/+{high}")


def _search(cycle: Cycle, most: int, least: int | None) -> Run:
    course = begin(cycle)
    searching.run(course, most=most, least=least)
    return Run(course.spreads)


def _list_thresholds(grid: Grid) -> list[Thresholds]:
    return [
        Thresholds(low, high, per_node)
        for low in grid.low
        for high in grid.high
        for per_node in grid.per_node
    ]


def _deschedule(cycle: Cycle, most: int, thresholds: Thresholds, seed: int) -> Run:
    course, dice = begin(cycle), Random(seed)  # noqa: S311 - repeatable, not secret
    descheduling.run(course, thresholds, most=most, dice=dice)
    return Run(course.spreads, str(thresholds))


def _write_policy(most: int, low: int, high: int) -> ReschedulerPolicy:
    """Write our settings: as little else as can be is asked of a move, since no other arm asks for it."""
    off = {"enabled": False}
    lows, highs = (dict.fromkeys(("cpu", "memory"), f"{each}%") for each in (low, high))
    found = {
        "apiVersion": "reberth.dev/v1alpha1",
        "kind": "ReschedulerPolicy",
        "level": 5,
        "worth": 0,
        "prices": _PRICES,
        "forecasts": None,
        "limits": {"perCycle": most, "rates": {"cluster": []}},
        "policies": {
            "brokenRules": off,
            "betterPreferences": off,
            "underUtilisedNodes": {"low": lows, "high": highs, "aroundMean": True},
        },
    }
    return parse(yaml.safe_dump(found).encode(), ReschedulerPolicy)
