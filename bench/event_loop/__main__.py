"""python -m bench.event_loop: what a cycle leaves to the event loop, which renews the lease meanwhile."""

import argparse
import gc
import sys
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from bench import calling
from bench.event_loop.cycles import CycleCost, run_cycles
from bench.planning.fleet import Fleet
from bench.planning.planning import ARMS
from bench.reading.conditions import Conditions
from bench.reading.reporting import table
from reberth.cluster.kinds import POD

_CYCLES = 5


async def measure(options: argparse.Namespace) -> str:
    conditions, cache = Conditions(), Fleet(options.nodes).fill_cache()
    gc.collect()
    gc.freeze()  # as a daemon does after its start
    measured = {arm: await run_cycles(cache, arm, cycles=_CYCLES) for arm in ARMS}
    return describe(options.nodes, len(cache.of(POD)), measured, conditions.describe())


def describe(nodes: int, pods: int, measured: Mapping[str, Sequence[CycleCost]], conditions: str) -> str:
    head = ("policy", "a cycle", "of it on the event loop", "at a time at most", "share of the cycle")
    return f"""## The event loop during a cycle

{conditions}

{nodes:,} nodes and {pods:,} pods, without a server; before each of {_CYCLES} cycles a pod of every namespace
changes. All figures are CPU time, of the whole process or of the event loop's own thread: their medians, and
the longest step of all cycles. In that step nothing else runs: no renewal of the lease, no answer to a
probe, no step of a move.

{table(head, _describe_arms(measured))}
"""


def _describe_arms(measured: Mapping[str, Sequence[CycleCost]]) -> Iterator[tuple[str, ...]]:
    for arm, cycles in measured.items():
        process, loop = median(one.process for one in cycles), median(one.loop for one in cycles)
        longest = max(one.longest for one in cycles)
        figures = (f"{seconds * 1e3:.1f} ms" for seconds in (process, loop, longest))
        yield f"`{ARMS[arm]}`", *figures, f"{longest / process:.1%}"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.event_loop", description=__doc__.partition("\n")[0]
    )
    calling.add_numbers(parser, (("--nodes", 5000, "nodes of the fleet"),))
    return calling.run("event_loop", measure(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
