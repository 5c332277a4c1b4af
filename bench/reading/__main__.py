"""python -m bench.reading: read a large cluster as we do and as Go controllers do, and write down the ratios.

First everybody reads the same pods and nodes from one real API server, in turn. Then, without a server, we
decode a cluster that is larger still.
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

A pod has {size:,.0f} bytes of JSON on average, `managedFields` included; ten belong to one owner: one was
made through the API server, the others are copies in etcd of what it stored, but for name, uid and node.
Each reader is a process of its own that lists and watches pods and nodes until it holds all of them, and
Reberth takes a snapshot too. Each ran {options.runs} times, in turn; figures are medians, and in brackets the
lowest and the highest. CPU is that of the whole process from before it connects, nodes included, divided by
the number of pods. "The bytes alone" come over the same connection; their lines are counted and thrown away.
"Stepped over" they are read as JSON, too, of which nothing is kept. "After collecting" is after `runtime.GC`
and `debug.FreeOSMemory`, which no controller calls by itself. 1 MB is a million bytes.

The server writes while a reader reads, so both need a core at the same time. CPU time is no constant then: on
this machine the same decoding costs up to twice as much beside other work as it does alone.

{reporting.describe_readers(measured)}

{reporting.describe_floor(measured)}

{reporting.describe_ours(measured[arms.OURS])}

{reporting.describe_ratios(measured)}

### {options.generated:,} generated pods and {options.generated_nodes:,} nodes, without a server

Pages of 500 are made, decoded into the mirror and forgotten; CPU is that of decoding and keeping alone. The
process does not load the client of the API server: hence its lower RSS before. Before the snapshot the
garbage collector is told to overlook what was read, as the daemons tell it.

{reporting.describe_decoding(decoded)}

A replica keeps {reporting.kept(traced):.0f} bytes, its share of what it has in common with nine others
included, counted by tracemalloc over {_TRACED:,} pods.

### What was aimed at

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
