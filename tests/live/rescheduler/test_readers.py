"""Who may read the daemon's pages: with real tokens of a real API server, over TLS."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from localcluster import manifests
from localcluster.client import Client
from localcluster.cluster import Cluster
from localcluster.components import KWOK
from localcluster.credentials import Authority, KeyPair
from localcluster.state_dir import running
from tests.live.support.daemon_process import EAGER, FIRST_PORT, Daemon, daemon, settings_of
from tests.live.support.extender_process import MANIFESTS

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

ACCOUNTS = "/api/v1/namespaces/reberth-system/serviceaccounts"
READER, STRANGER = "reberth-reader", "stranger"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster() -> AsyncIterator[Cluster]:
    async with running(nodes=2, without=[KWOK]) as cluster, cluster.client() as client:
        for name in ("crds", "extender", "rescheduler"):
            await manifests.apply(client, MANIFESTS / name)
        for name in ("reberth-extender", "reberth-rescheduler"):
            await client.delete(f"/apis/apps/v1/namespaces/reberth-system/deployments/{name}")
        await client.create_if_absent(ACCOUNTS, {"metadata": {"name": STRANGER}})
        yield cluster


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca")).create()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one(
    cluster: Cluster, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Daemon]:
    folder = tmp_path_factory.mktemp("daemon")
    pair = authority.issue("rescheduler", hosts=["127.0.0.1"])
    tls = {
        "certFile": str(pair.certificate),
        "keyFile": str(pair.key),
        "clientCAFile": str(authority.certificate),
        "clientCertificates": "optional",
    }
    server = {"port": cluster.spare_port(FIRST_PORT), "tls": tls}
    async with daemon(cluster, folder, settings_of(None, cluster, server=server), EAGER) as one:
        yield one


async def create_token(client: Client, account: str, *audiences: str) -> str:
    made: Any = await client.create(
        f"{ACCOUNTS}/{account}/token", {"spec": {"expirationSeconds": 600, "audiences": list(audiences)}}
    )
    return str(made["status"]["token"])


async def ask(
    one: Daemon, authority: Authority, path: str, *, token: str = "", pair: KeyPair | None = None
) -> int:
    context = ssl.create_default_context(cafile=str(authority.certificate))
    if pair:
        context.load_cert_chain(pair.certificate, pair.key)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"https://127.0.0.1:{one.port}{path}", headers=headers, ssl=context) as answer,
    ):
        return answer.status


async def try_to_ask(one: Daemon, authority: Authority, path: str, *, token: str) -> int:
    try:
        return await ask(one, authority, path, token=token)
    except aiohttp.ClientConnectorError:
        return 0


PAGES = ("/plan", "/moves", "/why?pod=default/none")


async def test_only_those_who_may_read_the_pages(cluster: Cluster, one: Daemon, authority: Authority) -> None:
    known = authority.issue("somebody")
    async with cluster.client() as client:
        good = await create_token(client, READER, "reberth")
        async with asyncio.timeout(60):
            while await try_to_ask(one, authority, "/plan", token=good) != 200:
                await asyncio.sleep(0.2)
        stranger = await create_token(client, STRANGER, "reberth")
        for_the_api = await create_token(client, READER)
        allowed = {"/plan": 200, "/moves": 200, PAGES[2]: 404}
        for path in PAGES:
            assert await ask(one, authority, path, token=good) == allowed[path]
            assert await ask(one, authority, path, pair=known) == allowed[path]
            assert await ask(one, authority, path) == 401
            assert await ask(one, authority, path, token="invented") == 401
            assert await ask(one, authority, path, token=for_the_api) == 401
            assert await ask(one, authority, path, token=good[:-2]) == 401
            assert await ask(one, authority, path, token=stranger) == 403
        for path in ("/healthz", "/readyz", "/metrics"):  # the kubelet and Prometheus
            assert await ask(one, authority, path) == 200
        await client.delete(f"{ACCOUNTS}/{READER}")
        async with asyncio.timeout(30):  # within seconds
            while await ask(one, authority, "/plan", token=good) != 401:
                await asyncio.sleep(0.5)
