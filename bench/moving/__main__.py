"""python -m bench.moving: Reberth and the descheduler move pods until the cluster is balanced."""

import argparse
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench import calling
from bench.moving.fleet import Fleet
from bench.moving.racing import HIGH, LONGEST, LOW, QUIET, Raced, State, race
from bench.reading.arms import Failed
from bench.reading.conditions import Conditions
from localcluster.build.products import DESCHEDULER
from localcluster.errors import LocalClusterError


async def measure(options: argparse.Namespace) -> str:
    fleet = Fleet(nodes=options.nodes, pods=options.pods, seed=options.seed)
    conditions = Conditions()
    with tempfile.TemporaryDirectory(prefix="bench-moving-") as folder:
        raced = await race(fleet, Path(folder))
    owners = sum(1 for _ in fleet.list_owners())
    return f"""## Moves until the cluster is balanced

{conditions.describe()} Descheduler {DESCHEDULER.version}.

A real control plane and kube-scheduler with {fleet.nodes} nodes of 16 cpu and {fleet.pods:,} pods of {owners}
ReplicaSets, generated from one seed: a tenth of the nodes is hot, a fifth cold. Each arm starts with the same
fleet on its own cluster, with the same thresholds, {LOW} and {HIGH} % of cpu and of memory, and without
rate limits. It ends when nothing was evicted for {QUIET:g} s, which are several cycles of each, or after
{LONGEST:g} s. Pods end at once when they are evicted.

* **Reberth**: extender, kube-scheduler that calls it, and the daemon with `level: 5`.
* **Reberth without the extender**: `extender: none`, and kube-scheduler with its defaults.
* **descheduler**: the released program, LowNodeUtilization with `nodeFit`, a cycle every 2 s, 500 requests a
  second.

"Returned" are pods that landed on a node from which a pod of the same owner had been evicted. API calls
are counted by the API server's audit log, from the start of an arm's programs to its end, watches and the
{QUIET:g} quiet seconds included. Reberth's are those of rescheduler and extender: each move also writes its
history, the ledger, a note and Events.

{describe(raced)}
"""


def describe(raced: Mapping[str, Raced]) -> str:
    rows = [_row(arm, found) for arm, found in raced.items()]
    columns = (
        *("", "evictions", "returned", "until the last one", "quiet after"),
        *(f"nodes above {HIGH} %", "spread", "as forecast", "API calls", "for each eviction"),
    )
    return "\n".join([f"| {' | '.join(columns)} |", "|---" * len(columns) + "|", *rows])


def _row(arm: str, found: Raced) -> str:
    forecast = "-" if found.as_forecast is None else f"{found.as_forecast:.1%}"
    cells = (
        arm,
        str(found.evicted),
        str(found.returned),
        f"{found.seconds:.0f} s",
        "yes" if found.is_quiet else "no",
        _change(found.before, found.after, "above", "{}"),
        _change(found.before, found.after, "spread", "{:.1f}"),
        forecast,
        f"{found.calls:,}",
        f"{found.calls_a_move:.1f}",
    )
    return f"| {' | '.join(cells)} |"


def _change(before: State, after: State, name: str, form: str) -> str:
    return " to ".join(form.format(getattr(state, name)) for state in (before, after))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.moving", description=__doc__)
    calling.add_numbers(
        parser,
        (
            ("--nodes", 60, "nodes of the fleet"),
            ("--pods", 1500, "pods of the fleet"),
            ("--seed", 1, "the fleet that is drawn"),
        ),
    )
    return parser.parse_args()


def main() -> int:
    return calling.run("moving", measure(_parse()), Failed, LocalClusterError)


if __name__ == "__main__":
    sys.exit(main())
