"""A large cluster with one open move that draws pods of its workload, one after another.

The move is dated later than every pod, so that none of them counts as its replacement and each is drawn.
"""

import contextlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import aiohttp
import msgspec
from prometheus_client.parser import text_string_to_metric_families

from localcluster import credentials
from localcluster.client import Client, Object
from localcluster.cluster import Cluster
from localcluster.components import CONTROLLERS, KWOK, SCHEDULER
from localcluster.host.ports import HOST
from localcluster.state_dir import running
from reberth.cluster.object_files import load_objects
from reberth.cluster.pods.identity import name_history
from reberth.cluster.pods.requests import Version, read_version
from reberth.cluster.snapshot import Snapshot
from reberth.forecast.extender import SnapshotMemory, find_reberth_extenders
from reberth.forecast.forecast import Forecast, forecast_replacement
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.profile import KubeScheduler, parse_scheduler
from reberth.forecast.state.view import view_snapshot
from reberth.records import REBERTH_API_VERSION, OpenMove, Phase, Pod, WorkloadIdentity
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_micro_time, write_time
from rescheduler.observe.forecaster import Forecaster
from rescheduler.observe.scheduler_model import SchedulerModel
from tests.live.forecast.support.configurations import Configuration
from tests.live.forecast.support.extender_oracle import explained, make_configuration
from tests.live.forecast.support.stage import NOW, Stage, path_of
from tests.live.support.extender_process import Extending, extending
from tests.support.builders import node, owner, pod, replica_set

_SIZES = ("16", "32", "64")
_ALGORITHM = "scheduler_scheduling_algorithm_duration_seconds"
_GATE = {"name": "example.com/not-yet"}
_HOUR = 3600.0


class ExpectedLanding(NamedTuple):
    """Where the planner would have the pod, and how likely it gets there."""

    destinations: tuple[str, ...]
    on_list: float
    on_first: float


@dataclass
class Landings:
    """How many of the pods landed where, and how long the scheduler took for one."""

    pods: int = 0
    on_list: int = 0
    on_first: int = 0
    seconds: float = 0.0

    def add(self, node_name: str, destinations: Sequence[str]) -> None:
        self.pods += 1
        self.on_list += node_name in destinations
        self.on_first += node_name == destinations[0]

    def __str__(self) -> str:
        shares = f"{self.on_list / self.pods:.1%} on the list, {self.on_first / self.pods:.1%} on the first"
        return f"of {self.pods} pods {shares}; {1000 * self.seconds / self.pods:.1f} ms a cycle"


