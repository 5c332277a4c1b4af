"""Run the extender as one or more processes behind a real kube-scheduler.

async with extending(cluster, replicas=2) as extender:
    await extender.said("reberth_extender_requests_total", verb="filter")

The processes use the service account of the manifests, and kube-scheduler the configuration of the manifests:
only addresses and file paths are replaced.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from localcluster import manifests
from localcluster.client import Object
from localcluster.cluster import Cluster
from localcluster.host import processes
from localcluster.load_balancer import LoadBalancer
from localproduct.processes import EXTENDER_ACCOUNT, HOST, Replica, asking_here
from tests.live.support.fault_free import refuse_faults
from tests.support.repository import ROOT

MANIFESTS = ROOT / "manifests"


class Extending:
    """The replicas behind one address."""

    def __init__(
        self,
        cluster: Cluster,
        replicas: list[Replica],
        service: LoadBalancer,
        session: aiohttp.ClientSession,
        *,
        scheme: str,
    ) -> None:
        self.cluster = cluster
        self.replicas = replicas
        self.service = service
        self._session = session
        self._scheme = scheme

    @property
    def url(self) -> str:
        host, port = self.service.address
        return f"{self._scheme}://{host}:{port}"

    def url_of(self, replica: Replica) -> str:
        return f"{self._scheme}://{HOST}:{replica.port}"

    async def ask(self, path: str, *, replica: int = 0, method: str = "GET", **sent: Any) -> tuple[int, str]:
        url = f"{self.url_of(self.replicas[replica])}{path}"
        async with self._session.request(method, url, **sent) as answer:
            return answer.status, await answer.text()

    async def said(self, metric: str, **labels: str) -> float:
        """Sum of a metric's samples with these labels, over the replicas that answer."""
        total = 0.0
        for number in range(len(self.replicas)):
            try:
                _, text = await self.ask("/metrics", replica=number)
            except aiohttp.ClientError:
                continue
            total += sum(
                sample.value
                for family in text_string_to_metric_families(text)
                for sample in family.samples
                if sample.name == metric and labels.items() <= sample.labels.items()
            )
        return total

    async def ready(self, replica: int = 0, status: int = 200) -> str:
        """Wait for that status of /readyz; gives its text."""
        async with asyncio.timeout(20):
            while True:
                try:
                    found, text = await self.ask("/readyz", replica=replica)
                except aiohttp.ClientError:
                    found, text = 0, ""
                if found == status:
                    return text
                await asyncio.sleep(0.02)

    async def sees(self, resource: str, written: Object) -> None:
        """Wait until every replica has seen what was written."""
        meta = written["metadata"]
        query = f"resource={resource}&namespace={meta.get('namespace', '')}&name={meta['name']}"
        for number in range(len(self.replicas)):
            path = f"/seen?{query}&resourceVersion={meta['resourceVersion']}&wait=5s"
            assert (await self.ask(path, replica=number))[0] == 200

    async def schedule(
        self, *, file: str = "plain.yaml", tls: Mapping[str, str] | None = None, flags: Sequence[str] = ()
    ) -> None:
        """Have kube-scheduler ask here, with a file of the manifests."""
        content = asking_here(MANIFESTS / "kube-scheduler" / file, self.url)
        for extender in content["extenders"] if tls else ():
            extender["tlsConfig"] |= tls
        await self.cluster.schedule_with(content, *flags)


@asynccontextmanager
async def extending(
    cluster: Cluster,
    *,
    replicas: int = 1,
    settings: Object | None = None,
    kubeconfig: Path | None = None,
    trust: ssl.SSLContext | None = None,
) -> AsyncIterator[Extending]:
    """Start the replicas and wait until they are ready, unless they have a kubeconfig of their own.

    `trust` is how the test itself enters where the settings have TLS.
    """
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(cluster.client())
        for folder in ("crds", "extender"):
            await manifests.apply(client, MANIFESTS / folder)
        way = kubeconfig or cluster.user(EXTENDER_ACCOUNT)
        made = [Replica(cluster, number, settings or {}, way) for number in range(replicas)]
        for replica in made:
            replica.start(dies_with_parent=True)
            stack.push_async_callback(processes.stop, replica.process)
        service = await stack.enter_async_context(LoadBalancer([(HOST, replica.port) for replica in made]))
        connector = aiohttp.TCPConnector(ssl=trust or True)
        session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
        extender = Extending(cluster, made, service, session, scheme="https" if trust else "http")
        if kubeconfig is None:
            for number in range(replicas):
                await extender.ready(number)
        yield extender
        for replica in made:
            refuse_faults(cluster.log(replica.name))
