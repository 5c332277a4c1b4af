"""What happens to many at once: no storm of writes, of memory or of moves comes of it."""

import asyncio
import base64
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from bench.extender.bursting import read_resident
from federation.objects.resources import BINDINGS as BINDING
from reberth.values.timestamp import parse_time
from tests.live.support.failing_members import NAMES, Partitioned, condition, partitioned, ready_members
from tests.live.support.hub_and_members import deployment, eventually, policy
from tests.live.support.hub_paths import BINDINGS, CLUSTERS, DEPLOYMENTS, POLICIES, WORKS
from tests.live.support.rebalancing_members import following
from tests.live.support.waiting_bindings import count_writes, make_waiting
from tests.support.builders import Object

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

API = {"requestsPerSecond": 400, "burst": 600}
FAST = {
    "api": API,
    "events": API,
    "sessions": {"api": API},
    "lease": {"namespace": "default", "duration": "30s"},
}
FOREIGN = "/api/v1/namespaces/default/secrets"
GROWTH = 10e6
NOT_READY = "cluster.karmada.io/not-ready"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Partitioned]:
    """Three API servers that can be cut off, with a node each."""
    folder = tmp_path_factory.mktemp("federation")
    async with partitioned("federation-storms", folder, living=()) as place:
        for cluster in place.place.clusters.values():
            await cluster.add_nodes(1)
        yield place


@pytest.mark.parametrize(
    ("lost", "apart"), [(6.0, 1.0), pytest.param(20.0, 10.0, marks=pytest.mark.soak)], ids=["short", "long"]
)
async def test_members_that_were_all_cut_off_and_come_back_one_by_one_move_nothing(
    place: Partitioned, lost: float, apart: float
) -> None:
    """The hub was cut off: whoever answers first must not get everybody's workloads."""
    await place.run(taintLostMembersAfter=f"{lost:g}s")
    async with housed(place) as names, following(place.place, BINDING, *names) as seen:
        await asyncio.gather(*map(place.lose, NAMES))
        for name in NAMES:
            await eventually(place.hub, f"{CLUSTERS}/{name}", is_lost)
        await asyncio.sleep(2 * lost)
        for name in NAMES:
            await place.find(name)
            await asyncio.sleep(apart)
        await ready_members(place)
    assert {each.metadata.name for each in seen} == names
    for each in seen:
        assert not each.spec.graceful_eviction_tasks
        assert [target.name for target in each.spec.clusters or ()] == [home_of(each.metadata.name)]


async def test_workloads_of_two_members_of_three_that_are_lost_for_good_leave_when_the_brake_ends(
    place: Partitioned,
) -> None:
    lost, bound = 6, 4  # so that both are seen as lost before the first of them counts as such
    await place.run(taintLostMembersAfter=f"{lost}s", brake={"longest": f"{bound}s"})
    async with housed(place) as names:
        await asyncio.gather(*map(place.lose, NAMES[:2]))
        left = [await eventually(place.hub, f"{CLUSTERS}/{name}", is_evicted) for name in NAMES[:2]]
        begun = max(parse_time(condition(each, "Ready")["lastTransitionTime"]) for each in left)
        for each in left:
            (taint,) = (one for one in each["spec"]["taints"] if one["effect"] == "NoExecute")
            assert parse_time(taint["timeAdded"]) >= begun + bound + lost
        for name in names:
            await eventually(place.hub, f"{BINDINGS}/{name}", lambda one: targets(one) == [NAMES[2]])
        await asyncio.gather(*map(place.find, NAMES[:2]))
        await ready_members(place)


