"""python -m bench.landing: the cost of a forecast, compared with the descheduler's nodeFit.

First, forecasts run in generated clusters of several sizes, without an API server. Then the descheduler and
Reberth look at the same pods of one real API server.
"""

import argparse
import sys
from collections.abc import Mapping

from bench import calling
from bench.landing import candidates, descheduling, reporting
from bench.landing.candidates import CHOOSY, LARGE
from bench.landing.descheduling import Cycle
from bench.reading import arms
from bench.reading.arms import Figures
from bench.reading.conditions import Conditions
from bench.reading.populating import populate
from localcluster import state_dir
from localcluster.build.products import DESCHEDULER
from localcluster.components import CONTROLLERS, KWOK, SCHEDULER
from localcluster.errors import LocalClusterError

_PODS_PER_NODE = 30


async def measure(options: argparse.Namespace) -> str:
    conditions = Conditions()
    measured = await _forecast(options.nodes, runs=options.runs)
    theirs, ours = await _compare(options.beside, options.candidates)
    return f"""## Forecasting where pods land

{conditions.describe()} Descheduler {DESCHEDULER.version}.

### Forecasts in one cluster

Generated clusters with {_PODS_PER_NODE} pods on each node, ten for each owner; each owner has a ReplicaSet
and a Service. Of ten owners five are plain: kube-scheduler spreads their pods by its defaults. Two prefer
anti-affinity, one requires it, one has a hard and a soft spread constraint, and one ("spread and affinity")
has both of these, required affinity to its zone, required anti-affinity between its pods, and preferred
affinity to its team. A forecast runs all filters and scores of kube-scheduler 1.36 with its default
configuration, for all nodes, and gives the chance of each node.

Figures are CPU time for one pod, on a snapshot taken before. Each size ran {options.runs} times, in turn, in
a process of its own; each figure is the median over five fresh caches of snapshot facts, and over 25 owners
for each. The first pod pays for what all others share; an owner is known when another of its pods was
forecast before. The 1,000 pods of 100 owners, of all kinds, begin with a fresh cache, too. Memory is what the
cache holds after those, counted by tracemalloc.

{reporting.describe_forecasts(measured)}

### Compared with the descheduler's nodeFit

Both look at the same pods of one real API server, with {_PODS_PER_NODE} pods on each node. There are
{options.candidates} candidates of each kind, ten for each owner. They fit on no other node, so nodeFit has to
look at every node; otherwise it stops at the first that fits. Its figures are those of a cycle with nodeFit
minus those of one without, divided by the candidates: means of three cycles after the first; it looks at up
to 100 nodes in parallel. Reberth's figures are those of all candidates with a fresh cache, divided by their
number, in one thread. Where no node fits, kube-scheduler scores nothing, and neither does Reberth: the cost
of a pod that fits is in the table above.

{reporting.describe_beside(theirs, ours)}

nodeFit checks unschedulable nodes, nodeSelector and required node affinity, taints, the pod's own required
anti-affinity to the pods on that one node, and requests. It does not check topology spread, required pod
affinity, the anti-affinity of existing pods, anti-affinity over more than a node, volumes with their zones
and limits, host ports, or preferences; it scores nothing, and a pod that it accepts reserves nothing for the
next check.

### Goals

{reporting.describe_goals(measured)}
"""


async def _forecast(sizes: list[int], *, runs: int) -> dict[int, list[Figures]]:
    commands = {
        f"{nodes} nodes": [
            sys.executable,
            "-m",
            "bench.landing.forecasting",
            str(nodes),
            str(nodes * _PODS_PER_NODE),
        ]
        for nodes in sizes
    }
    found = await arms.interleave(commands, runs=runs)
    return dict(zip(sizes, found.values(), strict=True))


async def _compare(
    sizes: list[int], count: int
) -> tuple[Mapping[int, Mapping[str, Cycle]], Mapping[int, Figures]]:
    """Give the figures of both for each size."""
    theirs, ours = {}, {}
    for nodes in sizes:
        async with state_dir.running(without=[CONTROLLERS, SCHEDULER, KWOK]) as cluster:
            await populate(cluster, pods=nodes * _PODS_PER_NODE, nodes=nodes)
            for sort in (LARGE, CHOOSY):
                await candidates.add(cluster, sort, count, nodes=nodes)
            theirs[nodes] = await descheduling.measure(cluster, (LARGE, CHOOSY), count)
            ours[nodes] = await arms.run(
                [sys.executable, "-m", "bench.landing.refusing", str(cluster.kubeconfig)]
            )
        print(f"{nodes} nodes: {theirs[nodes]}, ours {ours[nodes]}", file=sys.stderr, flush=True)
    return theirs, ours


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.landing", description=__doc__)
    for flag, sizes, meaning in (
        ("--nodes", (100, 1_000, 5_000, 15_000), "sizes of the generated clusters"),
        ("--beside", (100, 1_000), "sizes of the clusters for the descheduler"),
    ):
        listed = " ".join(map(str, sizes))
        parser.add_argument(
            flag,
            type=calling.positive,
            nargs="+",
            default=[*sizes],
            metavar="N",
            help=f"{meaning} (default {listed})",
        )
    numbers = (
        ("--candidates", 100, "pods of each kind that fit on no other node"),
        ("--runs", 3, "runs of each size of the generated clusters"),
    )
    calling.add_numbers(parser, numbers)
    return parser.parse_args()


def main() -> int:
    return calling.run("landing", measure(_parse()), LocalClusterError, arms.Failed)


if __name__ == "__main__":
    sys.exit(main())
