"""Three daemons compete for the lease while pods keep moving, and witnesses record what they do.

Half of the nodes have a taint that no pod tolerates, and the halves change every round, so there is always
something to move. Each daemon has its own connection to the API server, which can be cut, and its own token,
by which the audit log distinguishes the daemons.
"""

import asyncio
import json
import random
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from localcluster import audit_log
from localcluster.audit_log import Call
from localcluster.client import Client, all_of
from localcluster.cluster import Cluster
from localcluster.components import API_SERVER
from localcluster.faults import FaultProxy
from localcluster.host import processes
from reberth.client.mirror import mirroring
from reberth.cluster.cache import DELETED, Cache
from reberth.cluster.kinds import HISTORIES, POD, PODS, Kind
from reberth.memory.notes import ANNOTATION
from reberth.records import EvictionHistory, Pod, Record
from tests.live.support.daemon_process import LEASE as LEASE_PATH
from tests.live.support.daemon_process import Crowd, Daemon, daemon, settings_of, way_through
from tests.live.support.fault_client import direct, standing_before
from tests.live.support.leader_audit import Fence
from tests.live.support.move_audit import MoveAudit, Window
from tests.support.builders import Object

CONTENDERS = 3
KINDS = ("kill", "stop", "cut")
"""How the leader is struck. Beside these it may leave by itself, and the API server may be restarted."""
LEAVE, RESTART = "leave", "restart"
LEADING = "reberth_rescheduler_leading"
LEASE_SECONDS = 3
LEASE = {
    "namespace": "reberth-system",
    "duration": f"{LEASE_SECONDS}s",
    "renewDeadline": "2s",
    "retryEvery": "400ms",
    "stuckAfter": "10m",
}
WITHIN = 60.0
RATE, PERIOD, SKEW = 3, 4.0, 1.0
"""So many disruptions in so many seconds, and how far clocks may differ: here all have the same."""
_RED = {"key": "team", "value": "red", "effect": "NoSchedule"}
_NOW = "1s"
# Nothing is left alone for any reason: every pod on a tainted node is to go, again and again.
RESTLESS: Object = {
    "mode": "apply",
    "policies": {
        "brokenRules": {"taints": {"for": "0s"}},
        "underUtilisedNodes": {"mode": "off"},
        "betterPreferences": {"mode": "off"},
    },
    "rest": {"least": "0s", "longest": "0s", "noReturn": "0s"},
    "protections": {"minAge": "0s", "lastReady": False},
    "limits": {
        "rates": {"cluster": [f"{RATE} per {PERIOD:g}s"], "clockSkew": f"{SKEW:g}s"},
        "backOff": {
            **dict.fromkeys(("pair", "longestPair", "workload", "longestWorkload", "givenUpFor"), _NOW),
            "moves": 1000,
        },
    },
    "brakes": {"settling": "0s", "insideForecast": "0%"},
}
_SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, LEAVE: signal.SIGTERM}


class Witness(Cache):
    """A mirror that writes down what must never be."""

    def __init__(self, replicas: int) -> None:
        super().__init__(version=(1, 36))
        self.broken: list[str] = []
        self.gone: set[str] = set()
        """The names of the pods that went; who goes while the API server is down is not seen."""
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
        self.gone.add(pod.metadata.name)
        rows = self.of(POD).within("default")
        ready = sum(row.is_ready and not row.is_terminating for row in rows if row.labels.get("app") == app)
        if ready < self._least:
            self.broken.append(f"{app} has {ready} Ready pods after {pod.metadata.name} went")

    def _see_history(self, history: EvictionHistory) -> None:
        opened = history.status.open or ()
        if len(opened) > 1:
            self.broken.append(f"{history.metadata.name} has {len(opened)} open moves")


