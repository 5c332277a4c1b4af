"""python -m bench.daemon: the daemon and the descheduler on a large cluster without changes."""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from operator import truediv
from pathlib import Path

from bench import calling
from bench.daemon.standing import CYCLES, NULL, OURS, Cost, Start, choose_thresholds, measure_all
from bench.planning.fleet import Fleet
from bench.reading.arms import Failed
from bench.reading.conditions import Conditions
from bench.reading.reporting import megabytes, spread, table
from localcluster.build.products import DESCHEDULER
from localcluster.errors import LocalClusterError

_HUNDRED = 100


async def measure(options: argparse.Namespace) -> str:
    conditions = Conditions()
    fleet = Fleet(options.nodes, share=options.share / _HUNDRED)
    low, high = choose_thresholds(fleet)
    with tempfile.TemporaryDirectory(prefix="bench-daemon-") as folder:
        measured = await measure_all(fleet, Path(folder), rounds=options.rounds)
    return f"""## The daemon on a large cluster

{conditions.describe()} Descheduler {DESCHEDULER.version}.

One real API server with {fleet.nodes:,} nodes and {len(fleet.places):,} pods, ten to an owner, one node of
ten crowded and one nearly empty. Nothing else changes: no controller runs, and pods are written to etcd
as the API server stores them. Both programs watch it, one after the other, and plan cycle after cycle
without evicting: the rescheduler with `mode: recommend`, the descheduler with `--dry-run`; one policy for
utilisation, {low} and {high} % of cpu and of memory, feasible nodes only, at most 100 evictions in a cycle.

"Until the first" is from the start of the process until its first plan, lists included. A cycle is the mean
of {CYCLES} after that: its wall time as the program reports it, and the CPU of the whole process meanwhile,
watches and lease included, divided by the cycles. "Highest" is the peak memory that the kernel reports. API
calls are counted by the server's audit log. At the end each gets SIGINT 0.4 s after a cycle, when the
rescheduler is in the middle of the next one; the descheduler waits 2 s between two.

{describe(measured.costs)}

### From nothing to the first plan

Right before, on the same cluster, {options.rounds} rounds in turn: a null client, then the rescheduler. The
null client reads the lists that the rescheduler reads and throws them away: the same connections and
rights, the same kinds at the same time, pages of the same size, one after the other. Its time is from the
start of its process to its end, that of the rescheduler to its first plan. Each figure is the median of the
rounds, with the least and the most; the ratios are those of single rounds, which meet the same machine.
Both compete with the API server, and with whatever else runs, for {os.cpu_count()} cores.

{describe_starts(measured.starts)}

Goal: at most 1.3 times the wall time of the null client.

For the API calls of a move see [Moves until the cluster is balanced](#moves-until-the-cluster-is-balanced).
"""


def describe(costs: dict[str, Cost]) -> str:
    head = (
        *("", "until the first", "its CPU", "a cycle", "its CPU", "moves in it"),
        *("memory", "highest", "API calls at the start", "in a cycle", "until it ended"),
    )
    return table(head, (_row(name, cost) for name, cost in costs.items()))


def describe_starts(starts: Mapping[str, Sequence[Start]]) -> str:
    head = ("", "wall", "its CPU", "highest")
    rows = [_start_row(name, found, megabytes, ("s", "s", "MB")) for name, found in starts.items()]
    return table(head, [*rows, _start_row(f"{OURS} / {NULL}", _divide(starts), float, ("times",) * 3)])


def _start_row(
    name: str, found: Sequence[Start], size: Callable[[float], float], units: Sequence[str]
) -> tuple[str, ...]:
    columns = ([one.wall for one in found], [one.cpu for one in found], [size(one.highest) for one in found])
    return (name, *(spread(column, unit) for column, unit in zip(columns, units, strict=True)))


def _divide(starts: Mapping[str, Sequence[Start]]) -> list[Start]:
    """Divide ours by the null client's of the same round."""
    rounds = zip(starts[OURS], starts[NULL], strict=True)
    return [Start(*map(truediv, ours, null)) for ours, null in rounds]


def _row(name: str, cost: Cost) -> tuple[str, ...]:
    return (
        name,
        f"{cost.first.wall:.1f} s",
        f"{cost.first.cpu:.1f} s",
        f"{cost.cycle.wall:.2f} s",
        f"{cost.cycle.cpu:.2f} s",
        f"{cost.cycle.moves:.0f}",
        f"{megabytes(cost.memory):.0f} MB",
        f"{megabytes(cost.highest):.0f} MB",
        f"{cost.first.calls:,.0f}",
        f"{cost.cycle.calls:.1f}",
        f"{cost.ending:.2f} s",
    )


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.daemon", description=__doc__)
    calling.add_numbers(
        parser,
        (
            ("--nodes", 5000, "nodes of the fleet"),
            ("--rounds", 3, "starts of each, in turn"),
            ("--share", 100, "pods on a node, in hundredths of 27.5 in the mean"),
        ),
    )
    return parser.parse_args()


def main() -> int:
    return calling.run("daemon", measure(_parse()), Failed, LocalClusterError)


if __name__ == "__main__":
    sys.exit(main())
