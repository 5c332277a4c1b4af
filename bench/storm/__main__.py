"""python -m bench.storm: as many moves as the daemon can make in five minutes, on 5,000 nodes.

python -m bench.storm                                  both arms, then the section of docs/benchmarks.md
python -m bench.storm --short                          500 nodes for 30 s; prints its section only
python -m bench.storm --keep DIR                       goes on after the arms that have ended before
python -m bench.storm --beside "Before=DIR"            the same arm of another checkout, in the same run
"""

import argparse
import asyncio
import contextlib
import json
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench import calling
from bench.reading.arms import Failed
from bench.reading.conditions import Conditions
from bench.storm import reporting
from bench.storm.fleet import HIGH, LOW, Fleet
from bench.storm.storming import BURST, OURS, QUIET, RATE, THEIRS, keep, storm
from localcluster.build.products import DESCHEDULER
from localcluster.errors import LocalClusterError

_SHORT = {"nodes": 500, "seconds": 30}
_FIGURES = "figures.json"


async def measure(options: argparse.Namespace) -> str:
    task = asyncio.current_task()
    if task:  # `timeout` and `kill` end the clusters, too
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    fleet, conditions = Fleet(nodes=options.nodes, seed=options.seed), Conditions()
    with contextlib.ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-storm-")))
        measured = {arm: await _measure_arm(arm, fleet, folder, options) for arm in _list_arms(options)}
    if options.arm:
        return ""
    text = _describe(fleet, measured, conditions, seconds=options.seconds)
    if options.short:
        print(text)
        return ""
    return text


def _list_arms(options: argparse.Namespace) -> list[str]:
    return [options.arm] if options.arm else [*options.beside, OURS, THEIRS]


async def _measure_arm(
    arm: str, fleet: Fleet, folder: Path, options: argparse.Namespace
) -> Mapping[str, Any]:
    """Measure an arm, unless its figures are there."""
    own = folder / arm.replace(" ", "-")
    file = own / _FIGURES
    if file.exists():
        print(f"{arm}: taken from {file}", file=sys.stderr, flush=True)
    elif arm in options.beside:
        await _measure_beside(options.beside[arm], own, options)
    else:
        own.mkdir(parents=True, exist_ok=True)
        for left in own.iterdir():
            left.unlink()
        keep(await storm(arm, fleet, own, seconds=options.seconds), file)
    figures: Mapping[str, Any] = json.loads(file.read_text())
    print(f"{arm}: {figures['evicted']} evictions, {figures['by minute']}", file=sys.stderr, flush=True)
    return figures


async def _measure_beside(checkout: Path, own: Path, options: argparse.Namespace) -> None:
    """Run the arm of another checkout, with its code alone."""
    command = ["-m", "bench.storm", "--arm", OURS, "--keep", str(own)]
    numbers = [f"--{name}={getattr(options, name)}" for name in ("nodes", "seconds", "seed")]
    process = await asyncio.create_subprocess_exec(sys.executable, *command, *numbers, cwd=checkout)
    try:
        if await process.wait():
            raise Failed(f"the arm of {checkout} ended with {process.returncode}")
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
    (own / OURS / _FIGURES).replace(own / _FIGURES)


def _describe(
    fleet: Fleet, measured: Mapping[str, Mapping[str, Any]], conditions: Conditions, *, seconds: int
) -> str:
    return f"""## As many moves as possible

{conditions.describe()} Descheduler {DESCHEDULER.version}.

A real control plane with {fleet.nodes:,} nodes of 8 cpu, simulated by kwok. A fifth of them is full with
8 pods of 1 cpu each, and the others are empty, as after a scale-up: {len(fleet.places):,} pods of
{len(fleet.workloads):,} ReplicaSets, the fewest that offer {fleet.moves:,} moves, generated from one seed.
Each arm has its own cluster with the same fleet and the same thresholds, {LOW} and {HIGH} % of cpu and of
memory.
Both clients have the default limits of {RATE} requests a second and a burst of {BURST}. No rate limits
evictions, and moves have no price. The figures are those of {seconds} s from the first eviction, or until
nothing was evicted for {QUIET:g} s. Pods end at once when they are evicted. Leases of nodes are renewed every
five minutes, not every ten seconds: this machine has to run the API server, too.

* **{OURS}**: the daemon with default settings, the extender, and kube-scheduler that asks about all nodes.
* **{THEIRS}**: the released program, LowNodeUtilization with `nodeFit`, a cycle every 2 s; kube-scheduler
  with its defaults.

{reporting.describe_moves(measured)}

"Until evicted" is from the first write of the move until its eviction is answered, and "until its outcome"
until the write with the outcome is answered, both by the API server's audit log: the replacement is Ready by
then, and was found. "The eviction itself" is the API server's own time for it. API calls are those of
rescheduler and extender, watches included.

CPU time of each program in that time, its memory at the end, and the highest:

{reporting.describe_usage(measured)}

How long the daemon's `/healthz` took to answer, asked every 50 ms: it waits while the event loop works.

{reporting.describe_probes(measured)}
"""


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.storm", description=__doc__.partition("\n")[0])
    calling.add_numbers(
        parser,
        (
            ("--nodes", 5000, "nodes of the fleet"),
            ("--seconds", 300, "how long each arm is measured"),
            ("--seed", 1, "the fleet that is drawn"),
        ),
    )
    short = f"{_SHORT['nodes']} nodes for {_SHORT['seconds']} s; the section is printed, not written"
    parser.add_argument("--short", action="store_true", help=short)
    parser.add_argument(
        "--keep", type=_read_folder, metavar="DIR", help="keep figures, audit logs and logs; resume"
    )
    parser.add_argument(
        "--beside",
        type=_read_beside,
        action="append",
        default=[],
        metavar="NAME=DIR",
        help="measure another checkout, too; may be repeated",
    )
    parser.add_argument("--arm", choices=(OURS, THEIRS), help="measure this arm only; writes no section")
    options = parser.parse_args()
    options.beside = dict(options.beside)
    if options.short:
        vars(options).update(_SHORT)
    return options


def _read_folder(text: str) -> Path:
    return Path(text).absolute()


def _read_beside(text: str) -> tuple[str, Path]:
    name, _, folder = text.partition("=")
    if not (Path(folder) / "bench" / "storm").is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=DIR with a checkout that has bench/storm")
    return name, Path(folder)


def main() -> int:
    return calling.run("storm", measure(_parse()), Failed, LocalClusterError)


if __name__ == "__main__":
    sys.exit(main())
