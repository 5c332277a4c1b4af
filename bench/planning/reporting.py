"""From figures to the section of docs/benchmarks.md: the cost of plans, and the descheduler's."""

from collections.abc import Mapping, Sequence

from bench.planning.descheduling import DryRun
from bench.planning.planning import ARMS
from bench.reading.arms import Figures
from bench.reading.reporting import Goal, megabytes, middle, spread, table

Measured = Mapping[tuple[int, str], Sequence[Figures]]
"""By number of nodes, and arm."""
AIMED_AT = 5_000
_SECONDS = {"utilisation": 0.25, "preferences": 1.0}
_MEGABYTES = 400.0


def describe_conditions(conditions: Mapping[int, str], beside: Mapping[int, str]) -> str:
    """Describe the conditions of each size; sizes of one call share them."""
    texts = list(dict.fromkeys([*conditions.values(), *beside.values()]))
    if len(texts) == 1:
        return texts[0]
    return "\n\n".join(f"{_name_sizes(text, conditions, beside)}: {text}" for text in texts)


def _name_sizes(text: str, conditions: Mapping[int, str], beside: Mapping[int, str]) -> str:
    ours, theirs = (
        [f"{n:,}" for n, said in sorted(each.items()) if said == text] for each in (conditions, beside)
    )
    parts = [f"{', '.join(ours)} nodes"] if ours else []
    parts += [f"the descheduler on {', '.join(theirs)} nodes"] if theirs else []
    return "**" + ", and ".join(parts) + "**"


def describe_plans(measured: Measured) -> str:
    """One line for each size and arm; growth is of CPU time and nodes since the line before."""
    head = (
        "nodes",
        "pods",
        "plan for",
        "CPU",
        "first",
        "growth",
        "moves",
        "proposals",
        "written out",
        "memory before",
        "at most",
    )
    return table(head, (_describe(measured, nodes, arm) for arm in ARMS for nodes in _sizes(measured)))


def _sizes(measured: Measured) -> list[int]:
    return sorted({nodes for nodes, _ in measured})


def _describe(measured: Measured, nodes: int, arm: str) -> Sequence[str]:
    runs = measured[nodes, arm]
    return (
        f"{nodes:,}",
        f"{runs[0]['pods']:,.0f}",
        arm,
        spread((each["cpu"] * 1e3 for each in runs), "ms"),
        spread((each["first"] * 1e3 for each in runs), "ms"),
        _grow(measured, nodes, arm),
        f"{runs[0]['moves']:,.0f}",
        f"{runs[0]['proposals']:,.0f}",
        spread((each["spelt"] * 1e3 for each in runs), "ms"),
        spread((megabytes(each["before"]) for each in runs), "MB"),
        spread((megabytes(each["peak"]) for each in runs), "MB"),
    )


def _grow(measured: Measured, nodes: int, arm: str) -> str:
    smaller = max((size for size in _sizes(measured) if size < nodes), default=None)
    if smaller is None:
        return "-"
    cost, before = (middle(each["cpu"] for each in measured[size, arm]) for size in (nodes, smaller))
    return f"{cost / before:.2g} x, nodes {nodes / smaller:.2g} x"


def describe_beside(theirs: Mapping[int, Mapping[str, DryRun]], ours: Measured) -> str:
    """One line for each size and arm."""
    head = (
        "nodes",
        "plan for",
        "descheduler, CPU",
        "evictions",
        "memory",
        "Reberth, CPU",
        "moves",
        "memory",
        "CPU, descheduler / Reberth",
    )
    rows = (
        _compare(nodes, arm, run, ours[nodes, arm])
        for nodes, runs in theirs.items()
        for arm, run in runs.items()
    )
    return table(head, rows)


def _compare(nodes: int, arm: str, run: DryRun, ours: Sequence[Figures]) -> Sequence[str]:
    cpu = middle(each["cpu"] for each in ours)
    return (
        f"{nodes:,}",
        arm,
        f"{run.cpu * 1e3:.3g} ms",
        f"{run.evicted:.0f}",
        f"{megabytes(run.memory):.0f} MB",
        f"{cpu * 1e3:.3g} ms",
        f"{ours[0]['moves']:,.0f}",
        f"{middle(megabytes(each['peak']) for each in ours):.0f} MB",
        f"{run.cpu / cpu:.2g}",
    )


def describe_goals(measured: Measured) -> str:
    """Goals are about one size; without it none is judged."""
    if AIMED_AT not in _sizes(measured):
        return f"The goals are about {AIMED_AT:,} nodes, which were not measured."
    return table(
        ("goal", "at most", "reached (median)", "met"),
        (goal.row for arm in ARMS for goal in _judge(arm, measured[AIMED_AT, arm])),
    )


def _judge(arm: str, runs: Sequence[Figures]) -> tuple[Goal, Goal]:
    return (
        Goal(f"plan for {arm}", _SECONDS[arm], middle(each["cpu"] for each in runs), "s"),
        Goal(f"memory, {arm}", _MEGABYTES, middle(megabytes(each["peak"]) for each in runs), "MB"),
    )