@pytest.mark.parametrize("size", [20, pytest.param(100, marks=pytest.mark.soak)])
async def test_foreign_secrets_of_the_members_take_no_memory(place: Partitioned, size: int) -> None:
    """As many megabytes of them in each of three members; one Secret there is ours."""
    await place.run(sections=FAST)
    await place.hub.create(FOREIGN, {"metadata": {"name": "ours"}, "stringData": {"tide": "low"}})
    wanted = policy("ours")
    wanted["spec"]["resourceSelectors"] = [{"apiVersion": "v1", "kind": "Secret", "name": "ours"}]
    await place.hub.create(POLICIES, wanted)
    before = await begin_anew(place)
    for client in place.members.values():
        await client.create_all(FOREIGN, map(make_foreign, range(2 * size)))
    grown = resident(place) - before
    after = await begin_anew(place)
    print(
        f"3 x {size} MB of foreign Secrets: {before / 1e6:.1f} MB before, "
        f"{grown / 1e6:+.1f} MB when they came, {(after - before) / 1e6:+.1f} MB after a restart"
    )
    assert max(grown, after - before) <= GROWTH
    for client in place.members.values():
        await client.delete(f"{FOREIGN}?labelSelector=foreign")
    await place.hub.delete(f"{POLICIES}/ours")
    await place.hub.delete(f"{FOREIGN}/ours")


@pytest.mark.parametrize(
    ("count", "seconds"), [(60, 8.0), pytest.param(3000, 60.0, marks=pytest.mark.soak)], ids=["60", "3000"]
)
async def test_bindings_that_wait_for_room_write_at_most_once_a_second_while_it_changes(
    place: Partitioned, count: int, seconds: float
) -> None:
    """All of them together. It is the last test: the members are left with little room."""
    await place.run(sections=FAST)
    await make_waiting(place, count)
    writes, reports = await count_writes(place, seconds=seconds)
    rate = sum(writes.values()) / seconds
    print(f"{count:,} bindings wait: {rate:.2f} writes a second; {dict(writes)}; {reports} reports of room")
    assert reports >= seconds
    assert rate <= 1
    await empty(place)


@asynccontextmanager
async def housed(place: Partitioned) -> AsyncIterator[set[str]]:
    """Nine workloads: three have their home in each member, and may go to one other."""
    homes = {f"of-{home}-{number}": home for home in NAMES for number in range(3)}
    for name, home in homes.items():
        other = [each for each in NAMES if each != home][-1]
        groups = [
            {"affinityName": "home", "clusterNames": [home]},
            {"affinityName": "elsewhere", "clusterNames": [other]},
        ]
        await place.hub.create(DEPLOYMENTS, deployment(name, 1))
        await place.hub.create(POLICIES, policy(name, clusterAffinities=groups))
    for name, home in homes.items():
        await eventually(place.members[home], f"{DEPLOYMENTS}/{name}", bool)
    yield {f"{name}-deployment" for name in homes}
    await empty(place)


async def empty(place: Partitioned) -> None:
    for path in (POLICIES, DEPLOYMENTS):
        await place.hub.delete(path)
    for path in (BINDINGS, WORKS):
        await place.hub.wait(path, lambda found: not found["items"], seconds=120, every=0.5)


def home_of(binding: str) -> str:
    return binding.split("-")[1]


def targets(found: Any) -> list[str]:
    return [each["name"] for each in found["spec"].get("clusters", ())]


def is_lost(cluster: Any) -> bool:
    return condition(cluster, "Ready").get("reason") == "ClusterNotReachable"


def is_evicted(cluster: Any) -> bool:
    return "NoExecute" in {each["effect"] for each in cluster["spec"].get("taints", ())}


async def begin_anew(place: Partitioned) -> int:
    """Restart the federation, and give the bytes that it takes once it has nothing more to read."""
    await place.restart()
    for client in place.members.values():
        await eventually(client, f"{FOREIGN}/ours", bool)
    seen = [0]
    while not is_steady(seen):
        await asyncio.sleep(0.5)
        seen.append(resident(place))
    return seen[-1]


def is_steady(seen: list[int]) -> bool:
    return len(seen) > 6 and max(seen[-6:]) - min(seen[-6:]) < 1e6


def resident(place: Partitioned) -> int:
    process = place.place.process
    assert process is not None
    return read_resident(process.pid)


def make_foreign(number: int) -> Object:
    """Half a megabyte: an object of a whole one is refused."""
    content = base64.b64encode(os.urandom(500_000)).decode()
    return {
        "metadata": {"name": f"foreign-{number}", "labels": {"foreign": "yes"}},
        "data": {"noise": content},
    }
