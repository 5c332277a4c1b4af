"""The addresses of the extenders follow the EndpointSlices, and are listed while the watch is broken."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from localcluster.client import Client
from localcluster.cluster import Cluster
from localcluster.faults import Answer, FaultProxy, Match, Rule, status_bodies
from rescheduler.execution.extenders import ENDPOINT_SLICES, watch_addresses
from rescheduler.settings import ExtenderAccess
from tests.live.support.fault_client import direct, through
from tests.live.support.mirror_waits import IMPATIENT

pytestmark = pytest.mark.live

NAMESPACE = "extender-addresses"
SLICES = ENDPOINT_SLICES.path(namespace=NAMESPACE)
ACCESS = ExtenderAccess(namespace=NAMESPACE)
FIRST, SECOND = "192.0.2.1", "192.0.2.2"


@pytest_asyncio.fixture
async def admin(bare: Cluster) -> AsyncIterator[Client]:
    async with bare.client() as client:
        await client.create_if_absent("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        yield client
        for each in (await client.get(SLICES))["items"]:
            await client.delete(f"{SLICES}/{each['metadata']['name']}")


def endpoint_slice(name: str, address: str, *, service: str = ACCESS.service) -> dict[str, Any]:
    return {
        "apiVersion": ENDPOINT_SLICES.api_version,
        "kind": "EndpointSlice",
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": False}}],
        "ports": [{"name": "https", "port": 8443}],
    }


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not true():
            await asyncio.sleep(0.01)


async def test_a_slice_is_known_from_the_watch_and_only_those_of_the_service(
    admin: Client, bare: Cluster
) -> None:
    await admin.create(SLICES, endpoint_slice("first", FIRST))
    await admin.create(SLICES, endpoint_slice("other", "192.0.2.9", service="somebody-else"))
    async with direct(bare) as api, watch_addresses(api, ACCESS, IMPATIENT) as addresses:
        await until(lambda: addresses.find_watched() == [f"{FIRST}:8443"])
        await admin.create(SLICES, endpoint_slice("second", SECOND))
        await until(lambda: addresses.find_watched() == [f"{FIRST}:8443", f"{SECOND}:8443"])
        await admin.delete(f"{SLICES}/first")
        await until(lambda: addresses.find_watched() == [f"{SECOND}:8443"])
        assert await addresses.read() == [f"{SECOND}:8443"]


async def test_while_the_watch_is_broken_the_addresses_are_those_of_a_list(
    admin: Client, bare: Cluster, proxy: FaultProxy
) -> None:
    await admin.create(SLICES, endpoint_slice("first", FIRST))
    async with (
        await through(proxy, bare, NAMESPACE) as api,
        watch_addresses(api, ACCESS, IMPATIENT) as addresses,
    ):
        await until(lambda: addresses.find_watched() is not None)
        watches = Match(client=NAMESPACE, verb="watch")
        rule = Rule(watches, Answer(status_bodies.internal_error()))
        proxy.add(rule)
        await until(lambda: addresses.find_watched() is None)
        assert list(addresses.list_remarks())
        await admin.create(SLICES, endpoint_slice("second", SECOND))
        assert await addresses.read() == [f"{FIRST}:8443", f"{SECOND}:8443"]
        proxy.remove(rule)
        await until(lambda: addresses.find_watched() == [f"{FIRST}:8443", f"{SECOND}:8443"])
        assert not list(addresses.list_remarks())
