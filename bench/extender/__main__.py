"""python -m bench.extender: what the extender costs kube-scheduler, compared with the minimum and with Go.

First kube-scheduler schedules bursts of pods with each of the extenders in turn. Then a client of our own
asks ours and the one in Go about all nodes and about three times as many, and ours is told of further pods.

The whole takes half an hour. It may be done in parts: `--only bursts --keep FILE` as often as one likes, then
`--only calls --keep FILE`.
"""

import argparse
import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from bench import calling
from bench.extender import asking, bursting, reporting
from bench.extender.arms import ARMS, OURS, PEER, Serving, serving, wait_for_page
from bench.extender.populating import NOTES, WORKLOADS, Population, name_node, populate
from bench.extender.reporting import Bursts, Calls, Growth
from bench.reading.arms import Failed, Figures
from bench.reading.conditions import Conditions
from localcluster import state_dir
from localcluster.cluster import Cluster
from localcluster.components import CONTROLLERS, KWOK, SCHEDULER
from localcluster.errors import LocalClusterError
from reberth.memory.notes import MOST_NOTES

_TIMES_MORE_NODES = 3
_WARM = 10


async def measure(options: argparse.Namespace) -> str:
    conditions, bursts = Conditions(), _read_kept(options.keep)
    async with state_dir.running(without=[CONTROLLERS, KWOK]) as cluster, cluster.client() as client:
        await cluster.stop(SCHEDULER)
        population = await populate(client, nodes=options.nodes)
        if options.only != "calls":
            await _burst(cluster, population, options, bursts)
        if options.only == "bursts":
            return ""
        calls, growth = await _ask(cluster, population, options)
    return f"""## The extender compared with others

{conditions.describe()}

### {options.pods:,} pods for {options.nodes:,} nodes

The pods belong to {WORKLOADS} workloads. They are created first; then kube-scheduler is started, with
`manifests/kube-scheduler/plain.yaml` if there is an extender: both of its entries lead to one process, which
gets three calls for each pod. With many nodes kube-scheduler by default sends a sample of them. Pods per
second come from its own metric, from the first sample with some pods scheduled to the one with all of them.
No kubelet runs the pods; only etcd and the API server run beside. Each arm
ran {len(bursts[OURS])} times, in turn; figures are medians, with the lowest and the highest in brackets.

* *bare asyncio* reads the call and returns the same score for all nodes by replacing bytes, without JSON;
* *asyncio with a mirror* answers the same and does what every Python extender with a cache must do: it caches
  what Reberth caches, parses the JSON of a call, and finds its nodes;
* *Reberth* caches the cluster and has all signals on: {NOTES:,} notes, at most {MOST_NOTES} on a node, a
  score for each node, one node in a hundred marked by the Cluster Autoscaler, a bad landing for each
  workload, an open move for one in ten;
* *Go net/http* gives the same answers with `net/http` and `encoding/json`, from a table that it reads once.
  It has no cache.

{reporting.describe_bursts(bursts)}

### Single calls

One client with one keep-alive connection to each extender, bodies as kube-scheduler sends them, the list of
nodes rotated for each pod; Reberth and Go are called in turn, for {options.calls} pods. First
their answers are checked to be equal. Time is from the first byte sent to the last byte received.

{reporting.describe_calls(calls)}

### Memory

With {growth.pods:,} further pods on nodes, Reberth's RSS went from {growth.before / 1e6:.1f} MB to
{growth.after / 1e6:.1f} MB: {growth.each:.0f} bytes for each.

### Goals

The three calls for a pod count together. The bursts of one round are compared with each other; the figure
reached is the median of the rounds.

{reporting.describe_goals(bursts, calls, growth)}

{reporting.describe_duties(bursts)}
"""


async def _burst(cluster: Cluster, population: Population, options: argparse.Namespace, kept: Bursts) -> None:
    """Run the arms in turn, again and again, so that other load affects all of them equally."""
    for _ in range(options.runs):
        figures = {arm: await _burst_once(cluster, population, arm, pods=options.pods) for arm in ARMS}
        for arm in ARMS:
            kept[arm].append(figures[arm])
        if options.keep:
            options.keep.write_bytes(msgspec.json.encode(kept))


async def _burst_once(cluster: Cluster, population: Population, arm: str, *, pods: int) -> Figures:
    figures = await bursting.burst(cluster, population, arm, pods=pods)
    print(f"{arm}: {figures}", file=sys.stderr, flush=True)
    return figures


def _read_kept(file: Path | None) -> Bursts:
    """Return the runs of earlier parts of this measurement."""
    if file and file.exists():
        return msgspec.json.decode(file.read_bytes(), type=Bursts)
    return {arm: [] for arm in ARMS}


async def _ask(cluster: Cluster, population: Population, options: argparse.Namespace) -> tuple[Calls, Growth]:
    """Call Reberth's extender and the one in Go, add pods, then call again with more nodes."""
    await population.add_pods(range(options.pods))
    async with AsyncExitStack() as stack:
        servings = {
            arm: await stack.enter_async_context(serving(cluster, arm, population.table))
            for arm in (OURS, PEER)
        }
        few = await _ask_about(options.nodes, servings, population, calls=options.calls)
        growth = await _grow(servings[OURS], population, options)
        nodes = options.nodes * _TIMES_MORE_NODES
        await population.add_nodes(range(options.nodes, nodes))
        await wait_for_page(
            servings[OURS], f"/seen?resource=nodes&name={name_node(nodes - 1)}&resourceVersion=1"
        )
        many = await _ask_about(nodes, servings, population, calls=options.calls)
    return {options.nodes: few, nodes: many}, growth


async def _ask_about(
    nodes: int, servings: dict[str, Serving], population: Population, *, calls: int
) -> asking.Seconds:
    pods = await population.read_pods()
    names = [name_node(number) for number in range(nodes)]
    questions = asking.turn(pods, names, times=_WARM + calls)
    ports = {arm: extender.port for arm, extender in servings.items()}
    seconds = await asyncio.to_thread(asking.measure, ports, questions, warm=_WARM)
    print(f"{nodes} names:\n{reporting.describe_calls({nodes: seconds})}", file=sys.stderr, flush=True)
    return seconds


async def _grow(ours: Serving, population: Population, options: argparse.Namespace) -> Growth:
    before = bursting.read_resident(ours.process.pid)
    numbers = range(options.pods, options.pods + options.further)
    last = await population.add_pods(numbers, nodes=options.nodes)
    await wait_for_page(ours, f"/explain?pod=default/{last}&node=none")
    return Growth(before, bursting.read_resident(ours.process.pid), options.further)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.extender", description=__doc__)
    numbers = (
        ("--nodes", 5_000, "that are known; single calls also name three times as many"),
        ("--pods", 3_000, "in a burst"),
        ("--runs", 5, "of each arm"),
        ("--calls", 500, "pods that single calls ask about"),
        ("--further", 10_000, "pods by which memory grows"),
    )
    calling.add_numbers(parser, numbers)
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="FILE",
        help="add the runs to those that this file keeps of earlier parts",
    )
    parser.add_argument(
        "--only", choices=["bursts", "calls"], help="measure a part; bursts alone are not reported"
    )
    return parser.parse_args()


def main() -> int:
    return calling.run("extender", measure(_parse()), LocalClusterError, Failed)


if __name__ == "__main__":
    sys.exit(main())
