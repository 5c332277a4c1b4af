"""Real evictions under real controllers: compare where the replacement lands with the forecast.

Nothing else happens in the cluster meanwhile: the scheduler sees what is listed before an eviction, but
for the evicted pod itself. A pod with a grace period ends when its replacement is bound, however long a busy
machine takes for that: else it would be gone where the forecast is about one that is terminating.
"""

import contextlib
import random
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from localcluster.client import Client
from localcluster.state_dir import running
from reberth.cluster.object_files import load_objects
from reberth.cluster.pods.requests import Version, read_version
from reberth.forecast.forecast import forecast_replacement, forecast_with_stale_cache
from reberth.forecast.output import NEXT, STALE_SHARE, describe
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.profile import default_scheduler
from reberth.forecast.state.view import view_snapshot
from tests.live.forecast.support.stage import NOW, Stage
from tests.support.builders import container, node, replica_set, stateful_set

_PODS = "/api/v1/namespaces/default/pods"
_SETS = "/apis/apps/v1/namespaces/default"
REPLICAS = 6


class Landing(NamedTuple):
    """The forecast of a replacement, and where it landed."""

    workload: str
    came_from: str
    expected: dict[str, Any]
    landed_on: str

    @property
    def is_as_forecast(self) -> bool:
        return self.landed_on in self.expected["best"]

    @property
    def is_rare(self) -> bool:
        """The scheduler was behind with the end of the old pod."""
        return self.expected["chances"].get(self.landed_on, 0.0) <= STALE_SHARE


class Evictions:
    """Evicts pods one after another, each when the cluster has come to rest."""

    def __init__(self, client: Client, version: Version) -> None:
        self._client = client
        self._version = version
        self._stage = Stage(client)

    async def lay_out(self, graces: tuple[int, ...]) -> list[str]:
        """Make nodes of different sizes, and a workload of each owner for each grace period."""
        dice = random.Random(7)
        made = [
            node(f"n{number:02d}", cpu=str(dice.choice((4, 6, 8, 12))), zone="abc"[number % 3])
            for number in range(12)
        ]
        await self._client.create_all("/api/v1/nodes", made)
        names = []
        for number, grace in enumerate(graces):
            sizes = [container(cpu=f"{200 + 150 * number}m", memory="256Mi")]
            spec = {"replicas": REPLICAS, "terminationGracePeriodSeconds": grace, "containers": sizes}
            made_of = {"replicasets": replica_set, "statefulsets": stateful_set}
            for plural, make in made_of.items():
                name = f"{plural[:-1]}-{grace}"
                await self._client.create(f"{_SETS}/{plural}", make(name, **spec))
                names.append(name)
        for name in names:
            await self._settle(name)
        return names

    async def evict_one(self, workload: str, seed: int) -> Landing:
        """Evict one pod of the workload and wait until its replacement runs."""
        objects = await self._stage.capture()
        pods = [one for one in objects["items"] if one["kind"] == "Pod"]
        of_workload = {one["metadata"]["name"]: one for one in pods if _app(one) == workload}
        victim = of_workload[random.Random(seed).choice(sorted(of_workload))]
        expected = _make_forecast(objects, victim["metadata"]["name"], self._version)
        await self._evict(victim["metadata"]["name"])
        known = {one["metadata"]["uid"] for one in pods}
        if victim["spec"]["terminationGracePeriodSeconds"]:
            await self._end(victim, known)
        replacement = next(one for one in await self._settle(workload) if one["metadata"]["uid"] not in known)
        return Landing(workload, victim["spec"]["nodeName"], expected, replacement["spec"]["nodeName"])

    async def _evict(self, name: str) -> None:
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        await self._client.create(f"{_PODS}/{name}/eviction", eviction)

    async def _end(self, victim: Any, known: set[str]) -> None:
        """End the pod: a StatefulSet waits for that, and of a ReplicaSet the replacement is bound first."""
        if victim["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet":
            await self._client.wait(
                f"{_PODS}?labelSelector=app={_app(victim)}",
                lambda listed: any(_is_bound(one, known) for one in listed["items"]),
                seconds=60,
                every=0.05,
            )
        await self._client.delete(f"{_PODS}/{victim['metadata']['name']}", NOW)

    async def _settle(self, workload: str) -> list[Any]:
        """Wait until all pods of the workload run and none is leaving."""
        selected = f"{_PODS}?labelSelector=app={workload}"
        found = await self._client.wait(
            selected, lambda listed: _rests(listed["items"]), seconds=60, every=0.05
        )
        pods: list[Any] = found["items"]
        return pods


@contextlib.asynccontextmanager
async def evictions() -> AsyncIterator[Evictions]:
    """A whole control plane, whose scheduler has no extender."""
    async with running() as cluster, cluster.client() as client:
        yield Evictions(client, read_version(cluster.design.kubernetes))


def _make_forecast(objects: Any, name: str, version: Version) -> dict[str, Any]:
    snapshot = load_objects(objects, now=0.0, version=version).snapshot
    place = snapshot.pods.named("default", name)
    assert place is not None
    seen, scheduler = view_snapshot(SnapshotFacts(snapshot, version)), default_scheduler(version)
    usual = forecast_replacement(place, seen, scheduler)
    rare = forecast_with_stale_cache(place, seen, scheduler)
    return describe(usual, snapshot, state=NEXT, rare=rare)


def _app(pod: Any) -> str:
    app: str = pod["metadata"]["labels"]["app"]
    return app


def _is_bound(pod: Any, known: set[str]) -> bool:
    return pod["metadata"]["uid"] not in known and bool(pod["spec"].get("nodeName"))


def _rests(pods: list[Any]) -> bool:
    return len(pods) == REPLICAS and all(
        one["status"].get("phase") == "Running" and "deletionTimestamp" not in one["metadata"] for one in pods
    )
