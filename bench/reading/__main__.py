"""python -m bench.reading: read a large cluster as Reberth and as Go controllers do, and write the ratios.

First all readers read the same pods and nodes from one real API server, in turn. Then Reberth decodes an even
larger cluster without a server.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence

from bench import calling
from bench.reading import arms, reporting
from bench.reading.arms import Figures
from bench.reading.conditions import Conditions
from bench.reading.populating import measure_pods, populate
from localcluster import state_dir
from localcluster.components import CONTROLLERS, KWOK, SCHEDULER
from localcluster.errors import LocalClusterError

_TRACED = 10_000


async def measure(options: argparse.Namespace) -> str:
    conditions = Conditions()
    measured, size = await _read(options)
    generated = arms.decoding(options.generated, options.generated_nodes)
    decoded = (await arms.interleave({"generated": generated}, runs=options.runs))["generated"]
    traced = await arms.run(arms.decoding(_TRACED, 1, "--trace"))
    return f"""## Reading a large cluster

{conditions.describe()}

### {options.pods:,} pods and {options.nodes:,} nodes from one API server

A pod has {size:,.0f} bytes of JSON on average, including `managedFields`. Each owner has ten pods: one was
created through the API server; the other nine are copies in etcd of what it stored, with another name, uid
and node. Each reader is its own process, which lists and watches pods and nodes until it holds all of them;
Reberth also takes a snapshot. Each ran {options.runs} times, in turn; figures are medians, with the
lowest and the highest in brackets. CPU is the CPU time of the whole process from before it connects, nodes
included, divided by the number of pods. "The bytes alone" reads from the same connection, counts the lines
and discards them. "Stepped over" also parses them as JSON and keeps nothing. "After collecting" is after
`runtime.GC` and `debug.FreeOSMemory`, which no controller calls by itself. 1 MB is a million bytes.

The server writes while a reader reads, so both need a core at the same time. CPU time then varies: on this
machine the same decoding costs up to twice as much beside other work as it does alone.

{reporting.describe_readers(measured)}

{reporting.describe_floor(measured)}

{reporting.describe_ours(measured[arms.OURS])}

{reporting.describe_ratios(measured)}

### {options.generated:,} generated pods and {options.generated_nodes:,} nodes, without a server

Pages of 500 are generated, decoded into the cache and discarded; CPU is that of decoding and storing alone.
The process does not load the client of the API server, so its RSS before is lower. Before the snapshot,
`gc.freeze` excludes what was read from garbage collection, as the daemons do.

{reporting.describe_decoding(decoded)}

A replica keeps {reporting.kept(traced):.0f} bytes, with its share of what it shares with nine others, as
counted by tracemalloc over {_TRACED:,} pods.

### Goals

{reporting.describe_goals(measured, decoded, kept=reporting.kept(traced))}
"""


async def _read(options: argparse.Namespace) -> tuple[reporting.Measured, float]:
    """Figures of every reader, and the mean size of a pod."""
    async with state_dir.running(without=[CONTROLLERS, SCHEDULER, KWOK]) as cluster:
        await populate(cluster, pods=options.pods, nodes=options.nodes)
        size = await measure_pods(cluster)
        measured = await arms.interleave(arms.reading(cluster.kubeconfig), runs=options.runs)
    _refuse_incomplete(measured.values(), expected=(options.pods, options.nodes))
    return measured, size


def _refuse_incomplete(arms_figures: Iterable[Sequence[Figures]], *, expected: tuple[int, int]) -> None:
    """Who has read less has done less."""
    found = {(figures["pods"], figures["nodes"]) for runs in arms_figures for figures in runs}
    if found != {expected}:
        raise arms.Failed(f"pods and nodes that were read: {found}, not {expected}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.reading", description=__doc__)
    numbers = (
        ("--pods", 30_000, "on the API server"),
        ("--nodes", 1_000, "on the API server"),
        ("--generated", 150_000, "pods that are decoded without a server"),
        ("--generated-nodes", 5_000, "nodes that are decoded without a server"),
        ("--runs", 3, "of each reader"),
    )
    calling.add_numbers(parser, numbers)
    return parser.parse_args()


def main() -> int:
    return calling.run("reading", measure(_parse()), LocalClusterError, arms.Failed)


if __name__ == "__main__":
    sys.exit(main())