class Draws:
    """The cluster, its extender, and the one workload."""

    def __init__(self, cluster: Cluster, client: Client, extender: Extending, controller: Object) -> None:
        self._cluster = cluster
        self._client = client
        self._extender = extender
        self._controller = controller
        self._count = 0
        self._version: Version = read_version(".".join(cluster.design.kubernetes.split(".")[:2]))

    async def make_forecast(
        self, percentage: int, destinations: tuple[str, ...] | None = None
    ) -> ExpectedLanding:
        """Foretell where the pod would land if it were moved: to these nodes, else to the planner's."""
        scheduler = self._scheduler(percentage)
        objects = (await Stage(self._client, for_extender=True).capture())["items"]
        snapshot = load_objects(objects, now=time.time(), version=self._version).snapshot
        old = next(one for one in objects if one["kind"] == "Pod")
        chosen = destinations or self._plan(snapshot, old, scheduler)
        found = self._forecast(snapshot, self._open_move(chosen, old), scheduler)
        names = snapshot.nodes.names
        chances = {names[at]: chance for at, chance in zip(found.feasible, found.chances, strict=True)}
        return ExpectedLanding(chosen, sum(map(chances.__getitem__, chosen)), chances[chosen[0]])

    def _plan(self, snapshot: Snapshot, old: Object, scheduler: KubeScheduler) -> tuple[str, ...]:
        planner = Forecaster(SchedulerModel(self._version, scheduler))
        destinations = planner.look_at(snapshot).find_destinations(msgspec.convert(old, Pod))
        assert not isinstance(destinations, Refused)
        return destinations

    def _forecast(self, snapshot: Snapshot, move: OpenMove, scheduler: KubeScheduler) -> Forecast:
        seen = view_snapshot(SnapshotFacts(snapshot, self._version))
        extenders = [
            each.moving(move) for each in find_reberth_extenders(scheduler, SnapshotMemory(seen.facts))
        ]
        place = snapshot.pods.by_uid(move.pod_uid)
        assert place is not None
        found = forecast_replacement(place, seen, scheduler, extenders=extenders)
        assert isinstance(found, Forecast)
        return found

    async def open_move(self, destinations: tuple[str, ...]) -> None:
        """Throw the old pod out, with its move open; the extender knows it."""
        (old,) = (await self._client.get("/api/v1/namespaces/default/pods"))["items"]
        move = msgspec.to_builtins(self._open_move(destinations, old))
        made = self._controller
        root = WorkloadIdentity("apps/v1", "ReplicaSet", made["metadata"]["name"], made["metadata"]["uid"])
        history = {
            "apiVersion": REBERTH_API_VERSION,
            "kind": "EvictionHistory",
            "metadata": {"name": name_history(root), "namespace": "default"},
            "spec": {"workload": msgspec.to_builtins(root)},
            "status": {"open": [{key: value for key, value in move.items() if value is not None}]},
        }
        await Stage(self._client).lay_out([history])
        await self._extender.sees("evictionhistories", await self._client.get(path_of(history)))
        await self._client.delete(path_of({"apiVersion": "v1", "kind": "Pod", **old}), NOW)

    async def land(self, pods: int, expected: ExpectedLanding, percentage: int, into: Landings) -> None:
        """Start the scheduler anew and let it place so many pods, each alone."""
        await self._cluster.schedule_with(self._configuration(percentage), "-v=2")
        for _ in range(pods):
            into.add(await self._land_one(), expected.destinations)
        into.seconds += await self._read_seconds()

    async def _land_one(self) -> str:
        self._count += 1
        made = self._pod(f"web-{self._count}", schedulingGates=[_GATE])
        path = path_of(made)
        await self._client.create("/api/v1/namespaces/default/pods", made)
        await explained(
            self._extender, f"default/{made['metadata']['name']}", lambda told: told["drawnBy"] is not None
        )
        await self._client.patch(path, {"spec": {"schedulingGates": None}})
        found = await self._client.wait(path, lambda one: bool(one["spec"].get("nodeName")), every=0.02)
        await self._client.delete(path, NOW)
        landed: str = found["spec"]["nodeName"]
        return landed

    async def populate(self, nodes: int) -> None:
        """Make nodes of three sizes in three zones, and the pod that is to be moved off the first."""
        made = [
            node(f"node-{at:04d}", cpu=_SIZES[at % 7 % 3], memory="256Gi", zone="abc"[at % 3])
            for at in range(nodes)
        ]
        await self._client.create_all("/api/v1/nodes", made)
        await self._client.create("/api/v1/namespaces/default/pods", self._pod("old", node="node-0000"))

    def _pod(self, name: str, **fields: Any) -> Object:
        meta = self._controller["metadata"]
        owned_by = owner("ReplicaSet", meta["name"], uid=meta["uid"])
        anywhere = [{"operator": "Exists"}]
        made = pod(name, owned_by=owned_by, labels={"app": "web"}, cpu="1", tolerations=anywhere, **fields)
        made["metadata"].pop("uid")
        return made

    def _open_move(self, destinations: tuple[str, ...], old: Object) -> OpenMove:
        planned = time.time() + _HOUR
        return OpenMove(
            id="m-drawn",
            pod=old["metadata"]["name"],
            pod_uid=old["metadata"]["uid"],
            controller_uid=self._controller["metadata"]["uid"],
            from_=old["spec"]["nodeName"],
            destinations=destinations,
            planned_at=write_micro_time(planned),
            expires_at=write_time(planned + _HOUR),
            phase=Phase.NOTED,
        )

    def _configuration(self, percentage: int) -> Configuration:
        made = make_configuration(self._extender.url, weight_of_scores=1)
        return {**made, "percentageOfNodesToScore": percentage}

    def _scheduler(self, percentage: int) -> KubeScheduler:
        return parse_scheduler(msgspec.json.encode(self._configuration(percentage)), version=self._version)

    async def _read_seconds(self) -> float:
        """Read how long the scheduler has thought since its start."""
        url = f"https://{HOST}:{self._cluster.design.port(SCHEDULER)}/metrics"
        headers = {"Authorization": f"Bearer {credentials.read_token(self._cluster.design)}"}
        async with aiohttp.ClientSession(headers=headers) as session, session.get(url, ssl=False) as answer:
            families = text_string_to_metric_families(await answer.text())
        samples: Mapping[str, float] = {
            sample.name: sample.value for family in families for sample in family.samples
        }
        return samples[f"{_ALGORITHM}_sum"]


@contextlib.asynccontextmanager
async def draws(name: str, nodes: int) -> AsyncIterator[Draws]:
    """A cluster of so many nodes, and no one in it who would change anything."""
    async with (
        running(name, without=[CONTROLLERS, KWOK]) as cluster,
        extending(cluster, settings={"deadline": "5s"}) as extender,
        cluster.client() as client,
    ):
        made = replica_set("web", replicas=1, cpu="1")
        controller = await client.create("/apis/apps/v1/namespaces/default/replicasets", made)
        begun = Draws(cluster, client, extender, controller)
        await begun.populate(nodes)
        yield begun
