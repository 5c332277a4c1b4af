"""python -m bench.federation: how soon many Deployments stand in two of three members.

A hub and three members, API servers of their own on one etcd; the federation is a process of its own. With a
policy in place all Deployments are created at once, at two allowances of calls a second.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from bench import calling
from bench.federation import reporting
from bench.federation.bursting import Burst, burst, standing
from bench.federation.reporting import Bursts
from bench.reading.arms import Failed
from bench.reading.conditions import Conditions
from localcluster.errors import LocalClusterError

RATES = (40, 400)
_UNHINDERED = 2_000


async def measure(options: argparse.Namespace) -> str:
    conditions = Conditions()
    bursts = await _burst(options)
    many = await _burst_once(_UNHINDERED, options.bindings)
    count = options.deployments
    return f"""## The federation

{conditions.describe()}

{count:,} Deployments of one replica are created at once; a policy has each of them in two of three members.
Calls are writes, as the hub's own API server counts them, without those of the measurement and the lease.
The last column leaves out what only tells how it went: Events, and the statuses of Works and templates.
*Present* is when the Deployments are there in the members, *told* when each binding says that it is fully
applied. Each allowance ran {options.runs} times, on clusters of its own; figures are medians, and in brackets
the lowest and the highest. The client's burst is one and a half times its rate. Nothing but etcd and the four
API servers runs beside.

{reporting.describe_bursts(bursts, deployments=count)}

{reporting.describe_calls(bursts, deployments=count)}

{reporting.describe_costs(bursts)}

### What was aimed at

{reporting.describe_goals(bursts, many, deployments=count, bindings=options.bindings)}
"""


async def _burst(options: argparse.Namespace) -> Bursts:
    bursts: dict[int, list[Burst]] = {rate: [] for rate in RATES}
    for _ in range(options.runs):
        for rate in RATES:
            bursts[rate].append(await _burst_once(rate, options.deployments))
    return bursts


async def _burst_once(rate: int, deployments: int) -> Burst:
    with tempfile.TemporaryDirectory(prefix="bench-federation-") as folder:
        async with standing(Path(folder), rate=rate) as place:
            found = await burst(place, deployments=deployments)
    seconds = ", ".join(f"{moment.seconds:.1f} s" for moment in found[:4])
    print(f"{deployments} at {rate}/s: {seconds}; {found.resident / 1e6:.0f} MB", file=sys.stderr, flush=True)
    return found


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.federation", description=__doc__)
    numbers = (
        ("--deployments", 300, "in a burst"),
        ("--runs", 3, "of each allowance"),
        ("--bindings", 3_000, "with which memory is looked at"),
    )
    calling.add_numbers(parser, numbers)
    return parser.parse_args()


def main() -> int:
    return calling.run("federation", measure(_parse()), LocalClusterError, Failed)


if __name__ == "__main__":
    sys.exit(main())
