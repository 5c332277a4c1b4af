"""Hundreds of workloads that fail: when they leave, at which rate, what it costs, and when nothing moves."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from bench.extender.bursting import read_cpu, read_resident
from localcluster import audit_log
from localcluster.credentials import ADMIN
from tests.live.support.failing_fleet import MEMBERS, FailingFleet, know_members
from tests.live.support.failover_calls import BODIES, FailoverCalls, describe, read_failovers
from tests.live.support.hub_and_members import federated
from tests.live.support.hub_paths import BINDINGS

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

SETTINGS = {
    "lease": {"namespace": "default", "duration": "30s", "renewDeadline": "20s"},
    "graceful": {"minReady": "300ms"},
    "execution": {"lookWhetherGoneEvery": "300ms"},
}


_QUICK: dict[str, Any] = {"api": {"requestsPerSecond": 5000, "burst": 5000}}
UNLIMITED = {**_QUICK, "sessions": _QUICK}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("failing-fleet")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fleet(folder: Path) -> AsyncIterator[FailingFleet]:
    flags = audit_log.write_audit_flags(folder, [ADMIN], bodies=BODIES)
    async with federated("failing-fleet", MEMBERS, flags=flags) as place:
        for cluster in place.clusters.values():
            await cluster.add_nodes(1, cpu="4000", pods=100_000, memory="100Ti")
        await place.start(folder, **SETTINGS)
        await know_members(place)
        made = FailingFleet(place)
        async with made.played():
            yield made


class Wave(NamedTuple):
    """So many workloads fail within a time. When one is due, it leaves so many seconds late at most."""

    count: int
    over: float
    seconds: int
    late: float


LITTLE = Wave(8, over=4.0, seconds=3, late=30.0)
"""It leaves time to a machine that does other work as well."""
LARGE = Wave(200, over=240.0, seconds=10, late=1.0)
"""Clocks tell whole seconds: of six that fail within one, the last begins a second late, at five a second."""


@pytest.mark.parametrize("wave", [LITTLE, pytest.param(LARGE, marks=pytest.mark.soak)], ids=["8", "200"])
async def test_workloads_that_fail_at_random_times_leave_when_they_are_due(
    fleet: FailingFleet, folder: Path, wave: Wave
) -> None:
    chance = random.Random(wave.count)
    async with fleet.standing(wave.count, seconds=wave.seconds):
        order = sorted((chance.uniform(0, wave.over), name) for name in fleet.names)
        began = time.time()
        for at, name in order:
            await asyncio.sleep(began + at - time.time())
            fleet.break_down(name, "member1")
        await fleet.settle(elsewhere=fleet.names, within=60 + wave.count)
        histories = [each["spec"]["activeEvictionHistory"] for each in await fleet.list_bindings()]
        assert all(len(each) == 1 for each in histories), "each has moved once"
        calls = [each for each in audit_log.read_log(folder) if each.received >= began]
    found = read_failovers(calls, fleet.names, seconds=wave.seconds)
    assert None not in found.values()
    failovers = [each for each in found.values() if each is not None]
    print(f"\n{wave.count} failovers; late: {describe_times(failovers)}\n{describe(failovers)}")
    assert min(each.late for each in failovers) >= 0
    assert max(each.late for each in failovers) <= wave.late
    # Reports of copies may come in between: on a busy machine the new Work takes its time.
    assert sorted(each.binding_calls for each in failovers)[len(failovers) // 2] <= 2
    assert all(each.to_new_work["patch resourcebindings"] == 1 for each in failovers)
    assert max(sum(each.to_new_work.values()) for each in failovers) <= 7


def describe_times(found: list[FailoverCalls]) -> str:
    late = sorted(each.late for each in found)
    return f"{late[len(late) // 2]:.2f} s in the median, {late[-1]:.2f} s at most"


@pytest.mark.parametrize(
    ("count", "seconds"), [(15, 3), pytest.param(300, 10, marks=pytest.mark.soak)], ids=["15", "300"]
)
async def test_all_that_fail_in_one_member_move_at_the_rate(
    fleet: FailingFleet, count: int, seconds: int
) -> None:
    """It is no storm: the cause is the member. The rate is that of the defaults, five a second."""
    async with fleet.standing(count, seconds=seconds):
        for name in fleet.names:
            fleet.break_down(name, "member1")
        began = time.monotonic()
        await fleet.settle(elsewhere=fleet.names, within=count / 5 + 240)
        print(f"\n{count} workloads of one member have moved in {time.monotonic() - began:.1f} s")


async def test_a_failure_everywhere_moves_nothing(fleet: FailingFleet) -> None:
    """Such as a registry that is out of order; those that need no image of it do not fail."""
    async with fleet.standing(20, seconds=3, homes=MEMBERS):
        for name in fleet.names[:12]:
            fleet.break_down(name)
        await held(fleet, fleet.names[:12], "Storm")
        await asyncio.sleep(2)
        assert all(stays(each) for each in await fleet.list_bindings())


async def test_a_rollout_moves_nothing_however_long_it_takes(fleet: FailingFleet) -> None:
    """Twice as long as a failure is tolerated."""
    async with fleet.standing(1, seconds=3):
        fleet.rolling.update(fleet.names)
        await held(fleet, fleet.names, "RollingOut")
        await asyncio.sleep(6)
        for each in await fleet.list_bindings():
            assert stays(each), each


async def test_two_of_two_that_are_due_at_once_both_move(fleet: FailingFleet) -> None:
    async with fleet.standing(2, seconds=3):
        for name in fleet.names:
            fleet.break_down(name, "member1")
        await fleet.settle(elsewhere=fleet.names, within=60)


@pytest_asyncio.fixture(loop_scope="module")
async def unlimited(fleet: FailingFleet, folder: Path) -> AsyncIterator[FailingFleet]:
    """The fleet of a federation whose calls have no limit: thousands stand within minutes."""
    for more in (UNLIMITED, {}):
        assert await fleet.place.stop() == 0
        await fleet.place.start(folder, **SETTINGS, **more)
        if more:
            yield fleet


@pytest.mark.soak
async def test_three_thousand_clocks_cost_little(unlimited: FailingFleet) -> None:
    """Beside the same workloads that do not fail; the toleration is an hour, so that nothing moves."""
    fleet = unlimited
    async with fleet.standing(3000, seconds=3600):
        before, idle = resident(fleet), await measure_share(fleet)
        for name in fleet.names:
            fleet.break_down(name, "member1")
        await held(fleet, fleet.names, "Tolerating", within=900)
        await asyncio.sleep(30)
        grown, share = resident(fleet) - before, await measure_share(fleet)
        print(f"\n3,000 clocks: {grown / 1e6:+.1f} MB; {share:.2%} of a core, and {idle:.2%} without them")
        assert grown <= 10e6
        assert share - idle < 0.01


async def measure_share(fleet: FailingFleet) -> float:
    """Measure for a minute which share of a core it takes while nothing happens."""
    process = fleet.place.process
    assert process is not None
    used = read_cpu(process.pid)
    await asyncio.sleep(60)
    return (read_cpu(process.pid) - used) / 60


@pytest.mark.soak
async def test_broken_everywhere_it_is_never_without_a_cluster_and_moves_twice(fleet: FailingFleet) -> None:
    """Thirty minutes, thirty times as fast: the toleration of 300 s is 10 s, the block of 600 s 20 s."""
    seen: list[list[str]] = []
    async with fleet.standing(1, seconds=10, blockPredecessorSeconds=20, gracePeriodSeconds=20):
        fleet.break_down(fleet.names[0])
        began, without = time.monotonic(), 0
        while time.monotonic() - began < 60:
            (binding,) = await fleet.list_bindings()
            there = [each["name"] for each in binding["spec"].get("clusters", ())]
            without += not there
            seen += [there] if not seen or seen[-1] != there else []
            await asyncio.sleep(0.05)
        print(f"\nbroken everywhere: {len(seen) - 1} moves, {without} looks without a cluster: {seen}")
        assert without == 0
        assert len(seen) - 1 <= 2


async def held(fleet: FailingFleet, names: list[str], reason: str, *, within: float = 60) -> None:
    wanted = {f"{name}-deployment" for name in names}

    def holds(found: Any) -> bool:
        told = {each["metadata"]["name"] for each in found["items"] if find_reason(each) == reason}
        return told >= wanted

    await fleet.hub.wait(BINDINGS, holds, seconds=within, every=0.2 + len(names) / 300)


def find_reason(binding: Any) -> str | None:
    conditions = binding.get("status", {}).get("conditions", ())
    return next((each["reason"] for each in conditions if each["type"] == "Failover"), None)


def stays(binding: Any) -> bool:
    spec = binding["spec"]
    return len(spec["clusters"]) == 1 and not spec.get("activeEvictionHistory")


def resident(fleet: FailingFleet) -> int:
    process = fleet.place.process
    assert process is not None
    return read_resident(process.pid)
