"""The CA of the API server is rotated while a client runs: it goes on with the CA that is mounted then."""

import asyncio
from pathlib import Path

import pytest
import yaml

from localcluster import credentials
from localcluster.cluster import Cluster
from localcluster.credentials import Authority
from localcluster.faults import FaultProxy
from reberth.client.access import Access
from reberth.client.api import Api
from reberth.client.mirror import mirroring
from reberth.cluster.cache import Cache
from reberth.cluster.kinds import NODES, PODS
from reberth.cluster.pods.requests import NEWEST
from reberth.values.errors import Untrusted
from tests.live.support.fault_client import QUICK
from tests.live.support.mirror_waits import IMPATIENT, until_true
from tests.support.builders import pod

pytestmark = pytest.mark.live


def mount_ca(kubeconfig: Path, ca: Path) -> Path:
    """Let the kubeconfig name a CA file of its own, as that of a pod is; give the file."""
    content = yaml.safe_load(kubeconfig.read_text())
    mounted = kubeconfig.with_suffix(".ca")
    content["clusters"][0]["cluster"]["certificate-authority"] = str(mounted)
    kubeconfig.write_text(yaml.safe_dump(content))
    mounted.write_bytes(ca.read_bytes())
    return mounted


async def test_a_rotated_ca_is_taken_up_by_calls_and_watches(
    bare: Cluster, proxy: FaultProxy, tmp_path: Path
) -> None:
    server = await proxy.open("rotated")
    token = {"token": credentials.read_token(bare.design)}
    kubeconfig = credentials.write_kubeconfig(bare.design, "admin", token, server=server, name="rotated")
    mounted = mount_ca(kubeconfig, bare.design.path("pki", "ca.crt"))
    successor = Authority(tmp_path / "successor").create()
    pair = successor.issue("api-server", hosts=["127.0.0.1"])
    cache = Cache(version=NEWEST)
    async with (
        Api(Access(str(kubeconfig)), QUICK) as api,
        mirroring(api, cache, (PODS, NODES), settings=IMPATIENT) as mirror,
        bare.client() as client,
    ):
        await mirror.synced()
        await proxy.rotate(certificate=pair.certificate, key=pair.key)
        with pytest.raises(Untrusted):
            await api.version()
        async with asyncio.timeout(20):
            while not all(mirror.troubles().values()):
                await asyncio.sleep(0.05)
        path = "/api/v1/namespaces/default/pods"
        await client.create(path, pod("rotated"))
        mounted.write_bytes(successor.certificate.read_bytes())
        await api.version()
        await until_true(mirror, client, "rotated")
        await client.delete(f"{path}/rotated", {"gracePeriodSeconds": 0})
