"""Figures of forecasts and of nodeFit become tables and verdicts."""

from bench.landing import reporting
from bench.landing.candidates import CHOOSY, LARGE
from bench.landing.descheduling import Cycle
from bench.reading.arms import Figures


def figures(*, plain: float, many: float = 0.4) -> Figures:
    of_one = {"first": 0.1, "plain new": plain, "plain known": 0.0005, "rich new": 0.002, "rich known": 0.001}
    return {"nodes": 5_000, "pods": 150_000, **of_one, "many": many, "memory": 20e6, "resident": 3e8}


def verdicts(table: str) -> list[str]:
    return [line.removesuffix(" |").rpartition("| ")[2] for line in table.splitlines()[2:]]


def test_a_size_is_described_by_medians_with_their_range() -> None:
    runs = [figures(plain=seconds) for seconds in (0.003, 0.001, 0.002)]
    line = reporting.describe_forecasts({5_000: runs}).splitlines()[2]
    assert line.startswith("| 5,000 | 150,000 | 100 ms (100 to 100) | 2 ms (1 to 3) | 0.5 ms (0.5 to 0.5) |")
    assert line.endswith("| 0.4 s (0.4 to 0.4) | 20 MB (20 to 20) |")


def test_goals_are_judged_only_by_figures_of_their_size() -> None:
    measured = {100: [figures(plain=9.0)], 5_000: [figures(plain=0.001, many=0.6)]}
    assert verdicts(reporting.describe_goals(measured)) == ["yes", "yes", "**no**"]


def test_without_that_size_no_goal_is_judged() -> None:
    assert "not measured" in reporting.describe_goals({100: [figures(plain=0.001)]})


def test_node_fit_is_compared_by_cpu() -> None:
    theirs = {100: {LARGE: Cycle(wall=0.04, cpu=0.015), CHOOSY: Cycle(wall=0.002, cpu=0.0003)}}
    lines = reporting.describe_beside(theirs, {100: {LARGE: 0.0002, CHOOSY: 0.0001}}).splitlines()[2:]
    assert lines == [
        "| 100 | more cores than any node has left | 40 ms | 15 ms | 0.2 ms | 75 |",
        "| 100 | a label that no node has | 2 ms | 0.3 ms | 0.1 ms | 3 |",
    ]
