"""The federation is killed at any of its writes while rebalancers name the same workloads.

In every second round the requests are changed between the two: a workload leaves the list of a rebalancer and
another one comes in, a rebalancer is deleted, a binding is deleted, and one that was missing comes.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from itertools import product
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from federation import process
from localcluster.client import Client
from localcluster.cluster import Cluster
from reberth.values.timestamp import write_time
from tests.live.support.hub_and_members import eventually
from tests.live.support.hub_paths import BINDINGS, REBALANCERS
from tests.live.support.rebalancer_kill_loop import (
    READY,
    Mortal,
    binding_of,
    federation,
    hearing,
    hub_alone,
    lay_out,
    outlive,
)
from tests.live.support.rebalancing_members import entries, rebalancer, reference, results, status
from tests.support.resumable_rounds import Proof

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

# More than a round takes; one that is not reached is a round without a kill.
MOST_WRITES = 24
POINTS = list(product(range(1, MOST_WRITES + 1), ("before", "after")))
SAMPLE = [
    *((write, when, False) for write, when in ((1, "after"), (4, "before"), (9, "after"), (12, "before"))),
    *((write, when, True) for write, when in ((2, "after"), (5, "after"), (8, "before"), (16, "after"))),
]
ROUNDS = 20
UNMOVED = [{"name": "member2", "replicas": 4}]
DIVIDED = [{"name": "member1", "replicas": 2}, {"name": "member2", "replicas": 2}]


class Cast(NamedTuple):
    """Workloads a to d, and one without a binding; `one` and `two` want a and b, `one` and `three` want c."""

    tag: str

    def call(self, letters: str) -> list[str]:
        return [f"{self.tag}-{letter}" for letter in letters]

    @property
    def missing(self) -> str:
        return f"{self.tag}-none"

    @property
    def requests(self) -> dict[str, list[str]]:
        return {
            f"{self.tag}-one": [*self.call("abc"), self.missing],
            f"{self.tag}-two": self.call("ab"),
            f"{self.tag}-three": self.call("c"),
        }


Outcome = dict[str, dict[str, str]]
Triggers = dict[str, set[str]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hub() -> AsyncIterator[tuple[Cluster, Client]]:
    async with hub_alone() as made:
        yield made


@pytest.fixture(autouse=True)
def mortal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "ObjectApi", Mortal)
    Mortal.live()


@pytest.mark.parametrize(("write", "when", "is_changed"), SAMPLE)
async def test_a_federation_killed_at_a_write_loses_and_repeats_no_trigger(
    hub: tuple[Cluster, Client], write: int, when: str, *, is_changed: bool
) -> None:
    assert await kill_and_resume(*hub, write, when, is_changed=is_changed)


@pytest.mark.soak
@pytest.mark.parametrize(("write", "when"), POINTS)
async def test_a_federation_killed_at_every_write_twenty_times(
    hub: tuple[Cluster, Client], write: int, when: str
) -> None:
    proof = Proof(f"rebalancer-killed-{write}-{when}")
    for number in proof.remaining(range(ROUNDS)):
        has_died = await kill_and_resume(*hub, write, when, is_changed=number % 2 == 1)
        print(f"write {write:2} {when:6} round {number:2} {'killed' if has_died else 'not reached'}")
        proof.note([number])


async def test_a_rebalancer_changed_during_its_deletion_stays(hub: tuple[Cluster, Client]) -> None:
    """The proposal's third corner case: what was read is not what is there any more."""
    cluster, client = hub
    path, changed = f"{REBALANCERS}/changed", asyncio.Event()

    async def change() -> None:
        workloads = [reference("nobody"), reference("nobody-else")]
        await client.patch(path, {"spec": {"workloads": workloads, "ttlSecondsAfterFinished": 1000}})
        changed.set()

    Mortal.meddle = change
    async with federation(cluster):
        await client.create(REBALANCERS, rebalancer("changed", "nobody", ttlSecondsAfterFinished=0))
        await asyncio.wait_for(changed.wait(), 30)
        await eventually(
            client, path, lambda one: len(results(one)) == 2 and status(one)["observedGeneration"] == 2
        )
        await client.patch(path, {"spec": {"ttlSecondsAfterFinished": 0}})
        await eventually(client, path, lambda one: one is None)


