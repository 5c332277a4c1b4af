"""Clients of ours that reach a cluster through the fault proxy."""

from localcluster import access
from localcluster.cluster import Cluster
from localcluster.faults import FaultProxy
from reberth.api import Api, ApiSettings
from reberth.connecting import Access

QUICK = ApiSettings(deadline=3.0, tries=2, requests_per_second=1000.0, burst=1000)


async def through(proxy: FaultProxy, cluster: Cluster, client: str, settings: ApiSettings = QUICK) -> Api:
    """The administrator's client by way of the proxy, under a name of its own."""
    server = await proxy.open(client)
    token = access.read_token(cluster.design)
    path = access.write_kubeconfig(cluster.design, "admin", {"token": token}, server=server, name=client)
    return Api(Access(str(path)), settings)


def direct(cluster: Cluster, settings: ApiSettings = QUICK) -> Api:
    return Api(Access(str(cluster.kubeconfig)), settings)
