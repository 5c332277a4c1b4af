"""A federation that dies at any of its writes while two rebalancers ask for the same workloads, and its heir.

The nth write is held for ever, either before it reaches the API server or after it took effect, and
everything else with it; then the process is given up, and a new one begins. All that was ever written into
the bindings is heard by a watch. Members are played: what is to be in them is ready there at once.
"""

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import count, product
from typing import Any

import aiohttp
import msgspec
import pytest
import pytest_asyncio

from federation import running
from federation.api import APPLIED_PLACEMENT, Placement
from federation.controllers.calling import ObjectApi
from federation.controllers.resources import BINDINGS as BINDING
from federation.settings import FederationSettings
from localcluster import manifests
from localcluster.client import Client
from localcluster.cluster import Cluster
from localcluster.components import CONTROLLERS, KWOK, SCHEDULER
from localcluster.folders import running as cluster_running
from reberth.answers import BadObject
from reberth.api import Api
from reberth.connecting import Access
from reberth.errors import ApiError
from reberth.requesting import Request
from reberth.settings import parse
from reberth.times import write_time
from tests.federation.admission.definitions import FOLDER
from tests.live.federating import eventually
from tests.live.hub_paths import BINDINGS, CLUSTERS, REBALANCERS
from tests.live.rebalancing import DYNAMIC, entries, rebalancer, reference, results, status
from tests.proving import Proof

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

OFF = ("members", "detector", "works", "execution", "statuses", "failback", "tainting", "graceful")
WRITES = {"create", "update", "patch", "delete"}
# More than a round takes; one that is not reached is a round in which nobody dies.
MOST_WRITES = 24
POINTS = list(product(range(1, MOST_WRITES + 1), ("before", "after")))
SAMPLE = [(1, "after"), (4, "before"), (5, "after"), (9, "after"), (12, "before"), (16, "after")]
ROUNDS = 20
READY = {"applied": True, "health": "Healthy", "status": {"availableReplicas": 4}}


