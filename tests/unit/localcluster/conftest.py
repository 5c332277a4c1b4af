"""A fault proxy in front of an `upstream` that a test may replace."""

import ssl
from collections.abc import AsyncIterator

import aiohttp
import pytest

from localcluster.credentials import Authority, KeyPair
from localcluster.faults import FaultProxy
from tests.support.line_server import Client, LineServer, Upstream, serving


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki")).create()


@pytest.fixture(scope="session")
def identity(authority: Authority) -> KeyPair:
    return authority.issue("loopback", hosts=["127.0.0.1"])


@pytest.fixture(scope="session")
def trust(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=authority.certificate)


@pytest.fixture
async def server() -> LineServer:
    return LineServer()


@pytest.fixture
async def upstream(server: LineServer, identity: KeyPair, authority: Authority) -> AsyncIterator[Upstream]:
    async with serving(server, identity) as url:
        yield Upstream(url, authority.certificate)


@pytest.fixture
async def proxy(upstream: Upstream, identity: KeyPair) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(
        upstream.url, ca=upstream.ca, certificate=identity.certificate, key=identity.key
    ) as proxy:
        yield proxy


@pytest.fixture
async def session(trust: ssl.SSLContext) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=trust),
        auto_decompress=False,
        skip_auto_headers=["Accept-Encoding"],
    ) as session:
        session._retry_connection = False  # a second try of its own would blur what a fault did
        yield session


@pytest.fixture
async def client(proxy: FaultProxy, session: aiohttp.ClientSession) -> Client:
    return Client(await proxy.open("rescheduler-1"), session)


@pytest.fixture
async def direct(upstream: Upstream, session: aiohttp.ClientSession) -> Client:
    """The same server without the proxy."""
    return Client(upstream.url, session)
