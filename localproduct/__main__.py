"""python -m localproduct up: Reberth on a local cluster that is up.

Two replicas of the extender stand behind one address that kube-scheduler asks, with the rights and the
configuration of the manifests. All of it goes down with the cluster.
"""

import argparse
import asyncio
import sys
import time
from pathlib import Path

import aiohttp
import yaml

from localcluster import folders, manifests, processes
from localcluster.cluster import Cluster
from localcluster.errors import LocalClusterError
from localproduct.replicas import EXTENDER_ACCOUNT, HOST, Replica, asking_here, start, write_settings

MANIFESTS = Path(__file__).parent.parent / "manifests"
REPLICAS = 2
_FOLDERS = ("crds", "extender", "rescheduler")
_LONGEST = 60.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m localproduct", description=__doc__)
    up = parser.add_subparsers(required=True, metavar="COMMAND").add_parser("up", help="bring it up")
    up.add_argument("--name", default="reberth", help="of the cluster (default reberth)")
    arguments = parser.parse_args()
    try:
        asyncio.run(_up(folders.load(arguments.name)))
    except LocalClusterError as error:
        print(f"localproduct: {error}", file=sys.stderr)
        return 1
    return 0


async def _up(cluster: Cluster) -> None:
    began = time.monotonic()
    if any(each.name.startswith("extender") for each in processes.find(cluster.folder)):
        print(f"{cluster.folder.name}: Reberth is up already")
        return
    async with cluster.client() as client:
        for folder in _FOLDERS:
            await manifests.apply(client, MANIFESTS / folder)
    replicas = [Replica(cluster, number, {}, cluster.user(EXTENDER_ACCOUNT)) for number in range(REPLICAS)]
    for replica in replicas:
        replica.start()
    port, backends = cluster.spare_port(REPLICAS), [f"{HOST}:{each.port}" for each in replicas]
    start(cluster, "extender-service", "localcluster", "forward", "--port", str(port), *backends)
    for backend in backends:
        await _wait_until_ready(f"http://{backend}/readyz")
    configuration = asking_here(MANIFESTS / "kube-scheduler" / "plain.yaml", f"http://{HOST}:{port}")
    await cluster.schedule_with(configuration)
    settings = _write_rescheduler_settings(cluster, configuration, backends)
    name, seconds = cluster.folder.name, time.monotonic() - began
    print(f"{name}: {REPLICAS} extenders behind kube-scheduler after {seconds:.1f} s")
    print(f"{name}: try `.venv/bin/python -m rescheduler move POD --settings {settings}`")


def _write_rescheduler_settings(cluster: Cluster, configuration: object, backends: list[str]) -> Path:
    """Tell the rescheduler's commands where the extenders are, and how the scheduler is configured."""
    known = cluster.folder / "scheduler-as-configured.yaml"
    known.write_text(yaml.safe_dump(configuration))
    file = cluster.folder / "rescheduler.yaml"
    write_settings(
        file,
        "ReschedulerSettings",
        {"extenderAccess": {"addresses": backends}, "scheduler": {"configuration": str(known)}},
    )
    return file


async def _wait_until_ready(url: str) -> None:
    started = time.monotonic()
    async with aiohttp.ClientSession() as session:
        while time.monotonic() - started < _LONGEST:
            try:
                async with session.get(url) as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.05)
    raise LocalClusterError(f"{url} is not ready after {_LONGEST:g} s")


if __name__ == "__main__":
    sys.exit(main())
