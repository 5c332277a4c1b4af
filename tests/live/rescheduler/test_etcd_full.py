"""etcd is full: the leader can neither renew its Lease nor move a pod; it goes on when there is space."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from localcluster.client import Client, Refused
from localcluster.components import CONTROLLERS, ETCD, KWOK, SCHEDULER
from localcluster.faults import ETCD_FULL, Answer
from localcluster.faults.request_info import RequestInfo
from localcluster.state_dir import running
from reberth.client.access import Access
from reberth.client.api import Api
from reberth.client.lease import LEASES
from reberth.records import Lease, ObjectMeta
from reberth.values.errors import ServerFault
from tests.live.support.audited import audited
from tests.live.support.daemon_process import (
    EAGER,
    Daemon,
    daemon,
    imbalance,
    install,
    settings_of,
    way_through,
)
from tests.live.support.extender_process import Extending, extending
from tests.live.support.fault_client import QUICK, standing_before

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

LEADING = "reberth_rescheduler_leading"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
SPACE = 12_000_000
FULL_FOR = 12.0
"""Longer than the lease: the leader has lost it, and tried to get it again."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def extender() -> AsyncIterator[Extending]:
    async with audited(nodes=14) as cluster, extending(cluster, replicas=2) as extender:
        await extender.schedule()
        await install(cluster)
        yield extender


async def test_the_injected_answer_is_that_of_a_full_etcd() -> None:
    flags = {ETCD: (f"--quota-backend-bytes={SPACE}",)}
    async with (
        running(without=[CONTROLLERS, SCHEDULER, KWOK], flags=flags) as cluster,
        cluster.client() as client,
    ):
        refused = await fill(client)
        assert isinstance(ETCD_FULL.effect, Answer)
        injected = ETCD_FULL.effect.status.reply(RequestInfo("", "POST", CONFIGMAPS, {}, ""))
        assert refused.body == json.loads(injected.body)
        assert refused.status == injected.code
        async with Api(Access(str(cluster.kubeconfig)), QUICK) as api:
            with pytest.raises(ServerFault):
                await api.create(LEASES, Lease(ObjectMeta(name="late")), namespace="default")
        await client.get(f"{CONFIGMAPS}/filler-0")
        await client.delete(f"{CONFIGMAPS}/filler-0")


async def fill(client: Client) -> Refused:
    for number in range(SPACE // 500_000):
        body = {"metadata": {"name": f"filler-{number}"}, "data": {"x": "y" * 900_000}}
        try:
            await client.create(CONFIGMAPS, body)
        except Refused as refused:
            return refused
    raise AssertionError("etcd is never full")


async def test_a_leader_without_space_moves_nothing_and_goes_on_afterwards(
    extender: Extending, tmp_path: Path
) -> None:
    cluster = extender.cluster
    settings = settings_of(extender, cluster, api={"requestsPerSecond": 40, "burst": 10})
    async with (
        standing_before(cluster) as proxy,
        cluster.client() as client,
        imbalance(cluster) as crowd,
    ):
        way = await way_through(cluster, client, "full", server=await proxy.open("full"))
        async with daemon(cluster, tmp_path, settings, EAGER, way=way) as one:
            await one.until("reberth_rescheduler_moves_in_flight", lambda count: count > 0)
            await crowd.evicting()
            async with proxy.fault(*ETCD_FULL) as rule:
                await asyncio.sleep(1.0)  # what was on its way has arrived
                lost = await crowd.lost()
                await one.until(LEADING, lambda leading: leading == 0)
                await one.remarks("this process lost the lease")
                await asyncio.sleep(FULL_FOR)
                assert await crowd.lost() == lost
                assert await one.said(LEADING) == 0
                assert (await one.ask("/healthz"))[0] == 200
            assert rule.acted > 0
            await one.until(LEADING, lambda leading: leading == 1)
            await see_the_end(one)
            evicted = [move for move in await crowd.past() if "evictedAt" in move]
            assert await crowd.lost() == len(evicted) == len({move["podUID"] for move in evicted}) > lost
            assert await crowd.opened() == []
            await crowd.spent()


async def see_the_end(one: Daemon) -> None:
    """Wait until what was begun is settled, and nothing is left to move."""
    await one.until("reberth_rescheduler_moves_total", lambda count: count > 0)
    await one.quiet()
