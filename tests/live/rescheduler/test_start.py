"""The daemon's first plan: it waits for each kind that a plan reads, says which one, and for no other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from localcluster import manifests
from localcluster.cluster import Cluster
from localcluster.components import CONTROLLERS, KWOK, SCHEDULER
from localcluster.faults import FaultProxy, Match, Rule, Stall
from localcluster.state_dir import running
from tests.live.support.daemon_process import Daemon, daemon, install, settings_of, way_through
from tests.live.support.extender_process import MANIFESTS
from tests.live.support.fault_client import standing_before
from tests.support.builders import Object

pytestmark = pytest.mark.live

POLICY: Object = {"mode": "recommend", "protections": {"quotas": False}}
CYCLES = "reberth_rescheduler_cycles_total"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def installed() -> AsyncIterator[Cluster]:
    async with running(without=[CONTROLLERS, SCHEDULER, KWOK]) as cluster:
        async with cluster.client() as client:
            for folder in ("crds", "extender"):
                await manifests.apply(client, MANIFESTS / folder)
        await install(cluster)
        yield cluster


@asynccontextmanager
async def starting(
    cluster: Cluster, folder: Path, resource: str
) -> AsyncIterator[tuple[Daemon, FaultProxy, Rule]]:
    """A daemon that starts while the list of a kind stalls."""
    settings = settings_of(None, cluster, scheduler={})
    async with cluster.client() as client, standing_before(cluster) as proxy:
        server = await proxy.open(resource)
        rule = proxy.add(Rule(Match(client=resource, resource=resource), Stall()))
        way = await way_through(cluster, client, f"start-{resource}", server=server)
        async with daemon(cluster, folder, settings, POLICY, way=way) as one:
            yield one, proxy, rule


@pytest.mark.parametrize("resource", ["pods", "services", "moveledgers", "csinodes", "rollouts"])
async def test_the_first_plan_waits_for_each_kind_that_it_reads(
    resource: str, installed: Cluster, tmp_path: Path
) -> None:
    async with starting(installed, tmp_path, resource) as (one, proxy, rule):
        assert f"{resource}: not listed yet" in await one.remarks(resource)
        await asyncio.sleep(2)
        status, said = await one.ask("/readyz")
        assert (status, f"mirrors: {resource}: not listed yet" in said) == (503, True), said
        assert await one.plan() is None
        proxy.remove(rule)
        await one.until(CYCLES, lambda count: count > 0)
        assert (await one.ask("/readyz"))[0] == 200


@pytest.mark.parametrize("resource", ["resourcequotas", "nodeplacementscores"])
async def test_the_first_plan_waits_for_no_other_kind(
    resource: str, installed: Cluster, tmp_path: Path
) -> None:
    async with starting(installed, tmp_path, resource) as (one, _, rule):
        await one.until(CYCLES, lambda count: count > 0)
        assert (await one.ask("/readyz"))[0] == 200
        plan = await one.plan()
        assert plan is not None
        assert not [warning for warning in plan["warnings"] if "planned without" in warning]
        async with asyncio.timeout(10):
            while not rule.acted:  # it is listed all the same
                await asyncio.sleep(0.05)
