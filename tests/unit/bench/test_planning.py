"""The fleet of the planning benchmark, the descheduler beside it, and its report."""

import json
from pathlib import Path

import pytest

from bench.planning import keeping, reporting
from bench.planning.descheduling import DryRun, describe_policy
from bench.planning.fleet import PODS_PER_NODE, Fleet
from bench.planning.keeping import Found
from bench.planning.planning import ARMS, measure, settings_of
from reberth.values.pod_limit import PodLimit

FIGURES = {
    "pods": 27_500,
    "moves": 100,
    "proposals": 4_611,
    "first": 0.3,
    "spelt": 0.01,
    "before": 2e8,
    "peak": 3e8,
}


def runs(*cpu: float) -> list[dict[str, float]]:
    return [FIGURES | {"cpu": each} for each in cpu]


MEASURED = {(nodes, arm): runs(nodes / 20_000) for nodes in (1_000, 5_000) for arm in ARMS}


def test_equal_numbers_give_equal_fleets_of_the_right_size() -> None:
    fleet, again, other = Fleet(100), Fleet(100), Fleet(100, seed=2)
    assert len(fleet.places) == 100 * PODS_PER_NODE
    assert fleet.places == again.places != other.places
    assert fleet.written.write(7) == again.written.write(7)


def test_replicas_differ_in_marks_of_equal_lengths() -> None:
    written = Fleet(20).written
    lengths = {tuple(map(len, written.list_marks(number))) for number in range(written.count)}
    assert len(lengths) == 1
    pod = json.loads(written.fill_in(written.write(1), 11))
    assert "@" not in json.dumps(pod["metadata"]["name"] + pod["spec"]["nodeName"] + pod["metadata"]["uid"])


@pytest.mark.parametrize("arm", ARMS)
def test_a_small_fleet_is_worth_a_plan(arm: str) -> None:
    found = measure(Fleet(20).take(), settings_of(arm))
    assert found["nodes"] == 20
    assert found["moves"] > 0
    assert found["cpu"] > 0


@pytest.mark.parametrize("arm", ARMS)
def test_the_descheduler_gets_the_limit_that_we_have(arm: str) -> None:
    policy = describe_policy(arm)
    assert PodLimit(policy["maxNoOfPodsToEvictTotal"]) == settings_of(arm).limits.per_cycle
    assert policy["profiles"][0]["pluginConfig"][0]["args"] == {"nodeFit": True}


def test_goals_are_judged_only_by_figures_of_their_size() -> None:
    told = reporting.describe_goals(MEASURED)
    assert told.count("yes") == 4
    assert "were not measured" in reporting.describe_goals({(10, "utilisation"): runs(0.1)})


def test_growth_is_described_beside_that_of_the_nodes() -> None:
    assert "5 x, nodes 5 x" in reporting.describe_plans(MEASURED)


def test_figures_of_several_calls_are_reported_together(tmp_path: Path) -> None:
    """A size that is measured again takes the place of what was there."""
    file, theirs = tmp_path / "parts", {1_000: {"utilisation": DryRun(0.5, 4e8, 100)}}
    first = Found({(1_000, "utilisation"): runs(0.1)}, theirs, {1_000: "first"}, {1_000: "first"})
    keeping.join(file, first)
    keeping.join(file, Found({(1_000, "utilisation"): runs(0.2)}, {}, {1_000: "second"}, {}))
    found = keeping.join(file, Found({(5_000, "utilisation"): runs(0.3)}, {}, {5_000: "third"}, {}))
    assert found.ours == {(1_000, "utilisation"): runs(0.2), (5_000, "utilisation"): runs(0.3)}
    assert found.theirs == theirs
    assert (found.conditions, found.beside) == ({1_000: "second", 5_000: "third"}, {1_000: "first"})
    assert keeping.join(file, Found({}, {}, {}, {})) == found


def test_conditions_are_described_with_their_sizes() -> None:
    told = reporting.describe_conditions({1_000: "late", 2_000: "early", 5_000: "late"}, {2_000: "early"})
    assert (
        told == "**1,000, 5,000 nodes**: late\n\n**2,000 nodes, and the descheduler on 2,000 nodes**: early"
    )
    assert reporting.describe_conditions({1_000: "once", 5_000: "once"}, {1_000: "once"}) == "once"


def test_rescheduler_and_descheduler_share_a_line() -> None:
    told = reporting.describe_beside({1_000: {"utilisation": DryRun(0.5, 4e8, 100)}}, MEASURED)
    assert "500 ms" in told
    assert "| 10 |" in told
