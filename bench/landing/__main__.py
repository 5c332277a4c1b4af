"""python -m bench.landing: what a forecast costs, and beside it the descheduler's nodeFit.

First clusters of several sizes are generated and forecast in, without a server. Then the descheduler and we
look at the same pods of one real API server.
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
    theirs, ours = await _stand_beside(options.beside, options.candidates)
    return f"""## Forecasting where pods land

{conditions.describe()} Descheduler {DESCHEDULER.version}.

### One cluster, many questions

Generated clusters with {_PODS_PER_NODE} pods on a node, ten to an owner, each owner with a ReplicaSet and a
Service. Of ten owners five are plain: kube-scheduler spreads their pods by its defaults. Two prefer
anti-affinity, one demands it, one has a hard and a soft spread constraint, and one ("spread and affinity")
has both of these, required affinity to its zone, required anti-affinity between its pods, and preferred
affinity to its team. All filters and scores of an unconfigured kube-scheduler 1.36 are forecast, for all
nodes, with the chance of each.

Figures are CPU time for one pod, on a snapshot that was taken before. Each size ran {options.runs} times, in
turn, in a process of its own; there each figure is the median over five fresh grounds, and over 25 owners on
each. The first pod pays for what all others share; an owner is known when another of its pods was asked
about. The 1,000 pods of 100 owners, of all sorts, begin with a fresh ground too. Memory is what the ground
keeps after those, counted by tracemalloc.

{reporting.describe_forecasts(measured)}

### Beside the descheduler's nodeFit

Both look at the same pods of one real API server, with {_PODS_PER_NODE} pods on a node. There are
{options.candidates} candidates of each sort, ten to an owner. They fit on no other node, so that nodeFit has
to look at each; else it stops at the first that fits. Its figures are those of a cycle with nodeFit less
those of one without, divided by the candidates: means of three cycles after the first; it looks at up to 100
nodes at once. Ours are those of all candidates on a fresh ground, divided by their number, in one thread.
Where no node fits kube-scheduler scores nothing, and neither do we: what a pod costs that fits is in the
table above.

{reporting.describe_beside(theirs, ours)}

nodeFit looks at unschedulable nodes, nodeSelector and required node affinity, taints, the pod's own required
anti-affinity towards the pods on that one node, and requests. It does not look at topology spread, required
pod affinity, the anti-affinity of pods that stand there, anti-affinity over more than a node, volumes and
their zones and limits, host ports, or preferences; it scores nothing, and what it has approved of takes no
room from the next pod.

### What was aimed at

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


async def _stand_beside(
    sizes: list[int], count: int
) -> tuple[Mapping[int, Mapping[str, Cycle]], Mapping[int, Figures]]:
    """Figures of both for each size."""
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
        ("--beside", (100, 1_000), "sizes of the clusters that the descheduler looks at"),
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
        ("--candidates", 100, "pods of each sort that fit nowhere"),
        ("--runs", 3, "of each size of the generated clusters"),
    )
    calling.add_numbers(parser, numbers)
    return parser.parse_args()


def main() -> int:
    return calling.run("landing", measure(_parse()), LocalClusterError, arms.Failed)


if __name__ == "__main__":
    sys.exit(main())
