"""Three daemons that contend for the lease while pods keep moving, and a witness of all that they do.

Half of the nodes carry a taint that no pod tolerates, and in each round it is the other half: so there is
always something to move. Each daemon has its own way to the API server, which can be cut.
"""

import asyncio
import random
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from localcluster import access, processes
from localcluster.client import Client, all_of
from localcluster.cluster import Cluster
from localcluster.faults import FaultProxy
from reberth.cache import DELETED, Cache
from reberth.kinds import POD, Kind
from reberth.mirroring import mirroring
from reberth.records import EvictionHistory, Phase, Pod, Record
from reberth.resources import HISTORIES, PODS
from tests.builders import Object
from tests.live.daemons import Crowd, Daemon, daemon, settings_of
from tests.live.proxied import direct, standing_before

CONTENDERS = 3
KINDS = ("kill", "stop", "cut")
LEADING = "reberth_rescheduler_leading"
LEASE = {"namespace": "reberth-system", "duration": "3s", "renewDeadline": "2s", "retryEvery": "400ms"}
WITHIN = 60.0
_TOKEN = "/api/v1/namespaces/reberth-system/serviceaccounts/reberth-rescheduler/token"
_RED = {"key": "team", "value": "red", "effect": "NoSchedule"}
_NOW = "1s"
# Nothing is left alone for any reason: every pod on a tainted node is to go, again and again.
RESTLESS: Object = {
    "mode": "apply",
    "policies": {"underUtilisedNodes": {"mode": "off"}, "betterPreferences": {"mode": "off"}},
    "rest": {"least": "0s", "longest": "0s", "noReturn": "0s"},
    "protections": {"minAge": "0s", "lastReady": False},
    "limits": {
        "rates": {"cluster": ["10000 per 1m"]},
        "backOff": {
            **dict.fromkeys(("pair", "longestPair", "workload", "longestWorkload", "givenUpFor"), _NOW),
            "moves": 1000,
        },
    },
    "brakes": {"settling": "0s", "insideForecast": "0%"},
}


class Witness(Cache):
    """A mirror that writes down what must never be."""

    def __init__(self, replicas: int) -> None:
        super().__init__(version=(1, 36))
        self.broken: list[str] = []
        self.gone: set[str] = set()
        self.evicted: dict[str, set[str]] = {}
        """The moves that have evicted a pod, by its uid."""
        self._least = replicas - 1

    def apply(self, kind: Kind[Any, Any], event: str, subject: Record) -> bool:
        changed = super().apply(kind, event, subject)
        if isinstance(subject, Pod) and subject.metadata.namespace == "default":
            self._see_pod(event, subject)
        if isinstance(subject, EvictionHistory):
            self._see_history(subject)
        return changed

    def _see_pod(self, event: str, pod: Pod) -> None:
        app = (pod.metadata.labels or {}).get("app", "")
        if event != DELETED and not pod.metadata.deletion_timestamp:
            return
        self.gone.add(pod.metadata.uid)
        rows = self.of(POD).within("default")
        ready = sum(row.is_ready and not row.is_terminating for row in rows if row.labels.get("app") == app)
        if ready < self._least:
            self.broken.append(f"{app} has {ready} Ready pods after {pod.metadata.name} went")

    def _see_history(self, history: EvictionHistory) -> None:
        opened = history.status.open or ()
        if len(opened) > 1:
            self.broken.append(f"{history.metadata.name} has {len(opened)} open moves")
        for move in opened:
            if move.phase == Phase.EVICTED:
                self.evicted.setdefault(move.pod_uid, set()).add(move.id)

    def list_broken(self) -> list[str]:
        """What is told of pods and moves by now: each pod that went was evicted by one move."""
        twice = [f"{uid} was evicted by {sorted(ids)}" for uid, ids in self.evicted.items() if len(ids) > 1]
        strange = [f"{uid} went without a move" for uid in self.gone - self.evicted.keys()]
        return [*self.broken, *twice, *strange]