class Mortal(ObjectApi):
    """Calls of which the nth write is the last thing that happens; somebody may meddle with a delete."""

    meddle: Callable[[], Awaitable[object]] | None = None

    writes = count(1)
    last = 0
    when = "before"
    died: asyncio.Event

    async def _send(self, request: Request) -> aiohttp.ClientResponse:
        if request.verb not in WRITES or request.subject.startswith(("events", "leases")):
            return await super()._send(request)
        number = next(type(self).writes)
        if 0 < type(self).last < number:
            await asyncio.Event().wait()
        if request.verb == "delete" and (meddle := type(self).meddle):
            type(self).meddle = None
            await meddle()
        if number != type(self).last:
            return await super()._send(request)
        if type(self).when == "after":
            with contextlib.suppress(ApiError):  # refused, it has died all the same
                await super()._send(request)
        type(self).died.set()
        return await asyncio.Event().wait()  # type: ignore[return-value] # it never does

    @classmethod
    def live(cls, *, until: int, when: str) -> None:
        cls.writes, cls.last, cls.when, cls.died = count(1), until, when, asyncio.Event()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hub() -> AsyncIterator[tuple[Cluster, Client]]:
    async with (
        cluster_running("killed-hub", without=[CONTROLLERS, SCHEDULER, KWOK]) as cluster,
        cluster.client() as client,
    ):
        await manifests.apply(client, FOLDER)
        for name in ("member1", "member2"):
            await client.create(
                CLUSTERS,
                {
                    "apiVersion": "cluster.karmada.io/v1alpha1",
                    "kind": "Cluster",
                    "metadata": {"name": name},
                    "spec": {"syncMode": "Push"},
                },
            )
            room = {"allocatable": {"pods": "1000"}}
            apis = [{"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]}]
            await client.patch(
                f"{CLUSTERS}/{name}/status", {"status": {"resourceSummary": room, "apiEnablements": apis}}
            )
        yield cluster, client


@pytest.mark.parametrize(("write", "when"), SAMPLE)
async def test_a_federation_killed_at_a_write_loses_no_wish_and_doubles_none(
    hub: tuple[Cluster, Client], monkeypatch: pytest.MonkeyPatch, write: int, when: str
) -> None:
    monkeypatch.setattr(running, "ObjectApi", Mortal)
    assert await kill_and_resume(*hub, write, when)


@pytest.mark.soak
@pytest.mark.parametrize(("write", "when"), POINTS)
async def test_a_federation_killed_at_every_write_twenty_times(
    hub: tuple[Cluster, Client], monkeypatch: pytest.MonkeyPatch, write: int, when: str
) -> None:
    monkeypatch.setattr(running, "ObjectApi", Mortal)
    proof = Proof(f"rebalancer-killed-{write}-{when}")
    for number in proof.remaining(range(ROUNDS)):
        await kill_and_resume(*hub, write, when)
        proof.note([number])


async def test_one_that_is_changed_as_it_is_deleted_lives_on(
    hub: tuple[Cluster, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proposal's third corner case: what was read is not what is there any more."""
    cluster, client = hub
    monkeypatch.setattr(running, "ObjectApi", Mortal)
    Mortal.live(until=0, when="before")
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


async def test_what_is_changed_or_deleted_in_the_middle_goes_no_further(
    hub: tuple[Cluster, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workloads wait for their turn, while the copies of the first do not get ready."""
    cluster, client = hub
    monkeypatch.setattr(running, "ObjectApi", Mortal)
    Mortal.live(until=0, when="before")
    names, path = ["mid-a", "mid-b", "mid-c"], f"{REBALANCERS}/middle"
    for name in names:
        await lay_out(client, name)
    unready = [{"clusterName": "member2", **READY}]
    await client.patch(f"{BINDINGS}/mid-a-deployment/status", {"status": {"aggregatedStatus": unready}})
    async with federation(cluster):
        await client.create(REBALANCERS, rebalancer("middle", *names, maxMovingReplicas=1))
        await eventually(
            client, path, lambda one: results(one) == {"mid-a": "Successful", "mid-b": None, "mid-c": None}
        )
        held = await eventually(
            client, f"{BINDINGS}/mid-a-deployment", lambda one: one["spec"]["handover"]["clusters"]
        )
        assert held["spec"]["handover"]["clusters"] == [{"name": "member2", "replicas": 4}]
        workloads = [reference("mid-a"), reference("mid-c")]
        await client.patch(path, {"spec": {"workloads": workloads}})
        await eventually(client, path, lambda one: results(one) == {"mid-a": "Successful", "mid-c": None})
        await client.delete(f"{BINDINGS}/mid-c-deployment")
        await eventually(client, path, lambda one: results(one)["mid-c"] == "Failed")
        await lay_out(client, "mid-c")
        await eventually(client, path, lambda one: results(one)["mid-c"] is None)
        await client.delete(path)
        ready = [*unready, {"clusterName": "member1", **READY}]
        await client.patch(f"{BINDINGS}/mid-a-deployment/status", {"status": {"aggregatedStatus": ready}})
        await eventually(client, f"{BINDINGS}/mid-a-deployment", is_at_rest)
    for name in names[1:]:
        assert "rescheduleTriggeredAt" not in (await client.get(f"{BINDINGS}/{name}-deployment"))["spec"]
    await clear(client, names)


async def kill_and_resume(cluster: Cluster, client: Client, write: int, when: str) -> bool:
    """Tell whether anybody died."""
    tag = secrets.token_hex(3)
    names = [f"{tag}-{letter}" for letter in "abc"]
    wishes = {f"{tag}-one": [*names, f"{tag}-none"], f"{tag}-two": names[:2]}
    for name in names:
        await lay_out(client, name)
    async with hearing(cluster, names) as heard:
        for name, workloads in wishes.items():
            await client.create(REBALANCERS, rebalancer(name, *workloads))
        await be_scheduled_since(client, f"{REBALANCERS}/{tag}-one", names[0])
        Mortal.live(until=write, when=when)
        async with federation(cluster):
            finishing = asyncio.ensure_future(finish(client, wishes))
            dying = asyncio.ensure_future(Mortal.died.wait())
            await asyncio.wait((finishing, dying), return_when=asyncio.FIRST_COMPLETED)
            for each in (finishing, dying):
                each.cancel()
        has_died = Mortal.died.is_set()
        await outlive(write_time(time.time()))
        Mortal.live(until=0, when=when)
        async with federation(cluster):
            found = await finish(client, wishes)
            for name in names:
                await eventually(client, f"{BINDINGS}/{name}-deployment", is_at_rest)
    await judge(client, wishes, found, heard)
    await clear(client, names, *wishes)
    return has_died


async def clear(client: Client, names: list[str], *rebalancers: str) -> None:
    paths = (f"{BINDINGS}/{name}-deployment" for name in names)
    for path in (*paths, *(f"{REBALANCERS}/{name}" for name in rebalancers)):
        await client.delete(path)


async def outlive(second: str) -> None:
    """Wait until this second has passed: times in objects know no less."""
    while write_time(time.time()) <= second:
        await asyncio.sleep(0.05)


async def be_scheduled_since(client: Client, path: str, name: str) -> None:
    """Have the scheduler been there in the second of the wish: the trigger then depends on the time."""
    created = (await client.get(path))["metadata"]["creationTimestamp"]
    await outlive(created)
    await client.patch(f"{BINDINGS}/{name}-deployment/status", {"status": {"lastScheduledTime": created}})


async def judge(
    client: Client, wishes: dict[str, list[str]], found: list[Any], heard: dict[str, set[str]]
) -> None:
    """Every workload was asked for at the times that the rebalancers say, and at no other time."""
    for one, workloads in zip(found, wishes.values(), strict=True):
        assert results(one) == {
            name: "Failed" if name.endswith("none") else "Successful" for name in workloads
        }
        assert one["status"]["finishTime"]
    for name, triggers in heard.items():
        said = {entry["triggeredAt"] for one in found for who, entry in entries(one).items() if who == name}
        assert triggers <= said
        binding = await client.get(f"{BINDINGS}/{name}-deployment")
        assert binding["spec"]["rescheduleTriggeredAt"] == max(said)
        assert status(binding)["lastScheduledTime"] >= max(said)
        assert binding["spec"]["clusters"] == [
            {"name": "member1", "replicas": 2},
            {"name": "member2", "replicas": 2},
        ]


def is_at_rest(found: Any) -> bool:
    return not found["spec"].get("handover", {}).get("clusters")


async def finish(client: Client, wishes: dict[str, list[str]]) -> list[Any]:
    return [
        await eventually(
            client, f"{REBALANCERS}/{name}", lambda one: status(one).get("finishTime"), within=60
        )
        for name in wishes
    ]


async def lay_out(client: Client, name: str) -> None:
    """A workload of four replicas, all of them in one member, though two have room."""
    placement = {"replicaScheduling": DYNAMIC}
    applied = msgspec.json.encode(msgspec.convert(placement, Placement)).decode()
    await client.create(
        BINDINGS,
        {
            "apiVersion": "work.karmada.io/v1alpha2",
            "kind": "ResourceBinding",
            "metadata": {
                "name": f"{name}-deployment",
                "labels": {"binding.karmada.io/managed-by": "test"},
                "annotations": {APPLIED_PLACEMENT: applied},
            },
            "spec": {
                "resource": {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "namespace": "default",
                    "name": name,
                },
                "replicas": 4,
                "placement": placement,
                "clusters": [{"name": "member2", "replicas": 4}],
            },
        },
    )
    ready = [{"clusterName": member, **READY} for member in ("member1", "member2")]
    last = write_time(time.time() - 60)
    await client.patch(
        f"{BINDINGS}/{name}-deployment/status",
        {"status": {"lastScheduledTime": last, "schedulerObservedGeneration": 1, "aggregatedStatus": ready}},
    )


@contextlib.asynccontextmanager
async def federation(cluster: Cluster) -> AsyncIterator[None]:
    """One that dies with the context: nothing that it has not sent by then is ever sent."""
    settings = {
        "apiVersion": "reberth.dev/v1alpha1",
        "kind": "FederationSettings",
        "server": {"port": cluster.spare_port()},
        "controllers": dict.fromkeys(OFF, False),
        "lease": {"namespace": "default", "duration": "5s", "renewDeadline": "4s", "retryEvery": "200ms"},
        "rebalancer": {"gatherFor": "100ms"},
    }
    one = running.Federation(
        Access(str(cluster.kubeconfig)), parse(msgspec.json.encode(settings), FederationSettings)
    )
    task = asyncio.create_task(one.run(asyncio.Event()))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))
    assert task.cancelled() or task.exception() is None


@contextlib.asynccontextmanager
async def hearing(cluster: Cluster, names: list[str]) -> AsyncIterator[dict[str, set[str]]]:
    """Hear every trigger that any of the bindings was ever given."""
    heard: dict[str, set[str]] = {name: set() for name in names}
    async with (
        Api(Access(str(cluster.kubeconfig))) as api,
        api.watch(BINDING, since=None, seconds=600) as lines,
    ):
        task = asyncio.create_task(_hear(lines, heard))
        yield heard
        await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _hear(lines: AsyncIterator[Any], heard: dict[str, set[str]]) -> None:
    async for line in lines:
        if isinstance(line, BadObject):
            continue
        spec = line.object.spec
        if spec.resource.name in heard and spec.reschedule_triggered_at:
            heard[spec.resource.name].add(spec.reschedule_triggered_at)
