"""From figures to the section of docs/benchmarks.md: bursts, single calls, memory, and goals."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bench.extender.arms import DUTIFUL, FLOOR, OURS, PEER
from bench.extender.asking import VERBS, Seconds
from bench.reading.arms import Figures
from bench.reading.reporting import Row, megabytes, middle, spread, table

Bursts = dict[str, list[Figures]]
"""By arm, one for each run."""
Calls = Mapping[int, Seconds]
"""By the number of names in a call."""

_TOLERATED = {50: 1.2, 99: 1.5}
"""By percentile: how many times as long as the peer's."""


class Growth(NamedTuple):
    """Bytes of memory before and after a number of further pods."""

    before: int
    after: int
    pods: int

    @property
    def each(self) -> float:
        return (self.after - self.before) / self.pods


class Goal(NamedTuple):
    """A figure that must not be above a bound, or not below it."""

    what: str
    bound: float
    reached: float
    unit: str
    is_least: bool = False

    @property
    def row(self) -> Row:
        side = "at least" if self.is_least else "at most"
        is_met = self.reached >= self.bound if self.is_least else self.reached <= self.bound
        bound, reached = (f"{figure:.4g} {self.unit}" for figure in (self.bound, self.reached))
        return (self.what, f"{side} {bound}", reached, "yes" if is_met else "**no**")


def describe_bursts(bursts: Bursts) -> str:
    """One line for each arm."""
    head = (
        "extender",
        "pods per second",
        "scheduler's algorithm per pod",
        "extender's CPU per call",
        "its RSS",
    )
    return table(head, (_describe_arm(arm, runs) for arm, runs in bursts.items()))


def _describe_arm(arm: str, runs: Sequence[Figures]) -> Row:
    own = ("", "")
    if "cpu" in runs[0]:
        own = (
            spread((figures["cpu"] * 1e3 for figures in runs), "ms"),
            spread((megabytes(figures["resident"]) for figures in runs), "MB"),
        )
    return (
        arm,
        spread((figures["rate"] for figures in runs), "/s"),
        spread((figures["algorithm"] * 1e3 for figures in runs), "ms"),
        *own,
    )


def describe_calls(calls: Calls) -> str:
    """One line for each number of names and verb, and one for all verbs together."""
    head = ("names", "call", "Reberth p50", "p99", "Go p50", "p99", "ratio p50", "p99")
    groups = [*((f"`{verb}`", [verb]) for verb in VERBS), ("all three", [*VERBS])]
    return table(
        head,
        (_describe_call(names, title, calls[names], verbs) for names in calls for title, verbs in groups),
    )


def _describe_call(names: int, title: str, seconds: Seconds, verbs: Sequence[str]) -> Row:
    taken = [_percentile(seconds[arm], verbs, each) for arm in (OURS, PEER) for each in _TOLERATED]
    ratios = [_compare_calls(seconds, verbs, each) for each in _TOLERATED]
    return (
        f"{names:,}",
        title,
        *(f"{each * 1e3:.3g} ms" for each in taken),
        *(f"{ratio:.2f}" for ratio in ratios),
    )


def _percentile(taken: Mapping[str, Sequence[float]], verbs: Sequence[str], percentile: int) -> float:
    return float(np.percentile([each for verb in verbs for each in taken[verb]], percentile))


def _compare_calls(seconds: Seconds, verbs: Sequence[str], percentile: int) -> float:
    return _percentile(seconds[OURS], verbs, percentile) / _percentile(seconds[PEER], verbs, percentile)


def describe_goals(bursts: Bursts, calls: Calls, growth: Growth) -> str:
    """Bursts are compared run by run, since those of one round met the same other load."""
    lag = _pair(bursts, OURS, FLOOR, lambda ours, theirs: ours["algorithm"] - theirs["algorithm"])
    goals = [
        Goal("pods per second, against bare asyncio", 0.95, _compare(bursts, FLOOR), "times", is_least=True),
        Goal("pods per second, against Go", 1, _compare(bursts, PEER), "times", is_least=True),
        Goal("algorithm per pod, above bare asyncio", 0.3, lag * 1e3, "ms"),
        Goal("the same per call", 0.3, lag / len(VERBS) * 1e3, "ms"),
        *_goals_of_calls(calls),
        Goal("RSS", 140, middle(megabytes(each["resident"]) for each in bursts[OURS]), "MB"),
        Goal("RSS per further pod", 1000, growth.each, "bytes"),
    ]
    return table(("goal", "bound", "reached (median)", "met"), (goal.row for goal in goals))


def describe_duties(bursts: Bursts) -> str:
    """Describe how much of the goals a program that answers from a cache can influence."""
    (dutiful, added), (ours, ours_added) = (_place(bursts, arm) for arm in (DUTIFUL, OURS))
    share = _pair(bursts, DUTIFUL, OURS, lambda theirs, ours: theirs["cpu"] / ours["cpu"])
    return f"""How much of this Reberth cannot influence: *asyncio with a mirror*, which decides nothing,
reached {dutiful:.2f} times the pods per second of *bare asyncio*, and added {added * 1e3:.2f} ms for each
call to the scheduler's algorithm; Reberth reached {ours:.2f} times, and added {ours_added * 1e3:.2f} ms.
Of the CPU that Reberth takes for a call, {share:.0%} are what *asyncio with a mirror* takes. What that misses
of a goal cannot be gained by faster decisions. It is spent on the cache, on parsing JSON, and on waiting for
a processor that etcd, the API server, the scheduler and other work share: if the load average is high or the
runs of one arm differ widely, differences between arms mean little."""


def _place(bursts: Bursts, arm: str) -> tuple[float, float]:
    """Return an arm's pods per second relative to the floor, and what it adds to the algorithm per call."""
    rate = _pair(bursts, arm, FLOOR, lambda ours, theirs: ours["rate"] / theirs["rate"])
    added = _pair(bursts, arm, FLOOR, lambda ours, theirs: ours["algorithm"] - theirs["algorithm"])
    return rate, added / len(VERBS)


def _goals_of_calls(calls: Calls) -> Iterator[Goal]:
    for names, seconds in calls.items():
        for percentile, most in _TOLERATED.items():
            reached = _compare_calls(seconds, VERBS, percentile)
            yield Goal(f"p{percentile} of a call with {names:,} names, against Go", most, reached, "times")


def _compare(bursts: Bursts, other: str) -> float:
    return _pair(bursts, OURS, other, lambda ours, theirs: ours["rate"] / theirs["rate"])


def _pair(bursts: Bursts, one: str, other: str, compare: Callable[[Figures, Figures], float]) -> float:
    return middle(map(compare, bursts[one], bursts[other]))
