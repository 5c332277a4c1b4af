"""Three daemons compete for the lease while pods keep moving, and witnesses record what they do.

Half of the nodes have a taint that no pod tolerates, and the halves change every round, so there is always
something to move. Each daemon has its own connection to the API server, which can be cut, and its own token,
by which the audit log distinguishes the daemons.
"""

import asyncio
import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

from localcluster import audit_log
from localcluster.audit_log import Call
from localcluster.client import Client, all_of
from localcluster.cluster import Cluster
from localcluster.components import API_SERVER
from localcluster.faults import FaultProxy
from localcluster.host import processes
from reberth.client.mirror import mirroring
from reberth.cluster.kinds import HISTORIES, PODS
from reberth.memory.backoff import instant
from reberth.memory.notes import ANNOTATION
from tests.live.support.contest_report import describe_contest
from tests.live.support.daemon_process import LEASE as LEASE_PATH
from tests.live.support.daemon_process import Crowd, Daemon, daemon, settings_of, way_through
from tests.live.support.fault_client import direct, standing_before
from tests.live.support.leader_audit import Fence
from tests.live.support.move_audit import MoveAudit, Window
from tests.live.support.move_witness import Witness
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
_SETTLING = 10.0
TAKE_OVER, MOVE, EVICTION = "take-over", "move", "eviction"
MOMENTS = {TAKE_OVER: 3.0, MOVE: 0.3, EVICTION: 1.0}
"""After what a leader is struck, and at most so many seconds later. After its take-over it may be about to
settle the moves of the one before; a new move is announced, prepared and evicted within some 0.1 s."""
_IN_DOUBT = 60.0
"""A move that lost its reason is undone, and its debit returned, so long after a take-over."""
_REFUSED = 60.0
"""After two refused moves none is begun for so long."""
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
        self.struck: Counter[str] = Counter()
        """How many strikes fell after which moment."""
        self.loads: list[float] = []
        """How busy the machine was at each strike."""
        self._began = time.time()
        self._returned = [self._began]
        self._read_calls = read
        self._client = crowd.client
        self._proxy = proxy
        self._daemons = daemons
        self._half = 0

    async def round(self, number: int, kind: str) -> None:
        """Strike at a random instant; somebody leads soon, and then no more than one."""
        leader = await self.find_leader()
        await self._await_instant(random.Random(number))
        await self._strike(leader, kind)
        if kind != RESTART:
            await self.find_leader(but=leader)
        await self._heal(leader, kind)
        async with asyncio.timeout(WITHIN):
            while await self._count_leaders() != 1:
                await asyncio.sleep(0.1)
        assert self.witness.broken == []

    async def _await_instant(self, dice: random.Random) -> None:
        """Wait for the moment that is drawn, and then for a random time.

        A leader would otherwise be struck before its first move again and again.
        """
        moment = dice.choice([*MOMENTS])
        if moment != TAKE_OVER:
            await self._await_news(moment)
        await asyncio.sleep(dice.uniform(0, MOMENTS[moment]))
        self.struck[moment] += 1
        self.loads.append(os.getloadavg()[0])

    async def _await_news(self, moment: str) -> None:
        """Have other pods leave, and wait until a new move is open or a pod goes.

        The moves of the leader before are settled first: one whose reason is taken away stays in doubt for a
        minute, and two of them fill the rate.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_SETTLING):
                while await self.crowd.opened():
                    await asyncio.sleep(0.05)
        seen = self.witness.moves if moment == MOVE else self.witness.gone
        before = len(seen)
        await self.unsettle()
        async with asyncio.timeout(_IN_DOUBT + _REFUSED + WITHIN):
            while len(seen) == before:
                await asyncio.sleep(0.005)

    async def describe(self) -> str:
        """Tell what every daemon and every move says."""
        return await describe_contest(self.crowd, self._daemons)

    def read_fence(self) -> Fence:
        return Fence(self._read_calls(), since=self._began, returned=self._returned)

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
        """Wait until nothing is under way; then history, ledger, notes, pods and requests must agree.

        The debits of moves in doubt may fill the rate, and what was refused be left alone for minutes; then
        every pod may have to go, one in each window.
        """
        rest = _IN_DOUBT + max(_REFUSED, await self._count_rest())
        every = len(self.crowd.uids) * (PERIOD + SKEW)
        async with asyncio.timeout(rest + every + WITHIN):
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

    async def _count_rest(self) -> float:
        """For how long a workload is left alone: a taint that came in between has refused its move."""
        until = [instant(each["until"]) for each in await self.crowd.refused()]
        return max(until, default=0.0) - time.time()

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
        self._returned.append(time.time())
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
