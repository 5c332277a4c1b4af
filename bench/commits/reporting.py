"""Write the section of docs/benchmarks.md from the figures of two commits."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from bench.reading.reporting import spread, table

Figures = Sequence[Mapping[str, Any]]
"""Of one commit, by turn."""

COSTS = {
    "a pod read": "µs",
    "a snapshot": "ms",
    "filter answered": "ms",
    "prioritize answered": "ms",
    "a plan of underUtilisedNodes": "ms",
    "a plan of betterPreferences": "ms",
}
_FACTORS = {"µs": 1e6, "ms": 1e3}
RESULTS = {
    "read_pods": "pods read",
    "filter answers": "answers to filter",
    "prioritize answers": "answers to prioritize",
    "underUtilisedNodes moves": "moves of underUtilisedNodes",
    "underUtilisedNodes proposals": "proposals of underUtilisedNodes",
    "betterPreferences moves": "moves of betterPreferences",
    "betterPreferences proposals": "proposals of betterPreferences",
}


def describe(measured: Mapping[str, Figures], options: argparse.Namespace, conditions: str) -> str:
    (before, old), (after, new) = measured.items()
    head = ("CPU of the thread", before, after, "ratio of the medians", "ratios of the turns")
    return f"""## The same work at two commits

{conditions}

{before} and {after}, {options.rounds} turns of each, one after the other in processes of their own. Both read
the same bytes: {options.pods:,} pods and {options.nodes:,} nodes from pages of 500; calls of kube-scheduler
with {options.asked:,} names of nodes; and a fleet of {options.fleet:,} nodes to plan for, on one snapshot,
each policy alone. Figures are medians of the CPU time of the thread, with the lowest and the highest in
brackets; a ratio above 1 says that {after} takes longer.

{table(head, _list_costs(old, new))}

{_compare_results(old[0], new[0])}
"""


def _list_costs(old: Figures, new: Figures) -> Iterator[Sequence[str]]:
    for name, unit in COSTS.items():
        figures = [[turn[name] * _FACTORS[unit] for turn in turns] for turns in (old, new)]
        ratios = [mine / theirs for theirs, mine in zip(*figures, strict=True)]
        whole = f"{median(figures[1]) / median(figures[0]):.2f}"
        yield name, *(spread(each, unit) for each in figures), whole, spread(ratios, "").replace("  ", " ")


def _compare_results(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Say where the work itself differs: then its costs cannot be compared as they are."""
    others = [
        f"{what}: {old[name]:,} and {new[name]:,}" if "answers" not in name else what
        for name, what in RESULTS.items()
        if old[name] != new[name]
    ]
    same = [what for name, what in RESULTS.items() if old[name] == new[name]]
    different = f" Different are {'; '.join(others)}." if others else ""
    return f"The same at both: {', '.join(same) or 'nothing'}.{different}"
