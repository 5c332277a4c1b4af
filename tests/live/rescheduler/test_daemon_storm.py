"""A daemon in a storm of updates reads them all, and goes on leading and planning."""

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from bench.moving.fleet import Fleet
from localcluster.cluster import Cluster
from localcluster.components import CONTROLLERS, KWOK, SCHEDULER
from localcluster.faults import Tape
from localcluster.state_dir import running
from tests.live.support.daemon_process import ended
from tests.live.support.update_storm import INTERVAL, Seen, stormed

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

FLEET = Fleet(nodes=40, pods=1000, seed=1)
RATE = 10_000
SAMPLE, MINUTE = 4.0, 60.0
MEGABYTE = 10**6


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster() -> AsyncIterator[Cluster]:
    async with running(without=[CONTROLLERS, SCHEDULER, KWOK]) as cluster:
        yield cluster


async def test_in_an_update_storm_the_daemon_leads_plans_stays_small_and_stops(
    cluster: Cluster, tmp_path: Path
) -> None:
    await storm(cluster, tmp_path, seconds=SAMPLE)


@pytest.mark.soak
async def test_a_minute_of_storm(cluster: Cluster, tmp_path: Path) -> None:
    await storm(cluster, tmp_path, seconds=MINUTE)


async def storm(cluster: Cluster, folder: Path, *, seconds: float) -> None:
    tape = Tape()
    async with stormed(cluster, folder, FLEET) as storm:
        see("live", await storm.update(seconds, tape))
        see("replayed", await storm.replay(tape, RATE, seconds))
        storm.one.send(signal.SIGINT)
        assert await ended(storm.one.running) < 2  # a second, and one for a machine that is busy


def see(name: str, seen: Seen) -> None:
    """Nothing starves."""
    print(f"\n{name}: {seen.describe()}", flush=True)
    assert all(look.leads for look in seen.looks)
    assert {look.lease for look in seen.looks} == {seen.first.lease}
    assert seen.oldest_lease < 4  # it would be lost then
    assert seen.longest_without_cycle < 5 * INTERVAL
    assert seen.grown < 50 * MEGABYTE