class Contest:
    """The daemons, how they are struck, and who sees it."""

    def __init__(
        self, client: Client, proxy: FaultProxy, daemons: list[Daemon], crowd: Crowd, witness: Witness
    ) -> None:
        self.crowd = crowd
        self.witness = witness
        self.longest = 0.0
        """The longest time, in seconds, until another one led."""
        self._client = client
        self._proxy = proxy
        self._daemons = daemons
        self._half = 0

    async def round(self, number: int, kind: str) -> None:
        """Strike the leader at a random instant; another one leads soon, and then no more than one."""
        dice = random.Random(number)
        leader = await self.find_leader()
        await self.unsettle()
        await asyncio.sleep(dice.uniform(0, 3))
        await self._strike(leader, kind)
        struck = time.monotonic()
        await self.find_leader(but=leader)
        self.longest = max(self.longest, time.monotonic() - struck)
        await self._heal(leader, kind)
        async with asyncio.timeout(WITHIN):
            while await self._count_leaders() != 1:
                await asyncio.sleep(0.1)
        assert self.witness.broken == []

    async def find_leader(self, but: Daemon | None = None) -> Daemon:
        async with asyncio.timeout(WITHIN):
            while True:
                for one in self._daemons:
                    if one is not but and await one.said(LEADING):
                        return one
                await asyncio.sleep(0.05)

    async def unsettle(self) -> None:
        """Have the pods leave the other half of the nodes."""
        names = sorted(
            node["metadata"]["name"] for node in (await self._client.get("/api/v1/nodes"))["items"]
        )
        self._half = 1 - self._half
        for number, name in enumerate(names):
            taints = [_RED] if number % 2 == self._half else None
            await self._client.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": taints}})

    async def settle(self) -> None:
        """Wait until nothing is under way; then history, ledger and pods must agree."""
        async with asyncio.timeout(120):
            while await self.crowd.opened() or await self._count_displaced():
                await asyncio.sleep(0.3)
        assert "Tentative" not in await self.crowd.debits()
        assert self.witness.list_broken() == []

    async def _count_displaced(self) -> int:
        nodes = (await self._client.get("/api/v1/nodes"))["items"]
        red = {node["metadata"]["name"] for node in nodes if node["spec"].get("taints")}
        return sum(pod["spec"].get("nodeName") in red for pod in await self.crowd.pods())

    async def _strike(self, one: Daemon, kind: str) -> None:
        if kind == "cut":
            await self._proxy.cut(one.name)
        else:
            one.send(signal.SIGKILL if kind == "kill" else signal.SIGSTOP)

    async def _heal(self, one: Daemon, kind: str) -> None:
        if kind == "cut":
            await self._proxy.mend(one.name)
        elif kind == "stop":
            one.send(signal.SIGCONT)
        else:
            await processes.gone(one.running)
            one.restart()

    async def _count_leaders(self) -> float:
        return sum([await one.said(LEADING) for one in self._daemons])


@asynccontextmanager
async def contest(cluster: Cluster, crowd: Crowd, folder: Path, *, replicas: int) -> AsyncIterator[Contest]:
    """Three daemons with the rights of the manifests, each by its own way."""
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        proxy, witness = await enter(standing_before(cluster)), Witness(replicas)
        api = await enter(direct(cluster))
        mirror = await enter(mirroring(api, witness, [PODS, HISTORIES]))
        await mirror.synced()
        made: Any = await crowd.client.create(_TOKEN, {"spec": {"expirationSeconds": 7200}})
        settings = settings_of(None, cluster, lease=LEASE, noteLife=_NOW)
        daemons = []
        for number in range(CONTENDERS):
            name = f"rescheduler-{number}"
            server = await proxy.open(name)
            token = {"token": made["status"]["token"]}
            way = access.write_kubeconfig(cluster.design, name, token, server=server)
            daemons.append(await enter(daemon(cluster, folder, settings, RESTLESS, number=number, way=way)))
        yield Contest(crowd.client, proxy, daemons, crowd, witness)


async def untaint(client: Client) -> None:
    nodes = (await client.get("/api/v1/nodes"))["items"]
    names = [node["metadata"]["name"] for node in nodes]
    await all_of(client.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}}) for name in names)
