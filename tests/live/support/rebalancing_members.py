"""A federation whose members run pods: start it, rebalance its workloads, read its metrics."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from localproduct.processes import HOST
from reberth.client.access import Access
from reberth.client.api import Api
from reberth.cluster.kinds import Resource
from reberth.protocol.response import BadObject
from reberth.records import Record
from reberth.values.timestamp import parse_time
from tests.live.support.hub_and_members import Place, deployment, eventually, federated, policy, restrict
from tests.live.support.hub_paths import BINDINGS, CLUSTERS, DEPLOYMENTS, POLICIES, REBALANCERS
from tests.support.builders import Object

T = TypeVar("T", bound=Record)
RESERVED_FOR = 2
MEMBERS = ("member1", "member2", "member3")
PAIR = {"clusterNames": ["member1", "member2"]}

DYNAMIC = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {"dynamicWeight": "AvailableReplicas"},
}
AGGREGATED = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
QUICK = {
    "members": {"probeEvery": "500ms", "threshold": "1s"},
    "scheduler": {"reportedWithin": "1s", "reserveFor": f"{RESERVED_FOR}s"},
    "rebalancer": {"gatherFor": "200ms"},
    "failback": {"gatherFor": "200ms", "atOnce": 1, "lookAgain": "500ms"},
}


@contextlib.asynccontextmanager
async def rebalancing(name: str, folder: Path, *, cpu: str = "32", **settings: Any) -> AsyncIterator[Place]:
    """Three members with a node each, and a federation that is quick and ends without an error in its log.

    It has the rights of the manifests alone.
    """
    async with federated(name, MEMBERS, without=()) as place:
        for cluster in place.clusters.values():
            await cluster.add_nodes(1, cpu=cpu, pods=1000)
        await restrict(place)
        await place.start(folder, **{**QUICK, **settings})
        for each in MEMBERS:
            await eventually(place.hub, f"{CLUSTERS}/{each}", _has_room)
        yield place
        assert await place.stop() == 0
        assert " error " not in (folder / "federation.log").read_text()


def _has_room(cluster: Any) -> Any:
    return status(cluster).get("apiEnablements") and status(cluster).get("resourceSummary", {}).get(
        "allocatable"
    )


async def propagate(place: Place, name: str, replicas: int, **placement: Any) -> None:
    await place.hub.create(DEPLOYMENTS, deployment(name, replicas))
    await place.hub.create(POLICIES, policy(name, **placement))


def binding_of(name: str) -> str:
    return f"{BINDINGS}/{name}-deployment"


def scheduled(found: Any) -> dict[str, int]:
    return {each["name"]: each.get("replicas", 0) for each in found["spec"].get("clusters", ())}


async def settled(place: Place, name: str, wanted: dict[str, int]) -> Any:
    """Wait until a workload is where it is to be and nothing holds or evicts it any more."""
    return await eventually(
        place.hub,
        binding_of(name),
        lambda one: (
            one
            and scheduled(one) == wanted
            and not one["spec"].get("gracefulEvictionTasks")
            and not one["spec"].get("handover", {}).get("clusters")
        ),
        within=60,
    )


async def stand(place: Place, name: str, clusters: dict[str, int]) -> None:
    """Have a workload that is divided stand where it would not go by itself, as after a failure."""
    wanted = [{"name": each, "replicas": count} for each, count in clusters.items()]
    await place.hub.patch(binding_of(name), {"spec": {"clusters": wanted}})
    await settled(place, name, clusters)


async def rebalance(place: Place, name: str, **spec: Any) -> Object:
    """Rebalance one Deployment and give what became of it."""
    await let_a_second_pass(place, binding_of(name))
    await place.hub.create(REBALANCERS, rebalancer(name, name, **spec))
    return entries(await finished(place, name))[name]


@contextlib.asynccontextmanager
async def following(place: Place, resource: Resource[T], *names: str) -> AsyncIterator[list[T]]:
    """Collect every state that these objects are in from now on."""
    seen: list[T] = []
    async with (
        Api(Access(str(place.cluster.kubeconfig))) as api,
        api.watch(resource, since=None, seconds=600) as lines,
    ):
        task = asyncio.create_task(_collect(lines, names, seen))
        yield seen
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _collect(lines: AsyncIterator[Any], names: Collection[str], seen: list[Any]) -> None:
    async for line in lines:
        if not isinstance(line, BadObject) and line.object.metadata.name in names:
            seen.append(line.object)  # noqa: PERF401 - they are wanted as they come


async def count(place: Place) -> dict[str, float]:
    """Read the federation's metrics: by their names, each label behind it."""
    address = f"http://{HOST}:{place.cluster.spare_port()}/metrics"
    async with aiohttp.ClientSession() as session, session.get(address) as answer:
        families = text_string_to_metric_families(await answer.text())
    return {
        " ".join([each.name, *(f"{name}={value}" for name, value in each.labels.items())]): each.value
        for family in families
        for each in family.samples
    }


