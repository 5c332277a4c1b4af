"""python -m bench.federation: how long it takes to propagate and to rebalance many Deployments.

A hub and three members, API servers of their own on one etcd; the federation is a process of its own. Each
run has clusters of its own. All parts together take half an hour; with --figures they may be measured one by
one: each run is put down in that file, and the section is written of all that stands there.
"""

import argparse
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from bench import calling
from bench.federation import keeping, reporting
from bench.federation.bursting import burst, standing
from bench.federation.deciding import decide_apart
from bench.federation.following import Run
from bench.federation.rebalancing import rebalance
from bench.reading.arms import Failed
from bench.reading.conditions import Conditions
from localcluster.errors import LocalClusterError

_RATES = (40, 400)
_UNHINDERED = 2_000


class Part(NamedTuple):
    """What is run: how often, with how many objects, at how many calls a second."""

    name: str
    run: Callable[..., Awaitable[Run]]
    times: int
    size: int
    rate: int


def list_parts(options: argparse.Namespace) -> Iterator[Part]:
    """List the parts that are asked for; all, if none is named."""
    parts = [
        *(Part(reporting.BURST, burst, options.runs, options.deployments, rate) for rate in _RATES),
        *(Part(reporting.REBALANCE, rebalance, options.runs, options.workloads, rate) for rate in _RATES),
        Part(reporting.MEMORY, burst, 1, options.bindings, _UNHINDERED),
    ]
    for part in parts:
        is_named = not options.parts or part.name in options.parts
        if is_named and (options.rate in {None, part.rate} or part.name == reporting.MEMORY):
            yield part


def put_down_decisions(options: argparse.Namespace, figures: Path) -> None:
    """Decide in processes of their own; no cluster is needed for that."""
    if options.parts and reporting.DECISIONS not in options.parts:
        return
    for _ in range(options.runs):
        keeping.put_down(figures, decide_apart(reporting.DECISIONS, size=options.decisions))


async def measure(options: argparse.Namespace) -> str:
    conditions = Conditions()
    with tempfile.TemporaryDirectory(prefix="bench-federation-") as folder:
        figures = options.figures or Path(folder, "figures")
        put_down_decisions(options, figures)
        for part in list_parts(options):
            for turn in range(part.times):
                print(
                    f"{part.name} {part.size} at {part.rate}/s, {turn + 1} of {part.times}", file=sys.stderr
                )
                keeping.put_down(figures, await _run(part, patience=options.patience))
        runs = keeping.read(figures)
    return reporting.describe(runs, conditions=conditions.describe())


async def _run(part: Part, *, patience: float) -> Run:
    with tempfile.TemporaryDirectory(prefix="bench-federation-") as folder:
        async with standing(Path(folder), rate=part.rate) as place:
            return await part.run(place, part.name, size=part.size, rate=part.rate, patience=patience)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.federation", description=__doc__)
    numbers = (
        ("--deployments", 300, "in a burst"),
        ("--workloads", 300, "of a rebalancer"),
        ("--bindings", 3_000, "with which memory is looked at"),
        ("--decisions", 10_000, "bindings decided without a server"),
        ("--runs", 3, "of each part but memory, at each allowance"),
        ("--patience", 420, "seconds for a run, then it has failed"),
    )
    calling.add_numbers(parser, numbers)
    parser.add_argument("--rate", type=int, choices=_RATES, help="this allowance alone (default: both)")
    parser.add_argument("--figures", type=Path, metavar="FILE", help="where runs are put down and added to")
    names = (reporting.BURST, reporting.REBALANCE, reporting.MEMORY, reporting.DECISIONS)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(names)} (default: all)")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(names):
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    return options


def main() -> int:
    return calling.run("federation", measure(_parse()), LocalClusterError, Failed)


if __name__ == "__main__":
    sys.exit(main())
