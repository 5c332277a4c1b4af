"""Write the section of docs/benchmarks.md from the figures: forecasts, the comparison with nodeFit, goals."""

from collections.abc import Mapping, Sequence

from bench.landing.candidates import CHOOSY, LARGE
from bench.landing.descheduling import Cycle
from bench.reading.arms import Figures
from bench.reading.reporting import Goal, megabytes, middle, spread, table

Measured = Mapping[int, Sequence[Figures]]
"""By number of nodes."""
AIMED_AT = 5_000
"""The nodes of the cluster that the goals speak of."""

_ONE = ("first", "plain new", "plain known", "rich new", "rich known")
_NAMES = {LARGE: "more cores than any node has left", CHOOSY: "a label that no node has"}


def describe_forecasts(measured: Measured) -> str:
    """One line for each size."""
    head = (
        "nodes",
        "pods",
        "first pod",
        "plain, new owner",
        "plain, known owner",
        "spread and affinity, new owner",
        "spread and affinity, known owner",
        "1,000 pods of 100 owners",
        "memory",
    )
    return table(head, (_describe_size(runs) for runs in measured.values()))


def _describe_size(runs: Sequence[Figures]) -> Sequence[str]:
    return (
        *(f"{runs[0][part]:,}" for part in ("nodes", "pods")),
        *(spread((figures[part] * 1e3 for figures in runs), "ms") for part in _ONE),
        spread((figures["many"] for figures in runs), "s"),
        spread((megabytes(figures["memory"]) for figures in runs), "MB"),
    )


def describe_beside(theirs: Mapping[int, Mapping[str, Cycle]], ours: Mapping[int, Figures]) -> str:
    """One line for each size and sort of candidates."""
    head = ("nodes", "the pod requests", "nodeFit, wall", "nodeFit, CPU", "Reberth, CPU", "nodeFit / Reberth")
    rows = (
        _compare(nodes, sort, cycle, ours[nodes][sort])
        for nodes, cycles in theirs.items()
        for sort, cycle in cycles.items()
    )
    return table(head, rows)


def _compare(nodes: int, sort: str, cycle: Cycle, cpu: float) -> Sequence[str]:
    figures = (f"{seconds * 1e3:.3g} ms" for seconds in (cycle.wall, cycle.cpu, cpu))
    return (f"{nodes:,}", _NAMES[sort], *figures, f"{cycle.cpu / cpu:.3g}")


def describe_goals(measured: Measured) -> str:
    """Goals are for one size; without it there are none."""
    if AIMED_AT not in measured:
        return f"The goals are for {AIMED_AT:,} nodes, which were not measured."
    runs = measured[AIMED_AT]
    goals = [
        Goal("a plain pod, new owner", 1.5, middle(each["plain new"] * 1e3 for each in runs), "ms"),
        Goal(
            "a pod with spread and affinity, new owner",
            15,
            middle(each["rich new"] * 1e3 for each in runs),
            "ms",
        ),
        Goal("1,000 pods of 100 owners, fresh cache", 0.5, middle(each["many"] for each in runs), "s"),
    ]
    return table(("goal", "at most", "reached (median)", "met"), (goal.row for goal in goals))
