"""Kill the federation at any of its writes, on a hub with simulated members, and watch its bindings.

The nth write blocks for ever, either before it reaches the API server or after it took effect, and all other
calls with it; then the process is abandoned. A watch records every change of the bindings. Whatever a member
is to run is ready there at once.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import count
from typing import Any

import aiohttp
import msgspec

from federation import process
from federation.api import APPLIED_PLACEMENT, Placement
from federation.hub.object_api import ObjectApi
from federation.objects.resources import BINDINGS as BINDING
from federation.settings import FederationSettings
from localcluster import manifests
from localcluster.client import Client
from localcluster.cluster import Cluster
from localcluster.components import CONTROLLERS, KWOK, SCHEDULER
from localcluster.state_dir import running as cluster_running
from reberth.client.access import Access
from reberth.client.api import Api
from reberth.config.settings import parse
from reberth.protocol.request import ApiRequest
from reberth.protocol.response import BadObject
from reberth.values.errors import ApiError
from reberth.values.timestamp import write_time
from tests.live.support.hub_paths import BINDINGS, CLUSTERS
from tests.live.support.rebalancing_members import DYNAMIC, binding_of
from tests.support.builders import Object
from tests.support.federation.crds import FOLDER

READY: Object = {"applied": True, "health": "Healthy", "status": {"availableReplicas": 4}}
_OFF = ("members", "detector", "works", "execution", "statuses", "failback", "tainting", "graceful")
_WRITES = {"create", "update", "patch", "delete"}
_MEMBERS = ("member1", "member2")


class Mortal(ObjectApi):
    """Calls of which the nth write is the last thing that happens; somebody may meddle with a delete."""

    meddle: Callable[[], Awaitable[object]] | None = None

    writes = count(1)
    last = 0
    when = "before"
    died: asyncio.Event

    async def _send(self, request: ApiRequest) -> aiohttp.ClientResponse:
        if request.verb not in _WRITES or request.subject.startswith(("events", "leases")):
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
    def live(cls, *, until: int = 0, when: str = "before") -> None:
        """Begin to count anew; without a last write it does not die."""
        cls.writes, cls.last, cls.when, cls.died = count(1), until, when, asyncio.Event()


@contextlib.asynccontextmanager
async def hub_alone() -> AsyncIterator[tuple[Cluster, Client]]:
    """A hub whose members have room, and stand nowhere."""
    async with (
        cluster_running("killed-hub", without=[CONTROLLERS, SCHEDULER, KWOK]) as cluster,
        cluster.client() as client,
    ):
        await manifests.apply(client, FOLDER)
        for name in _MEMBERS:
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
            since = {"lastTransitionTime": "2026-01-01T00:00:00Z", "message": "it answers"}
            ready = [{"type": "Ready", "status": "True", "reason": "ClusterReady", **since}]
            status = {"conditions": ready, "resourceSummary": room, "apiEnablements": apis}
            await client.patch(f"{CLUSTERS}/{name}/status", {"status": status})
        yield cluster, client


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
    ready = [{"clusterName": member, **READY} for member in _MEMBERS]
    last = write_time(time.time() - 60)
    await client.patch(
        f"{binding_of(name)}/status",
        {"status": {"lastScheduledTime": last, "schedulerObservedGeneration": 1, "aggregatedStatus": ready}},
    )


@contextlib.asynccontextmanager
async def federation(cluster: Cluster) -> AsyncIterator[None]:
    """One that dies with the context: nothing that it has not sent by then is ever sent."""
    settings = {
        "apiVersion": "reberth.dev/v1alpha1",
        "kind": "FederationSettings",
        "server": {"port": cluster.spare_port()},
        "controllers": dict.fromkeys(_OFF, False),
        "lease": {"namespace": "default", "duration": "5s", "renewDeadline": "4s", "retryEvery": "200ms"},
        "rebalancer": {"gatherFor": "100ms"},
    }
    one = process.Federation(
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


async def outlive(second: str) -> None:
    """Wait until this second has passed: times in objects know no less."""
    while write_time(time.time()) <= second:
        await asyncio.sleep(0.05)
