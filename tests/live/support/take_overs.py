"""Two daemons, one of which leads: it is struck in the middle of moves, and the other one takes over.

What the leader sends can be held on its way, for as long as a test wants it. The daemons are told that
requests are on their way for less long than in reality, so that nobody has to wait for a minute.
"""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from localcluster.faults import Effect, Entry, FaultProxy, Match, Rule, Turns, nth
from localcluster.host import processes
from reberth.client.mirror import mirroring
from reberth.cluster.kinds import HISTORIES, PODS
from tests.live.support.contending_daemons import LEADING, LEASE, WITHIN
from tests.live.support.daemon_process import Daemon, daemon, settings_of, way_through
from tests.live.support.fault_client import direct, standing_before
from tests.live.support.move_audit import MoveAudit, Window
from tests.live.support.move_stage import MoveStage, drive_policy, owner_of
from tests.live.support.move_witness import Witness
from tests.support.builders import Object
from tests.support.repository import ROOT

RATE = Window("cluster", 40, 20.0)
_HOLDING_TIME = 15.0
_FOLDER = Path(__file__).parent / "shorter_requests"
_NAMES = ("rescheduler-0", "rescheduler-1")


def hold_history(pod: Object, effect: Effect, *, client: str, turn: int = 1) -> Rule:
    """Hold the nth write of the status of the history of a pod's workload."""
    path = rf"/evictionhistories/\w+-{owner_of(pod)}-[0-9a-f]{{8}}/status$"
    return _hold(effect, client, "update", path, nth(turn))


def hold_note(pod: Object, effect: Effect, *, client: str) -> Rule:
    return _hold(effect, client, "patch", rf"/nodes/{pod['spec']['nodeName']}$")


def hold_eviction(pod: Object, effect: Effect, *, client: str) -> Rule:
    return _hold(effect, client, "create", rf"/pods/{pod['metadata']['name']}/eviction$")


def hold_ledger(effect: Effect, *, client: str) -> Rule:
    return _hold(effect, client, "update", r"/moveledgers/\w+/status$")


def hold_creation(resource: str, effect: Effect, *, client: str) -> Rule:
    return _hold(effect, client, "create", rf"/{resource}$")


def _hold(effect: Effect, client: str, verb: str, path: str, turns: Turns = nth(1)) -> Rule:  # noqa: B008
    return Rule(Match(client=client, verb=verb, path=re.compile(path)), effect, turns)


class HeldRequest(NamedTuple):
    rule: Rule
    entry: Entry


class TakeOvers:
    """The two daemons, and who saw what they did."""

    def __init__(self, stage: MoveStage, proxy: FaultProxy, daemons: list[Daemon], witness: Witness) -> None:
        self.stage = stage
        self.proxy = proxy
        self.witness = witness
        self._daemons = daemons

    async def find_leader(self, *, but: Daemon | None = None) -> Daemon:
        async with asyncio.timeout(WITHIN):
            while True:
                for one in self._daemons:
                    if one is not but and await one.said(LEADING):
                        return one
                await asyncio.sleep(0.05)

    def add(self, rules: Mapping[str, Rule]) -> None:
        for rule in rules.values():
            self.proxy.add(rule)

    async def until_held(self, rules: Mapping[str, Rule]) -> dict[str, HeldRequest]:
        """Wait until all of these requests are held; give those that are, and lift the other rules."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_HOLDING_TIME):
                await self.proxy.until(lambda: all(rule.acted for rule in rules.values()))
        for rule in rules.values():
            if not rule.acted:
                self.proxy.remove(rule)
        find = self.proxy.journal.select
        return {name: HeldRequest(rule, find(rule.match)[-1]) for name, rule in rules.items() if rule.acted}

    async def let_arrive(self, held: HeldRequest) -> int | None:
        """Let a detained request go on; how the API server answered it."""
        self.proxy.remove(held.rule)
        async with asyncio.timeout(WITHIN):
            await self.proxy.until(lambda: held.entry.upstream_status is not None)
        return held.entry.upstream_status

    async def start_anew(self) -> Daemon:
        """Restart both, so that they know only what is stored, and forget what was refused; who leads."""
        for one in self._daemons:
            one.send(signal.SIGCONT)
        await processes.stop(*(one.running for one in self._daemons))
        await self.stage.forget_refusals()
        for one in self._daemons:
            one.restart()
        for one in self._daemons:
            async with asyncio.timeout(WITHIN):
                while (await one.ask("/readyz"))[0] != 200:
                    await asyncio.sleep(0.1)
        return await self.find_leader()

    def list_violations(self) -> list[str]:
        return [*self.witness.broken, *MoveAudit(self.stage.read_calls()).list_violations([RATE])]


@asynccontextmanager
async def taking_over(
    stage: MoveStage, folder: Path, *, replicas: int, longest_request: float
) -> AsyncIterator[TakeOvers]:
    """The daemons reckon with requests that are on their way for so many seconds."""
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        proxy, witness = await enter(standing_before(stage.cluster)), Witness(replicas)
        api = await enter(direct(stage.cluster))
        mirror = await enter(mirroring(api, witness, [PODS, HISTORIES]))
        await mirror.synced()
        timeout = f"{longest_request:g}s"
        settings = settings_of(None, stage.cluster, lease=LEASE, evictionTimeout=timeout)
        policy = drive_policy(f"{RATE.most} per {RATE.seconds:g}s")
        path = os.pathsep.join((str(_FOLDER), str(ROOT)))
        env = {"PYTHONPATH": path, "REBERTH_LONGEST_REQUEST": str(longest_request)}
        daemons = []
        for number, name in enumerate(_NAMES):
            way = await way_through(stage.cluster, stage.client, name, server=await proxy.open(name))
            one = daemon(stage.cluster, folder, settings, policy, number=number, way=way, env=env)
            daemons.append(await enter(one))
        try:
            yield TakeOvers(stage, proxy, daemons, witness)
        finally:
            for each in daemons:
                each.send(signal.SIGCONT)  # a frozen one could not tell how it fared
