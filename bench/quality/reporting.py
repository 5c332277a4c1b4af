"""From runs to the section of docs/benchmarks.md: the results of each arm on each fleet, and goals."""

from collections.abc import Iterable, Sequence
from statistics import median

from bench.quality.measuring import BLIND, DESCHEDULER, OURS, SINGLE, Measured
from bench.quality.shapes import SHAPES
from bench.reading.reporting import table

BASELINES = (DESCHEDULER, SINGLE)
"""The arms under all limits; the arm that is blind to points is only shown."""
LEAST = 0.98
"""The share of each baseline's balance to reach on every fleet; the goal for the median is all of it."""


def describe_shapes() -> str:
    return table(("fleet", "description"), ((shape.name, shape.story) for shape in SHAPES))


def describe_fleets(measured: Sequence[Measured]) -> str:
    """One line for each fleet and share of its pods."""
    head = (
        "fleet",
        "pods",
        "deviation before",
        "moves",
        *(f"{arm}, per 1 %" for arm in (OURS, *BASELINES)),
        *(f"Reberth / {arm}" for arm in (*BASELINES, BLIND)),
        f"thresholds of {OURS}",
        f"of the {DESCHEDULER}",
    )
    return table(head, map(_describe, measured))


def _describe(each: Measured) -> Sequence[str]:
    moves = " / ".join(str(each.runs[arm].moves) for arm in (OURS, *BASELINES))
    return (
        each.shape,
        f"{each.pods:,}",
        f"{each.spread:.1f}",
        f"{moves} of {each.most}",
        *(f"{each.rate(arm):.2f}" for arm in (OURS, *BASELINES)),
        *(f"{each.compare(arm):.3f}" for arm in (*BASELINES, BLIND)),
        *(each.runs[arm].settings for arm in (OURS, DESCHEDULER)),
    )


def describe_goals(measured: Sequence[Measured]) -> str:
    rows = (row for arm in BASELINES for row in _judge(arm, [each.compare(arm) for each in measured]))
    return table(("goal", "at least", "reached", "met"), rows)


def _judge(arm: str, ratios: Sequence[float]) -> Iterable[Sequence[str]]:
    for which, least, reached in (("every fleet", LEAST, min(ratios)), ("the median", 1.0, median(ratios))):
        verdict = "yes" if round(reached, 3) >= least else "**no**"
        yield (f"Reberth / {arm}, on {which}", f"{least:g}", f"{reached:.3f}", verdict)
