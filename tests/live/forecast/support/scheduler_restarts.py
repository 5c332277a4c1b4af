"""A large cluster whose scheduler restarts often, each time with another order of nodes.

The pods of a start name a scheduler that exists only from the next start on, so they are not placed before.
"""

import contextlib
import random
import re
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from localcluster.client import Client
from localcluster.cluster import Cluster
from localcluster.components import CONTROLLERS, KWOK, SCHEDULER
from localcluster.state_dir import running
from reberth.cluster.object_files import load_objects
from reberth.cluster.pods.requests import Version
from reberth.forecast.forecast import forecast
from reberth.forecast.output import PENDING, describe
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.incoming_pod import read_pending_pod
from reberth.forecast.state.profile import API_VERSION, parse_scheduler
from reberth.forecast.state.view import view_snapshot
from tests.live.forecast.support.calibration import Calibration
from tests.support.builders import node, pod

_PODS = "/api/v1/namespaces/default/pods"
_AT_A_START = 4
_WISHES = (100, 70, 40)
_FOUND = re.compile(r'"Successfully bound pod to node".* feasibleNodes=(\d+)')


class Starts:
    """Pods that are placed right after a start, and the forecast of each."""

    def __init__(self, cluster: Cluster, client: Client, names: list[str]) -> None:
        self._cluster = cluster
        self._client = client
        self._names = names
        self.calibration = Calibration()
        self.found: set[int] = set()
        """At how many feasible nodes the last start's searches stopped."""

    async def run(self, seed: int, percentage: int) -> None:
        """Start the scheduler with this percentageOfNodesToScore and let it place a few pods."""
        dice, name = random.Random(seed), f"start-{seed}"
        wishes = [dice.sample(self._names, len(_WISHES)) for _ in range(_AT_A_START)]
        pods = [_wishing(f"{name}-{number}", name, each) for number, each in enumerate(wishes)]
        await self._client.create_all(_PODS, pods)
        configuration = _configuration(name, percentage)
        expected = await self._make_forecast(configuration)
        written = self._cluster.log(SCHEDULER).stat().st_size
        await self._cluster.schedule_with(configuration, "-v=2")
        for pod_name, chances in expected.items():
            landed = await self._client.wait(f"{_PODS}/{pod_name}", _node_of)
            self.calibration.add(chances, self._names, _node_of(landed))
        said = self._cluster.log(SCHEDULER).read_bytes()[written:].decode()
        self.found = {int(number) for number in _FOUND.findall(said)}
        await self._client.delete(_PODS, {"gracePeriodSeconds": 0})

    async def _make_forecast(self, configuration: dict[str, Any]) -> dict[str, dict[str, float]]:
        version = _version_of(self._cluster.design.kubernetes)
        objects = [*(await self._list("/api/v1/nodes", "Node")), *(await self._list(_PODS, "Pod"))]
        snapshot = load_objects(objects, now=0.0, version=version).snapshot
        seen = view_snapshot(SnapshotFacts(snapshot, version))
        scheduler = parse_scheduler(msgspec.json.encode(configuration), version=version)
        found = {
            row.name: forecast(read_pending_pod(seen.facts, place), seen, scheduler)
            for place, row in enumerate(snapshot.pods.rows)
        }
        return {name: describe(one, snapshot, state=PENDING)["chances"] for name, one in found.items()}

    async def _list(self, path: str, kind: str) -> list[Any]:
        found = await self._client.get(path)
        return [{"apiVersion": "v1", "kind": kind, **item} for item in found["items"]]


@contextlib.asynccontextmanager
async def starts(name: str, nodes: int) -> AsyncIterator[Starts]:
    """A cluster of so many nodes in three zones, and no one in it who would change anything."""
    async with running(name, without=[CONTROLLERS, KWOK]) as cluster, cluster.client() as client:
        names = [f"node-{number:04d}" for number in range(nodes)]
        made = [node(each, cpu="64", memory="256Gi", zone="abc"[at % 3]) for at, each in enumerate(names)]
        await client.create_all("/api/v1/nodes", made)
        yield Starts(cluster, client, names)


def _wishing(name: str, scheduler: str, wishes: list[str]) -> Any:
    """A pod that would rather be on some nodes than on others, and minds no taint."""
    terms = [
        {"weight": weight, "preference": {"matchExpressions": [_on(wish)]}}
        for weight, wish in zip(_WISHES, wishes, strict=True)
    ]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
    return pod(name, affinity=affinity, schedulerName=scheduler, tolerations=[{"operator": "Exists"}])


def _on(name: str) -> dict[str, Any]:
    return {"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}


def _node_of(found: Any) -> str:
    name: str = found["spec"].get("nodeName", "")
    return name


def _configuration(name: str, percentage: int) -> dict[str, Any]:
    profile = {"schedulerName": name, "percentageOfNodesToScore": percentage}
    return {"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration", "profiles": [profile]}


def _version_of(kubernetes: str) -> Version:
    major, minor, *_ = map(int, kubernetes.split("."))
    return major, minor
