"""python -m localproduct up|show|watch: Reberth on a running local cluster.

`up` starts two replicas of the extender behind the one address that kube-scheduler calls. `show` also
creates an imbalance, starts the rescheduler and shows its moves. `watch` shows the moves of a running
rescheduler. All processes have the rights and the configuration of the manifests, and stop with the cluster.
"""

import argparse
import asyncio
import os
import sys
import time
from functools import partial
from pathlib import Path

from localcluster import state_dir
from localcluster.cluster import Cluster
from localcluster.errors import LocalClusterError
from localcluster.host import processes
from localproduct import scenario
from localproduct.closing_message import tell_addresses, tell_end
from localproduct.extender_replicas import bring_up
from localproduct.move_watch import watch
from localproduct.rescheduler_process import NAME, settings_of, start_rescheduler


def main() -> int:
    arguments = _parser().parse_args()
    try:
        asyncio.run(arguments.run(state_dir.load(arguments.name)))
    except LocalClusterError as error:
        print(f"localproduct: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m localproduct",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, run, text in (
        ("up", _up, "start the extenders"),
        ("show", _show, "start extenders and rescheduler, and show what they do"),
        ("watch", _watch, "show the moves until Ctrl-C"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("--name", default="reberth", help="name of the cluster (default reberth)")
        command.set_defaults(run=run)
    return parser


async def _up(cluster: Cluster) -> None:
    if _runs(cluster, "extender-service"):
        _say(cluster, "Reberth is already running")
        return
    settings = await bring_up(cluster, partial(_say, cluster))
    _say(cluster, f"try `.venv/bin/python -m rescheduler move POD --settings {settings}`")


async def _show(cluster: Cluster) -> None:
    began = _find_start()
    if _runs(cluster, NAME):
        _say(cluster, "Reberth is already running")
        print(tell_addresses(cluster))
        return
    async with cluster.client() as client:
        pods, settings = await asyncio.gather(scenario.settle(client), _bring_up(cluster))
        await scenario.come_back(client)
    _say(
        cluster,
        f"{pods} pods run in two zones; {scenario.ZONE} was down and has just come back",
    )
    first: list[float] = []
    rescheduler = start_rescheduler(cluster, settings)
    sight = await watch(cluster, rescheduler, on_first=lambda: first.append(time.time()))
    print(tell_end(sight, seconds=first[0] - began))
    print(tell_addresses(cluster))


async def _bring_up(cluster: Cluster) -> Path:
    if _runs(cluster, "extender-service"):
        return settings_of(cluster)
    return await bring_up(cluster, partial(_say, cluster))


async def _watch(cluster: Cluster) -> None:
    await watch(cluster, cluster.process(NAME), on_first=lambda: None, for_ever=True)


def _runs(cluster: Cluster, name: str) -> bool:
    return any(running.name == name for running in processes.find(cluster.folder))


def _say(cluster: Cluster, text: str) -> None:
    print(f"{cluster.folder.name}: {text}", flush=True)


def _find_start() -> float:
    """The start time of the calling command: `make up` passes it so that its earlier steps count."""
    return float(os.environ.get("REBERTH_STARTED") or time.time())


if __name__ == "__main__":
    sys.exit(main())
