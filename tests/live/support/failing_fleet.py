"""Many workloads that fail over, in members without kubelets: a test plays their pods, and breaks them.

The members are API servers alone, so that hundreds of workloads fit on a small machine.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from itertools import cycle
from typing import Any

from localcluster.client import Client, Refused
from tests.live.support.hub_and_members import Place, deployment, eventually
from tests.live.support.hub_paths import BINDINGS, CLUSTERS, DEPLOYMENTS, POLICIES, WORKS
from tests.support.builders import Object

MEMBERS = ("member1", "member2", "member3")
REPLICAS = 2
_LOOK_EVERY = 0.2
_WITHIN = 240.0
_COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
_HOME = "home"


class FailingFleet:
    """Workloads of one policy, and the pods that are played for them."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.hub = place.hub
        self.broken: set[tuple[str, str]] = set()
        self.rolling: set[str] = set()
        self.names: list[str] = []

    @contextlib.asynccontextmanager
    async def standing(
        self, count: int, *, seconds: int, homes: Sequence[str] = ("member1",), **more: Any
    ) -> AsyncIterator[None]:
        """So many workloads that are well, in these members in turn; they are gone at the end."""
        self.names = [f"fleet-{number:04d}" for number in range(count)]
        for home in homes:
            await self.hub.create(POLICIES, _policy(home, seconds, more))
        made = (_make(name, home) for name, home in zip(self.names, cycle(homes), strict=False))
        await self.hub.create_all(DEPLOYMENTS, made)
        await self.hub.wait(
            BINDINGS, self._all(_is_well), seconds=_WITHIN + count / 3, every=0.2 + count / 300
        )
        early = [each["metadata"]["name"] for each in await self.list_bindings() if _has_moved(each)]
        assert not early, f"pods were not ready in time, and these have moved already: {early}"
        try:
            yield
        finally:
            self.broken, self.rolling = set(), set()
            await self.hub.delete(POLICIES)
            await self._delete_deployments()
            for path in (BINDINGS, WORKS):
                await self.hub.wait(
                    path,
                    lambda found: not found["items"],
                    seconds=_WITHIN + count / 3,
                    every=0.3 + count / 300,
                )

    async def _delete_deployments(self) -> None:
        """Go on where the API server gives up: thousands take longer than it takes for one call."""
        while (await self.hub.get(f"{DEPLOYMENTS}?limit=1"))["items"]:
            with contextlib.suppress(Refused, TimeoutError):
                await self.hub.delete(DEPLOYMENTS)

    @contextlib.asynccontextmanager
    async def played(self) -> AsyncIterator[None]:
        """Play the pods of all members until the end."""
        tasks = [asyncio.create_task(self._play(name, each)) for name, each in self.place.members.items()]
        try:
            yield
        finally:
            for task in tasks:
                assert not task.done(), f"nobody plays pods any more: {task.exception()}"
                task.cancel()
            await asyncio.wait(tasks)

    def break_down(self, name: str, *members: str) -> None:
        self.broken.update((member, name) for member in members or MEMBERS)

    async def settle(self, *, elsewhere: Iterable[str], within: float) -> None:
        """Wait until these have left the first member, are well, and have nothing under way."""
        wanted = {f"{name}-deployment" for name in elsewhere}

        def holds(found: Any) -> bool:
            moved = {
                each["metadata"]["name"] for each in found["items"] if _is_well(each) and _has_left(each)
            }
            return moved >= wanted

        await self.hub.wait(BINDINGS, holds, seconds=within, every=0.2 + len(wanted) / 300)

    async def list_bindings(self) -> list[Any]:
        return list((await self.hub.get(BINDINGS))["items"])

    def _all(self, holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
        return lambda found: len(found["items"]) == len(self.names) and all(map(holds, found["items"]))

    async def _play(self, member: str, client: Client) -> None:
        while True:
            for each in (await client.get(DEPLOYMENTS))["items"]:
                await self._play_one(member, client, each)
            await asyncio.sleep(_LOOK_EVERY)

    async def _play_one(self, member: str, client: Client, copy: Any) -> None:
        name = copy["metadata"]["name"]
        ready = 0 if (member, name) in self.broken else copy["spec"]["replicas"]
        wanted = _status(copy, ready, rolls=name in self.rolling)
        if not wanted.items() <= copy.get("status", {}).items():
            with contextlib.suppress(Refused):  # it may be gone by now
                await client.patch(f"{DEPLOYMENTS}/{name}/status", {"status": wanted})


def _status(copy: Any, ready: int, *, rolls: bool) -> Object:
    counts = {**dict.fromkeys(_COUNTS, ready), "replicas": copy["spec"]["replicas"]}
    status = {"observedGeneration": copy["metadata"]["generation"], **counts}
    if not rolls:
        return status
    progress = {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated", "message": ""}
    return {**status, "updatedReplicas": 0, "conditions": [progress]}


async def know_members(place: Place) -> None:
    for name in MEMBERS:
        await eventually(place.hub, f"{CLUSTERS}/{name}", _is_known, within=90)


def _is_known(cluster: Any) -> bool:
    status = cluster.get("status", {})
    return bool(status.get("resourceSummary", {}).get("allocatable") and status.get("apiEnablements"))


def _policy(home: str, seconds: int, more: Object) -> Object:
    """Each group is one member: a workload is in one of them at a time, and begins at home."""
    order = [home, *(each for each in MEMBERS if each != home)]
    groups = [{"affinityName": name, "clusterNames": [name]} for name in order]
    selector = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "labelSelector": {"matchLabels": {_HOME: home}},
    }
    scheduling = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
    application = {"decisionConditions": {"tolerationSeconds": seconds}, **more}
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": f"of-{home}"},
        "spec": {
            "resourceSelectors": [selector],
            "placement": {"clusterAffinities": groups, "replicaScheduling": scheduling},
            "failover": {"application": application},
        },
    }


def _make(name: str, home: str) -> Object:
    made = deployment(name, REPLICAS)
    made["metadata"]["labels"][_HOME] = home
    return made


def _is_well(binding: Any) -> bool:
    spec, told = binding["spec"], binding.get("status", {}).get("aggregatedStatus", ())
    there = {each["name"] for each in spec.get("clusters", ())}
    well = {each["clusterName"] for each in told if each.get("health") == "Healthy"}
    return bool(there) and there == well and not spec.get("gracefulEvictionTasks")


def _has_moved(binding: Any) -> bool:
    return bool(binding["spec"].get("activeEvictionHistory"))


def _has_left(binding: Any) -> bool:
    return all(each["name"] != MEMBERS[0] for each in binding["spec"]["clusters"])