class Contest:
    """The daemons, how they are struck, and who sees it."""

    def __init__(
        self,
        crowd: Crowd,
        proxy: FaultProxy,
        daemons: list[Daemon],
        witness: Witness,
        read: Callable[[], list[Call]],
    ) -> None:
        self.crowd = crowd
        self.witness = witness
        self._began = time.time()
        self._read_calls = read
        self._client = crowd.client
        self._proxy = proxy
        self._daemons = daemons
        self._half = 0

    async def round(self, number: int, kind: str) -> None:
        """Strike at a random instant; somebody leads soon, and then no more than one."""
        dice = random.Random(number)
        leader = await self.find_leader()
        await self.unsettle()
        await asyncio.sleep(dice.uniform(0, 3))
        await self._strike(leader, kind)
        if kind != RESTART:
            await self.find_leader(but=leader)
        await self._heal(leader, kind)
        async with asyncio.timeout(WITHIN):
            while await self._count_leaders() != 1:
                await asyncio.sleep(0.1)
        assert self.witness.broken == []

    def read_fence(self) -> Fence:
        return Fence(self._read_calls(), since=self._began)

    async def find_leader(self, but: Daemon | None = None) -> Daemon:
        async with asyncio.timeout(WITHIN):
            while True:
                for one in self._daemons:
                    if one is not but and await one.said(LEADING):
                        return one
                await asyncio.sleep(0.05)

    async def see_the_holder(self) -> None:
        """What kubectl prints of the lease names the one that leads."""
        *_, last = [line for line in (await self.find_leader()).log.splitlines() if '"leading"' in line]
        (printed,) = await self._client.table(LEASE_PATH)
        assert printed["Holder"] == json.loads(last)["identity"]

    async def unsettle(self) -> None:
        """Have the pods leave the other half of the nodes."""
        names = sorted(node["metadata"]["name"] for node in await self._nodes())
        self._half = 1 - self._half
        for number, name in enumerate(names):
            taints = [_RED] if number % 2 == self._half else None
            await self._client.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": taints}})

    async def settle(self) -> None:
        """Wait until nothing is under way; then history, ledger, notes, pods and requests must agree."""
        async with asyncio.timeout(120):
            while await self.crowd.opened() or await self._count_displaced():
                await asyncio.sleep(0.3)
        await self.crowd.spent()
        fence = self.read_fence()
        assert self.witness.broken == []
        assert fence.list_repeated() == []
        assert self.witness.gone <= fence.evicted
        fullest = fence.count_fullest(PERIOD)
        assert fullest <= RATE, f"{fullest} in {PERIOD:g} s: {fence.times}"
        audit = MoveAudit(self._read_calls())
        assert audit.list_violations([Window("cluster", RATE, PERIOD)]) == []
        assert audit.count_granted() > 0
        await self._see_no_notes()

    async def _see_no_notes(self) -> None:
        """The leader removes them when their time is over."""
        async with asyncio.timeout(WITHIN):
            while any(ANNOTATION in each["metadata"].get("annotations", ()) for each in await self._nodes()):
                await asyncio.sleep(0.3)

    async def _nodes(self) -> list[Object]:
        found: list[Object] = (await self._client.get("/api/v1/nodes"))["items"]
        return found

    async def _count_displaced(self) -> int:
        red = {node["metadata"]["name"] for node in await self._nodes() if node["spec"].get("taints")}
        return sum(pod["spec"].get("nodeName") in red for pod in await self.crowd.pods())

    async def _strike(self, one: Daemon, kind: str) -> None:
        if kind == "cut":
            await self._proxy.cut(one.name)
        elif kind == RESTART:
            await one.cluster.kill(API_SERVER)
        else:
            one.send(_SIGNALS[kind])

    async def _heal(self, one: Daemon, kind: str) -> None:
        if kind == "cut":
            await self._proxy.mend(one.name)
        elif kind == RESTART:
            await one.cluster.start(API_SERVER)
        elif kind == "stop":
            one.send(signal.SIGCONT)
        else:
            await processes.gone(one.running)
            one.restart()

    async def _count_leaders(self) -> float:
        return sum([await one.said(LEADING) for one in self._daemons])


@asynccontextmanager
async def contest(
    cluster: Cluster, crowd: Crowd, folder: Path, *, replicas: int, audit: Path
) -> AsyncIterator[Contest]:
    """Three daemons with the rights of the manifests, each by its own way and under its own token."""
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        proxy, witness = await enter(standing_before(cluster)), Witness(replicas)
        api = await enter(direct(cluster))
        mirror = await enter(mirroring(api, witness, [PODS, HISTORIES]))
        await mirror.synced()
        settings = settings_of(None, cluster, lease=LEASE, noteLife=_NOW, noteSweep=_NOW)
        daemons: list[Daemon] = []
        for number in range(CONTENDERS):
            name = f"rescheduler-{number}"
            way = await way_through(cluster, crowd.client, name, server=await proxy.open(name))
            one = daemon(cluster, folder, settings, RESTLESS, number=number, way=way, may_be_forbidden=True)
            daemons.append(await enter(one))
        yield Contest(crowd, proxy, daemons, witness, lambda: audit_log.read_log(audit))


async def untaint(client: Client) -> None:
    nodes = (await client.get("/api/v1/nodes"))["items"]
    names = [node["metadata"]["name"] for node in nodes]
    await all_of(client.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}}) for name in names)
