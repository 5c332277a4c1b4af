"""Two replicas of the extender behind one address that kube-scheduler calls."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import aiohttp

from localcluster import manifests
from localcluster.cluster import Cluster
from localcluster.errors import LocalClusterError
from localproduct.processes import EXTENDER_ACCOUNT, HOST, Replica, asking_here, start
from localproduct.rescheduler_process import write_settings

MANIFESTS = Path(__file__).parent.parent / "manifests"
REPLICAS = 2
_FOLDERS = ("crds", "extender", "rescheduler")
_DEPLOYMENTS = "/apis/apps/v1/namespaces/reberth-system/deployments"
_LONGEST = 60.0


async def bring_up(cluster: Cluster, tell: Callable[[str], None]) -> Path:
    """Start them with the manifests; returns the file with the rescheduler's settings."""
    began = time.monotonic()
    await _apply(cluster)
    replicas = [Replica(cluster, number, {}, cluster.user(EXTENDER_ACCOUNT)) for number in range(REPLICAS)]
    for replica in replicas:
        replica.start()
    port, backends = cluster.spare_port(REPLICAS), [f"{HOST}:{each.port}" for each in replicas]
    start(cluster, "extender-service", "localcluster", "forward", "--port", str(port), *backends)
    for backend in backends:
        await wait_until_ready(f"http://{backend}/readyz")
    configuration = asking_here(MANIFESTS / "kube-scheduler" / "plain.yaml", f"http://{HOST}:{port}")
    await cluster.schedule_with(configuration)
    tell(f"{REPLICAS} extenders behind kube-scheduler after {time.monotonic() - began:.1f} s")
    return write_settings(
        cluster,
        port=cluster.spare_port(REPLICAS + 1),
        extenders=backends,
        configuration=configuration,
        extender_settings=replicas[0].file,
    )


async def _apply(cluster: Cluster) -> None:
    """Apply the manifests and delete the Deployments: processes of this machine replace them."""
    async with cluster.client() as client:
        for folder in _FOLDERS:
            paths = await manifests.apply(client, MANIFESTS / folder)
            await manifests.remove(client, (path for path in paths if path.startswith(_DEPLOYMENTS)))


async def wait_until_ready(url: str) -> None:
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
