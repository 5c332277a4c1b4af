"""Which level of priority the API server gives to calls for our leases, by its own headers."""

import asyncio
import shutil
import ssl
from pathlib import Path

import aiohttp
import pytest
import yaml

from localcluster import manifests
from localcluster.cluster import Cluster
from tests.support.repository import MANIFESTS

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="session")]

FLOWCONTROL = "/apis/flowcontrol.apiserver.k8s.io/v1"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases/{}"
LEADERS, OTHERS = "leader-election", "workload-low"
FILES = {
    "reberth-rescheduler": MANIFESTS / "rescheduler" / "12-priority.yaml",
    "reberth-federation": MANIFESTS / "federation" / "hub" / "priority.yaml",
}


async def ask_for_level(cluster: Cluster, account: str, path: str) -> str:
    """Give the uid of the priority level at which the account's request was served, or refused."""
    name, groups = f"system:serviceaccount:reberth-system:{account}", ("system:serviceaccounts",)
    user = yaml.safe_load(cluster.user(name, groups).read_text())
    pair = user["users"][0]["user"]
    context = ssl.create_default_context(cafile=str(cluster.design.path("pki", "ca.crt")))
    context.load_cert_chain(pair["client-certificate"], pair["client-key"])
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{cluster.design.url}{path}", ssl=context) as answer,
    ):
        return answer.headers["X-Kubernetes-PF-PriorityLevel-UID"]


@pytest.mark.parametrize("account", FILES)
async def test_our_leases_are_served_like_those_of_kubernetes(
    bare: Cluster, account: str, tmp_path: Path
) -> None:
    shutil.copy(FILES[account], tmp_path)
    async with bare.client() as client:
        levels = {
            level["metadata"]["uid"]: level["metadata"]["name"]
            for level in (await client.get(f"{FLOWCONTROL}/prioritylevelconfigurations"))["items"]
        }

        async def find_level(path: str) -> str:
            return levels[await ask_for_level(bare, account, path)]

        lease = LEASES.format("reberth-system", account)
        assert await find_level(lease) == OTHERS
        applied = await manifests.apply(client, tmp_path)
        try:
            async with asyncio.timeout(30):
                while await find_level(lease) != LEADERS:
                    await asyncio.sleep(0.2)
            assert await find_level(LEASES.format("default", account)) == OTHERS
            assert await find_level("/api/v1/nodes") == OTHERS
        finally:
            await manifests.remove(client, applied)
