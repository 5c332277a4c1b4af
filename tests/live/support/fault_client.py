"""API clients that reach a cluster through the fault proxy."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from localcluster import credentials
from localcluster.cluster import Cluster
from localcluster.credentials import Authority
from localcluster.faults import FaultProxy
from reberth.client.access import Access
from reberth.client.api import Api, ApiSettings

QUICK = ApiSettings(deadline=3.0, tries=2, requests_per_second=1000.0, burst=1000)


@asynccontextmanager
async def standing_before(cluster: Cluster) -> AsyncIterator[FaultProxy]:
    """A fault proxy before the cluster's API server, known by the cluster's own authority."""
    pki = cluster.design.path("pki")
    pair = Authority(pki).issue("fault-proxy", hosts=["127.0.0.1"])
    async with FaultProxy(
        cluster.design.url, ca=pki / "ca.crt", certificate=pair.certificate, key=pair.key
    ) as proxy:
        yield proxy


async def through(proxy: FaultProxy, cluster: Cluster, client: str, settings: ApiSettings = QUICK) -> Api:
    """The administrator's client by way of the proxy, under a name of its own."""
    return Api(await access_through(proxy, cluster, client), settings)


async def access_through(proxy: FaultProxy, cluster: Cluster, client: str) -> Access:
    server = await proxy.open(client)
    token = credentials.read_token(cluster.design)
    path = credentials.write_kubeconfig(cluster.design, "admin", {"token": token}, server=server, name=client)
    return Access(str(path))


def direct(cluster: Cluster, settings: ApiSettings = QUICK) -> Api:
    return Api(Access(str(cluster.kubeconfig)), settings)
