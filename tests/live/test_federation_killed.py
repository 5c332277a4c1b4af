"""A federation that is killed at any of its writes, and the next one that takes over.

The fault proxy holds one write, to the hub or to a member, before it reaches the API server or after it took
effect, and the process is killed while it waits. What comes afterwards must be as if nobody had died: what
was decided stays decided, though the clusters have other room by then, and each copy is there once.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import count, cycle, product
from pathlib import Path
from signal import SIGKILL
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from localcluster import access
from localcluster.client import Client, Object
from localcluster.faults import Delay, FaultProxy, Match, Rule, Stall, nth
from tests.live.federating import MEMBERS, Place, deployment, eventually, federated, policy
from tests.live.hub_paths import BINDINGS, CLUSTERS, DEPLOYMENTS, POLICIES, WORKS
from tests.live.proxied import standing_before
from tests.proving import Proof

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

NODE = "/api/v1/nodes/node-00000"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/reberth-federation"
PATIENT = {"namespace": "default", "duration": "60s", "renewDeadline": "40s", "retryEvery": "500ms"}
BY_ROOM = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {"dynamicWeight": "AvailableReplicas"},
}
WITHIN = 90.0


class Write(NamedTuple):
    """The nth write of this kind that a workload needs from its beginning to its end."""

    client: str
    verb: str
    resource: str
    number: int = 1


WRITES = [
    Write("hub", "create", "resourcebindings"),
    Write("hub", "patch", "resourcebindings/status", 1),
    Write("hub", "patch", "deployments"),
    Write("hub", "create", "works", 1),
    Write("hub", "create", "works", 2),
    Write("member", "patch", "deployments", 1),
    Write("hub", "patch", "works/status", 1),
    Write("hub", "patch", "works/status", 2),
    Write("hub", "patch", "resourcebindings/status", 2),
    Write("hub", "patch", "resourcebindings", 1),
    Write("hub", "patch", "resourcebindings", 2),
    Write("hub", "patch", "resourcebindings/status", 3),
    Write("hub", "patch", "works", 1),
    Write("member", "patch", "deployments", 2),
    Write("hub", "delete", "resourcebindings"),
    Write("hub", "delete", "works"),
    Write("member", "delete", "deployments"),
    Write("hub", "patch", "works", 3),
]
POINTS = list(product(WRITES, ("before", "after")))
SAMPLE = [POINTS[1], POINTS[20], *random.Random(10).sample(POINTS[2:20] + POINTS[21:], 2)]
ROUNDS = 20
NUMBERS = count()


@dataclass
class Stage:
    """The place, with a fault proxy before the hub and before one of its members."""

    place: Place
    proxies: dict[str, FaultProxy]
    folder: Path
    rooms: Iterator[str] = field(default_factory=lambda: cycle(("192", "64")))
    seen: dict[str, Object] = field(default_factory=dict)

    async def start(self) -> None:
        await self.place.start(self.folder, lease=PATIENT, execution={"lookWhetherGoneEvery": "300ms"})

    async def kill_at(self, rule: Rule, client: str) -> None:
        """Kill the process at its write, change the world, and begin anew."""
        await self.proxies[client].until(lambda: rule.acted == 1)
        await self.place.stop(SIGKILL)
        self.seen = await self.look()
        await self.place.members[MEMBERS[1]].patch(f"{NODE}/status", {"status": room(next(self.rooms))})
        await self.place.hub.delete(LEASE)

    async def look(self) -> dict[str, Object]:
        """What is decided, and which copies are there: name by name."""
        found = {each["metadata"]["name"]: each for each in (await self.place.hub.get(BINDINGS))["items"]}
        for member, client in self.place.members.items():
            for each in (await client.get(DEPLOYMENTS))["items"]:
                found[f"{member}/{each['metadata']['name']}"] = each
        return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(federated("federation-killed"))
        for cluster in place.clusters.values():
            await cluster.add_nodes(1, cpu="64", pods=10_000, memory="1Ti")
        hub = await stack.enter_async_context(standing_before(place.cluster))
        token = {"token": access.read_token(place.cluster.design)}
        server = await hub.open("hub")
        place.account = access.write_kubeconfig(
            place.cluster.design, "admin", token, server=server, name="hub"
        )
        member = await stack.enter_async_context(standing_before(place.clusters[MEMBERS[0]]))
        change = {"spec": {"apiEndpoint": await member.open("member")}}
        await place.hub.patch(f"{CLUSTERS}/{MEMBERS[0]}", change)
        made = Stage(place, {"hub": hub, "member": member}, tmp_path_factory.mktemp("federation"))
        await made.start()
        for name in MEMBERS:
            await eventually(place.hub, f"{CLUSTERS}/{name}", is_known, within=WITHIN)
        yield made


@pytest.mark.parametrize(("write", "when"), SAMPLE)
async def test_a_federation_killed_at_a_write_changes_nothing(stage: Stage, write: Write, when: str) -> None:
    await kill_and_go_on(stage, write, when)


@pytest.mark.soak
@pytest.mark.parametrize(("write", "when"), POINTS)
async def test_a_federation_killed_at_every_write_twenty_times(stage: Stage, write: Write, when: str) -> None:
    proof = Proof("-".join(["federation-killed", *map(str, write), when]).replace("/", "-"))
    for number in proof.remaining(range(ROUNDS)):
        await kill_and_go_on(stage, write, when)
        proof.note([number])


async def kill_and_go_on(stage: Stage, write: Write, when: str) -> None:
    name, proxy = f"mortal-{next(NUMBERS)}", stage.proxies[write.client]
    stage.seen = {}
    match = Match(verb=write.verb, resource=write.resource)
    hold = Delay(600) if when == "before" else Stall()
    async with proxy.fault(match, hold, nth(write.number)) as rule:
        killing = asyncio.create_task(stage.kill_at(rule, write.client))
        living = asyncio.create_task(live(stage, name))
        await asyncio.wait((killing, living), return_when=asyncio.FIRST_COMPLETED)
        if living.done():  # the write was not needed, or the life is over before its time
            killing.cancel()
            await living
            pytest.fail(f"{write} did not happen")
        await killing
    await stage.start()
    await living


async def live(stage: Stage, name: str) -> None:
    """The life of a workload, in which everything is as it must be after each step."""
    hub = stage.place.hub
    await hub.create(DEPLOYMENTS, deployment(name, 4))
    await hub.create(POLICIES, policy(name, replicaScheduling=BY_ROOM))
    await be_settled(stage, name, 4)
    await hub.patch(f"{DEPLOYMENTS}/{name}", {"spec": {"replicas": 9}})
    await be_settled(stage, name, 9)
    await hub.delete(f"{DEPLOYMENTS}/{name}")
    await hub.delete(f"{POLICIES}/{name}")
    await eventually(hub, f"{BINDINGS}/{name}-deployment", lambda found: found is None, within=WITHIN)
    await eventually(hub, WORKS, lambda found: not found["items"], within=WITHIN)
    for client in stage.place.members.values():
        await eventually(client, f"{DEPLOYMENTS}/{name}", lambda found: found is None, within=WITHIN)


async def be_settled(stage: Stage, name: str, replicas: int) -> None:
    """Wait for the copies, and look whether they are those that were there and were decided on."""
    path = f"{BINDINGS}/{name}-deployment"
    found = await eventually(
        stage.place.hub, path, lambda binding: is_settled(binding, replicas), within=WITHIN
    )
    given = {each["name"]: each["replicas"] for each in found["spec"]["clusters"]}
    before = stage.seen.get(f"{name}-deployment", {}).get("spec", {})
    if before.get("replicas") == replicas == total(before):
        assert {each["name"]: each["replicas"] for each in before["clusters"]} == given
    works = (await stage.place.hub.get(WORKS))["items"]
    assert sorted(each["metadata"]["namespace"] for each in works) == [f"karmada-es-{one}" for one in given]
    for member, share in given.items():
        await be_there(stage, member, name, share)


async def be_there(stage: Stage, member: str, name: str, replicas: int) -> None:
    client: Client = stage.place.members[member]
    copy = await eventually(
        client,
        f"{DEPLOYMENTS}/{name}",
        lambda found: found is not None and found["spec"]["replicas"] == replicas,
        within=WITHIN,
    )
    before = stage.seen.get(f"{member}/{name}")
    assert before is None or before["metadata"]["uid"] == copy["metadata"]["uid"]


def is_known(cluster: Any) -> bool:
    status = cluster.get("status", {})
    room = status.get("resourceSummary", {}).get("allocatable")
    return bool(room and status.get("apiEnablements"))


def is_settled(binding: Any, replicas: int) -> bool:
    """Everything is decided, told, carried out and told again, of the newest wish."""
    status = (binding or {}).get("status", {})
    conditions = {each["type"]: each["status"] for each in status.get("conditions", ())}
    clusters = (binding or {}).get("spec", {}).get("clusters", ())
    applied = [each for each in status.get("aggregatedStatus", ()) if each.get("applied")]
    return (
        conditions.get("Scheduled") == conditions.get("FullyApplied") == "True"
        and status.get("schedulerObservedGeneration") == binding["metadata"]["generation"]
        and "lastScheduledTime" in status
        and binding["spec"]["replicas"] == replicas == total(binding["spec"])
        and {each["clusterName"] for each in applied} == {each["name"] for each in clusters}
    )


def room(cpu: str) -> Object:
    return {"allocatable": {"cpu": cpu}, "capacity": {"cpu": cpu}}


def total(spec: Object) -> int:
    return sum(each["replicas"] for each in spec.get("clusters") or ())
