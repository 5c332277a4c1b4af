"""python -m bench.planning: the cost of a plan, compared with a dry run of the descheduler.

First fleets of several sizes are generated and planned in, without a server. Then the descheduler looks at
the same fleet on a real API server.
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from bench import calling
from bench.planning import descheduling, keeping, reporting
from bench.planning.fleet import PODS_PER_NODE, Fleet
from bench.planning.keeping import Found, Theirs
from bench.planning.planning import ARMS
from bench.planning.reporting import Measured
from bench.reading import arms, populating
from bench.reading.conditions import Conditions
from localcluster import state_dir
from localcluster.build.products import DESCHEDULER
from localcluster.components import CONTROLLERS, KWOK, SCHEDULER
from localcluster.errors import LocalClusterError


async def measure(options: argparse.Namespace) -> str:
    conditions = Conditions()
    sizes = sorted({*options.nodes, *options.beside})
    measured = await _plan(sizes, runs=options.runs)
    theirs = await _stand_beside(options.beside)
    said = conditions.describe()
    found = Found(measured, theirs, dict.fromkeys(sizes, said), dict.fromkeys(theirs, said))
    return _describe(keeping.join(options.parts, found) if options.parts else found)


def _describe(found: Found) -> str:
    measured = found.ours
    return f"""## Planning

{reporting.describe_conditions(found.conditions, found.beside)}

Generated fleets with {PODS_PER_NODE} pods on a node on average, ten to an owner, each owner with a
ReplicaSet and a Service, every fifth with a PodDisruptionBudget. One node of ten is over-utilised (45 pods),
one under-utilised (10). The pods of every fifth owner prefer nodes with an SSD, which half of the nodes have,
and run anywhere.

Figures are CPU time from a snapshot to its plan, with default settings, one policy (`underUtilisedNodes`,
`betterPreferences`), no rate, and kube-scheduler asking Reberth's extender. A plan ends at 100 moves; every
proposed pod is in it, with its move or the rule that refused it: refusals are counted by rule, as the daemon
does, and written out on request, which takes the time in its own column.
Each size ran {_count_runs(found)} times,
in its own process, with five plans of the same snapshot. The figure is their median; the first plan is shown
beside it. It reads the templates, owners, Services and budgets of all namespaces; later plans reuse them, as
a daemon does for every namespace in which none of them was added, deleted or changed since its last plan.
Everything else is computed again for each plan. Memory is that of the whole process, with the cache that the
snapshot was taken from.

{reporting.describe_plans(measured)}

{_describe_beside(found)}

### Goals

{reporting.describe_goals(measured)}
"""


def _count_runs(found: Found) -> str:
    counts = sorted({len(runs) for runs in found.ours.values()})
    return " or ".join(map(str, counts))


def _describe_beside(found: Found) -> str:
    if not found.theirs:
        return "The descheduler was left out."
    return f"""### Comparison with the descheduler

Descheduler {DESCHEDULER.version} with `--dry-run` on a real API server with the same nodes and pods, in
the same run: LowNodeUtilization with the same thresholds (30 and 75), RemovePodsViolatingNodeAffinity for
preferred affinity, nodeFit on, at most 100 evictions in a cycle. Its CPU time is that of its process, the
mean of three cycles after the first; its memory is that of the process after them. It reports which pods it
would evict, but not where they land, whether that is better, or whether they would return.

{reporting.describe_beside(found.theirs, found.ours)}"""


async def _plan(sizes: Iterable[int], *, runs: int) -> Measured:
    pairs = [(nodes, arm) for nodes in sorted(sizes) for arm in ARMS]
    commands = {
        f"{nodes} nodes, {arm}": [sys.executable, "-m", "bench.planning.planning", str(nodes), arm]
        for nodes, arm in pairs
    }
    found = await arms.interleave(commands, runs=runs)
    return dict(zip(pairs, found.values(), strict=True))


async def _stand_beside(sizes: list[int]) -> Theirs:
    """Return the descheduler's figures for each size."""
    theirs = {}
    for nodes in sizes:
        fleet = Fleet(nodes)
        async with state_dir.running(without=[CONTROLLERS, SCHEDULER, KWOK]) as cluster:
            await populating.fill(cluster, fleet.list_namespaces(), fleet.list_nodes(), fleet.written)
            theirs[nodes] = await descheduling.measure(cluster, ARMS)
        print(f"{nodes} nodes: {theirs[nodes]}", file=sys.stderr, flush=True)
    return theirs


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.planning", description=__doc__)
    for flag, sizes, least, meaning in (
        ("--nodes", (1_000, 5_000, 15_000), "*", "sizes of the generated fleets"),
        ("--beside", (500,), "*", "sizes of the fleets that the descheduler looks at; none leaves it out"),
    ):
        listed = " ".join(map(str, sizes))
        parser.add_argument(
            flag,
            type=calling.positive,
            nargs=least,
            default=[*sizes],
            metavar="N",
            help=f"{meaning} (default {listed})",
        )
    calling.add_numbers(parser, [("--runs", 3, "of each size")])
    parser.add_argument(
        "--parts", type=Path, metavar="FILE", help="keep figures there, and report those of earlier calls too"
    )
    return parser.parse_args()


def main() -> int:
    return calling.run("planning", measure(_parse()), LocalClusterError, arms.Failed)


if __name__ == "__main__":
    sys.exit(main())