def rebalancer(name: str, *workloads: str, **spec: Any) -> Object:
    """Ask for Deployments by their names, and for whatever else the spec says."""
    named = {"workloads": list(map(reference, workloads))} if workloads else {}
    return {
        "apiVersion": "apps.karmada.io/v1alpha1",
        "kind": "WorkloadRebalancer",
        "metadata": {"name": name},
        "spec": {**named, **spec},
    }


def reference(name: str) -> Object:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "namespace": "default"}


def status(found: Any) -> Object:
    return dict((found or {}).get("status", {}))


def entries(found: Any) -> dict[str, Object]:
    return {each["workload"]["name"]: each for each in status(found).get("observedWorkloads", ())}


def results(found: Any) -> dict[str, str | None]:
    return {name: each.get("result") for name, each in entries(found).items()}


async def finished(place: Place, name: str, *, within: float = 60) -> Any:
    return await eventually(
        place.hub, f"{REBALANCERS}/{name}", lambda one: status(one).get("finishTime"), within=within
    )


async def taint(place: Place, member: str) -> None:
    """Lose a member: a person says that nothing may stay there."""
    taints = [{"key": "lost", "effect": "NoExecute"}]
    await place.hub.patch(f"{CLUSTERS}/{member}", {"spec": {"taints": taints}})


async def recover(place: Place, member: str) -> None:
    found = await place.hub.get(f"{CLUSTERS}/{member}")
    left = [each for each in found["spec"].get("taints", ()) if each["key"] != "lost"]
    await place.hub.patch(f"{CLUSTERS}/{member}", {"spec": {"taints": left}})


async def cordon(place: Place, member: str, *, unschedulable: bool | None) -> None:
    for node in (await place.members[member].get("/api/v1/nodes"))["items"]:
        path = f"/api/v1/nodes/{node['metadata']['name']}"
        await place.members[member].patch(path, {"spec": {"unschedulable": unschedulable}})


async def let_a_second_pass(place: Place, path: str) -> None:
    """Have what is created now be younger than the last scheduling, whose time is in whole seconds."""
    await _outlast(place, path, seconds=0)


async def outlast_reservations(place: Place, path: str) -> None:
    """Have the room that was given be counted as what the members report, and no more on top of it."""
    await _outlast(place, path, seconds=RESERVED_FOR)


async def _outlast(place: Place, path: str, *, seconds: float) -> None:
    found = await eventually(place.hub, path, lambda one: one and status(one).get("lastScheduledTime"))
    last = parse_time(found["status"]["lastScheduledTime"])
    while time.time() // 1 <= last + seconds:
        await asyncio.sleep(0.1)


def asking(wanted: Object, *, cpu: str, grace: int = 30) -> Object:
    pod = wanted["spec"]["template"]["spec"]
    pod["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    pod["terminationGracePeriodSeconds"] = grace
    return wanted


def has_allocated(*, least: float = 0, most: float = float("inf")) -> Any:
    """Tell whether a member reports that pods have between so many cpus."""
    return lambda cluster: least <= _allocated(cluster) <= most


def _allocated(cluster: Any) -> float:
    summary = cluster["status"]["resourceSummary"]
    text = {**summary.get("allocated", {})}.get("cpu", "0")
    return int(text[:-1]) / 1000 if text.endswith("m") else float(text)
