"""Members in which pods really run, and a count of those that are ready, kept by a watch of each member."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

from localcluster.cluster import Cluster
from reberth.answers import BadObject
from reberth.api import Api
from reberth.cache import DELETED
from reberth.connecting import Access
from reberth.records import Pod
from reberth.resources import PODS
from tests.builders import Object
from tests.live.federating import Place, eventually
from tests.live.hub_paths import CLUSTERS, REBALANCERS

DYNAMIC = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {"dynamicWeight": "AvailableReplicas"},
}
AGGREGATED = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}


class ReadyPods:
    """The ready pods of one workload in all members; `fewest` is the least there were since it was set."""

    def __init__(self, name: str) -> None:
        self._prefix = f"{name}-"
        self._ready: dict[str, set[str]] = {}
        self.fewest = 0

    @property
    def places(self) -> dict[str, int]:
        return {member: len(found) for member, found in sorted(self._ready.items()) if found}

    def hear(self, member: str, event: str, pod: Pod) -> None:
        if not pod.metadata.name.startswith(self._prefix):
            return
        conditions = pod.status.conditions or ()
        is_ready = any(each.type == "Ready" and each.status == "True" for each in conditions)
        there = self._ready.setdefault(member, set())
        if event == DELETED or not is_ready or pod.metadata.deletion_timestamp is not None:
            there.discard(pod.metadata.uid)
        else:
            there.add(pod.metadata.uid)
        self.fewest = min(self.fewest, sum(self.places.values()))

    async def become(self, wanted: dict[str, int], *, within: float = 60) -> None:
        """Wait until so many are ready in each member, and none elsewhere."""
        try:
            async with asyncio.timeout(within):
                while self.places != wanted:
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"{self._prefix}: {self.places}, wanted {wanted}") from None


@contextlib.asynccontextmanager
async def counting(place: Place, name: str) -> AsyncIterator[ReadyPods]:
    pods = ReadyPods(name)
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_follow(member, cluster, pods)) for member, cluster in place.clusters.items()
        ]
        yield pods
        for task in tasks:
            task.cancel()


async def _follow(member: str, cluster: Cluster, pods: ReadyPods) -> None:
    async with (
        Api(Access(str(cluster.kubeconfig))) as api,
        api.watch(PODS, since=None, seconds=600, namespace="default") as lines,
    ):
        async for line in lines:
            if not isinstance(line, BadObject) and isinstance(line.object, Pod):
                pods.hear(member, line.type, line.object)


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


async def let_a_second_pass(place: Place, path: str) -> None:
    """Have what is created now be younger than the last scheduling, whose time is in whole seconds."""
    found = await eventually(place.hub, path, lambda one: one and status(one).get("lastScheduledTime"))
    last = found["status"]["lastScheduledTime"]
    while time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) <= last:
        await asyncio.sleep(0.1)