async def test_a_rebalancer_changed_or_deleted_midway_goes_no_further(hub: tuple[Cluster, Client]) -> None:
    """Two workloads wait for their turn, while the copies of the first do not get ready."""
    cluster, client = hub
    names, path = ["mid-a", "mid-b", "mid-c"], f"{REBALANCERS}/middle"
    for name in names:
        await lay_out(client, name)
    unready = [{"clusterName": "member2", **READY}]
    await client.patch(f"{binding_of('mid-a')}/status", {"status": {"aggregatedStatus": unready}})
    async with federation(cluster):
        await client.create(REBALANCERS, rebalancer("middle", *names, maxMovingReplicas=1))
        await eventually(
            client, path, lambda one: results(one) == {"mid-a": "Successful", "mid-b": None, "mid-c": None}
        )
        held = await eventually(client, binding_of("mid-a"), lambda one: one["spec"]["handover"]["clusters"])
        assert held["spec"]["handover"]["clusters"] == [{"name": "member2", "replicas": 4}]
        workloads = [reference("mid-a"), reference("mid-c")]
        await client.patch(path, {"spec": {"workloads": workloads}})
        await eventually(client, path, lambda one: results(one) == {"mid-a": "Successful", "mid-c": None})
        await client.delete(binding_of("mid-c"))
        await eventually(client, path, lambda one: results(one)["mid-c"] == "Failed")
        await lay_out(client, "mid-c")
        await eventually(client, path, lambda one: results(one)["mid-c"] is None)
        await client.delete(path)
        ready = [*unready, {"clusterName": "member1", **READY}]
        await client.patch(f"{binding_of('mid-a')}/status", {"status": {"aggregatedStatus": ready}})
        await eventually(client, binding_of("mid-a"), is_at_rest)
    for name in names[1:]:
        assert "rescheduleTriggeredAt" not in (await client.get(binding_of(name)))["spec"]
    await clear(client, *map(binding_of, names))


async def kill_and_resume(
    cluster: Cluster, client: Client, write: int, when: str, *, is_changed: bool
) -> bool:
    """Tell whether anybody died."""
    cast = Cast(secrets.token_hex(3))
    names = cast.call("abcd")
    for name in names:
        await lay_out(client, name)
    async with hearing(cluster, [*names, cast.missing]) as heard:
        for name, workloads in cast.requests.items():
            await client.create(REBALANCERS, rebalancer(name, *workloads))
        await be_scheduled_since(client, f"{REBALANCERS}/{cast.tag}-one", names[0])
        has_died = await live_until(cluster, client, cast, write, when)
        await outlive(write_time(time.time()))
        said, wanted = await (change(client, cast) if is_changed else leave(cast))
        Mortal.live()
        async with federation(cluster):
            found = await finish(client, wanted)
            here = await list_bound(client)
            for name in here:
                await eventually(client, binding_of(name), is_at_rest)
    for one in found:
        collect(said, one)
    for name, triggers in heard.items():
        assert triggers <= said.get(name, set())
    for name in here:
        judge(await client.get(binding_of(name)), found, said.get(name, set()))
    await clear(client, *map(binding_of, here), *(f"{REBALANCERS}/{name}" for name in wanted))
    return has_died


async def live_until(cluster: Cluster, client: Client, cast: Cast, write: int, when: str) -> bool:
    """Let one work until it dies at this write, or has done all; tells which."""
    Mortal.live(until=write, when=when)
    async with federation(cluster):
        finishing = asyncio.ensure_future(finish(client, foresee(cast)))
        dying = asyncio.ensure_future(Mortal.died.wait())
        await asyncio.wait((finishing, dying), return_when=asyncio.FIRST_COMPLETED)
        if finishing.done():
            finishing.result()
        for each in (finishing, dying):
            each.cancel()
    return Mortal.died.is_set()


def foresee(cast: Cast) -> Outcome:
    """The results if the rebalancers are not changed."""
    return {
        name: {each: "Failed" if each == cast.missing else "Successful" for each in workloads}
        for name, workloads in cast.requests.items()
    }


async def leave(cast: Cast) -> tuple[Triggers, Outcome]:
    return {}, foresee(cast)


async def change(client: Client, cast: Cast) -> tuple[Triggers, Outcome]:
    """Change the requests in the middle; gives the times that were said by then, and what is to come of it.

    Who leaves a list stays in the status only if it has succeeded. A binding that goes makes a failure of
    what was not done, and one that comes makes a success of what had failed.
    """
    one, two, three = (f"{REBALANCERS}/{name}" for name in cast.requests)
    kept, gone, left = cast.call("abc")
    now = [*cast.call("abd"), cast.missing]
    await client.patch(one, {"spec": {"workloads": list(map(reference, now))}})
    said: Triggers = {}
    before = {}
    for path in (one, two, three):
        found = await client.get(path)
        collect(said, found)
        before[path] = results(found)
    await clear(client, three, binding_of(gone))
    await lay_out(client, cast.missing)
    of_one = dict.fromkeys(now, "Successful") | {gone: before[one].get(gone) or "Failed"}
    if before[one].get(left) == "Successful":
        of_one[left] = "Successful"
    of_two = {kept: "Successful", gone: before[two].get(gone) or "Failed"}
    first, second, _ = cast.requests
    return said, {first: of_one, second: of_two}


def collect(said: Triggers, found: Any) -> None:
    """Add the times that a rebalancer says it asked at."""
    for name, entry in entries(found).items():
        if "triggeredAt" in entry:
            said.setdefault(name, set()).add(entry["triggeredAt"])


def judge(binding: Any, found: list[Any], said: set[str]) -> None:
    """A workload was asked for at the times that rebalancers say, and at no other time.

    A workload that was not triggered stays. One that succeeded was scheduled since.
    """
    name, asked = binding["spec"]["resource"]["name"], binding["spec"].get("rescheduleTriggeredAt")
    assert asked is None or asked in said
    assert binding["spec"]["clusters"] == (DIVIDED if asked else UNMOVED)
    last = status(binding)["lastScheduledTime"]
    for entry in (entries(one)[name] for one in found if name in entries(one)):
        assert entry["triggeredAt"] <= asked <= last


def is_at_rest(found: Any) -> bool:
    """Tell whether no old copy is kept, and no trigger is pending."""
    asked = found["spec"].get("rescheduleTriggeredAt", "")
    is_heard = status(found)["lastScheduledTime"] >= asked
    return is_heard and not found["spec"].get("handover", {}).get("clusters")


async def finish(client: Client, wanted: Outcome) -> list[Any]:
    """Wait until the rebalancers say of all their workloads what is to be said."""
    return [
        await eventually(client, f"{REBALANCERS}/{name}", is_finished(outcome), within=60)
        for name, outcome in wanted.items()
    ]


def is_finished(outcome: dict[str, str]) -> Any:
    return lambda one: (
        results(one) == outcome
        and status(one).get("finishTime")
        and status(one)["observedGeneration"] == one["metadata"]["generation"]
    )


async def list_bound(client: Client) -> list[str]:
    return [each["spec"]["resource"]["name"] for each in (await client.get(BINDINGS))["items"]]


async def clear(client: Client, *paths: str) -> None:
    for path in paths:
        await client.delete(path)


async def be_scheduled_since(client: Client, path: str, name: str) -> None:
    """Let the scheduler run in the second of the trigger: the trigger then depends on the time."""
    created = (await client.get(path))["metadata"]["creationTimestamp"]
    await outlive(created)
    await client.patch(f"{binding_of(name)}/status", {"status": {"lastScheduledTime": created}})
