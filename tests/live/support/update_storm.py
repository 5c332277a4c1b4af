"""A storm of updates around a daemon: the API server's maximum, then the same again from a recording."""

import asyncio
import itertools
import re
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from bench.moving.fleet import Fleet
from bench.reading import populating
from localcluster import manifests
from localcluster.client import Client, all_of
from localcluster.cluster import Cluster
from localcluster.faults import FaultProxy, Match, Record, Replay, Tape, nth, status_bodies
from localcluster.nodes import node
from reberth.values.timestamp import parse_time
from tests.live.support.daemon_process import LEASE, PODS, Daemon, daemon, install, settings_of, way_through
from tests.live.support.extender_process import MANIFESTS
from tests.live.support.fault_client import standing_before

NAME = "stormed"
INTERVAL = 1.0
POLICY = {
    "mode": "recommend",
    "policies": {"underUtilisedNodes": {"hotFor": "0s"}},
    "protections": {"minAge": "0s", "lastReady": False},
    "brakes": {"settling": "0s", "notReadyNodes": "100%"},
}
EVENTS = 'reberth_watch_events_total{resource="pods"}'
_AT_ONCE = 48
_LOOK_EVERY = 0.5
_MARK = b"000000000000"
_RUNNING = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
# Far above all versions that the server will give in a test.
_FAR = 10**12
_WATCHES = Match(client=NAME, verb="watch", resource="pods")
_VERSION = re.compile(rb'"resourceVersion":"\d+"')


class Look(NamedTuple):
    """The daemon and its lease at an instant."""

    at: float
    leads: bool
    cycles: float
    events: float
    memory: float
    cpu: float
    lease: tuple[str, int]
    """Its holder, and how often it was handed over."""
    lease_age: float


class Stored(NamedTuple):
    """A pod in etcd, with a mark in it that may be changed."""

    etcd: aiohttp.ClientSession
    key: bytes
    content: bytes

    async def change(self, number: int) -> None:
        await populating.store(self.etcd, self.key, self.content.replace(_MARK, b"%012d" % number))


class Seen(NamedTuple):
    """What a storm has done to the daemon."""

    looks: Sequence[Look]
    sent: int

    @property
    def first(self) -> Look:
        return self.looks[0]

    @property
    def last(self) -> Look:
        return self.looks[-1]

    @property
    def seconds(self) -> float:
        return self.last.at - self.first.at

    @property
    def longest_without_cycle(self) -> float:
        """Between two looks at which there was a new one."""
        times = [after.at for before, after in pairwise(self.looks) if after.cycles > before.cycles]
        return max(after - before for before, after in pairwise([self.first.at, *times, self.last.at]))

    @property
    def oldest_lease(self) -> float:
        return max(look.lease_age for look in self.looks)

    @property
    def grown(self) -> float:
        """Bytes of memory, at the most."""
        return max(look.memory for look in self.looks) - self.first.memory

    def describe(self) -> str:
        cycles, used = self.last.cycles - self.first.cycles, self.last.cpu - self.first.cpu
        return (
            f"{self.sent:,} updates in {self.seconds:.1f} s: {self.sent / self.seconds:,.0f} a second, "
            f"with {used / self.seconds:.0%} of a core; "
            f"{cycles:.0f} cycles, at most {self.longest_without_cycle:.1f} s without one; "
            f"the lease at most {self.oldest_lease:.1f} s old; "
            f"memory {self.first.memory / 1e6:.0f} MB, at most {self.grown / 1e6:+.1f} MB"
        )


class Storm:
    """One daemon behind a proxy, and the pods that it mirrors."""

    def __init__(self, client: Client, proxy: FaultProxy, one: Daemon, pods: Sequence["Stored"]) -> None:
        self.one = one
        self._client = client
        self._proxy = proxy
        self._pods = pods

    async def update(self, seconds: float, tape: Tape) -> Seen:
        """Change pods as fast as the server tells of it, and record what the daemon is told.

        They are written in etcd: by way of the API server's writes there would be fewer.
        """
        async with self._proxy.fault(_WATCHES, Record(tape)):
            await self._reconnect()
            await self._changed_once()
            return await self._watched(self._change_pods(seconds))

    async def replay(self, tape: Tape, rate: int, seconds: float) -> Seen:
        """Tell the daemon at this rate what was recorded, each time as news; then that it must list anew."""
        sent = int(rate * seconds)
        retold = Replay(_retell(tape, sent), rate=rate, hold=False)
        told = await self._count_told() + sent
        async with self._proxy.fault(_WATCHES, retold, nth(1)):
            await self._reconnect()
            return await self._watched(self._until_told(told, sent))

    async def _reconnect(self) -> None:
        """Have the daemon open its watches again, so that a rule picks them."""
        began = asyncio.get_running_loop().time()
        await self._proxy.cut(NAME)
        await self._proxy.mend(NAME)
        await self._proxy.until(lambda: bool(self._proxy.journal.select(_WATCHES, since=began)))

    async def _change_pods(self, seconds: float) -> int:
        numbers, end = itertools.count(1), time.monotonic() + seconds
        before = await self._count_told()

        async def change() -> None:
            while time.monotonic() < end:
                await self._change(next(numbers))

        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(change())
        sent = next(numbers) - 1
        return await self._until_told(before + sent, sent)

    async def _changed_once(self) -> None:
        """Wait until the daemon hears of changes again."""
        before = await self._count_told()
        await self._change(0)
        await self._until_told(before + 1, 1)

    async def _change(self, number: int) -> None:
        await self._pods[number % len(self._pods)].change(number)

    async def _count_told(self) -> float:
        _, text = await self.one.ask("/metrics")
        return _add_up(text, EVENTS)

    async def _until_told(self, count: float, sent: int) -> int:
        async with asyncio.timeout(3 * 60):
            while await self._count_told() < count:
                await asyncio.sleep(_LOOK_EVERY)
        return sent

    async def _watched(self, storm: Any) -> Seen:
        """Look at the daemon for as long as the storm lasts."""
        looks = [await self.look()]
        storming = asyncio.ensure_future(storm)
        while not storming.done():
            await asyncio.wait([storming], timeout=_LOOK_EVERY)
            looks.append(await self.look())
        return Seen(looks, await storming)

    async def look(self) -> Look:
        _, text = await self.one.ask("/metrics")
        lease = (await self._client.get(LEASE))["spec"]
        return Look(
            time.monotonic(),
            _add_up(text, "reberth_rescheduler_leading ") == 1,
            _add_up(text, "reberth_rescheduler_cycles_total{"),
            _add_up(text, EVENTS),
            _add_up(text, "process_resident_memory_bytes "),
            _add_up(text, "process_cpu_seconds_total "),
            (lease.get("holderIdentity", ""), lease.get("leaseTransitions", 0)),
            time.time() - parse_time(lease["renewTime"]),
        )


def _add_up(text: str, beginning: str) -> float:
    """Add up the samples that begin so: to parse them all would take this process the time for the storm."""
    return sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(beginning))


@asynccontextmanager
async def stormed(cluster: Cluster, folder: Path, fleet: Fleet) -> AsyncIterator[Storm]:
    """A daemon that plans again and again for a fleet which nobody but the test changes."""
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        client, proxy = await enter(cluster.client()), await enter(standing_before(cluster))
        for folder_of in ("crds", "extender"):
            await manifests.apply(client, MANIFESTS / folder_of)
        await install(cluster)
        names = await _bring_up(client, fleet)
        etcd = await enter(aiohttp.ClientSession(cluster.design.etcd_url))
        pods = [await _look_up(etcd, name) for name in names]
        cycle = {"interval": f"{INTERVAL:g}s", "settle": "100ms", "minInterval": "100ms", "pending": "1h"}
        settings = settings_of(None, cluster, cycle=cycle)
        way = await way_through(cluster, client, NAME, server=await proxy.open(NAME))
        one = await enter(daemon(cluster, folder, settings, POLICY, way=way))
        await one.until("reberth_rescheduler_cycles_total", lambda count: count > 0)
        yield Storm(client, proxy, one, pods)


async def _bring_up(client: Client, fleet: Fleet) -> list[str]:
    """No controller and no kubelet is there: pods are born with an owner, and said to run."""
    owners = [each["metadata"]["name"] for each in fleet.list_owners()]
    pods = list(fleet.list_pods({name: f"uid-{name}" for name in owners}))
    for pod in pods:
        pod["metadata"]["annotations"] = {"storm": _MARK.decode()}
    names = [pod["metadata"]["name"] for pod in pods]
    await client.create_all("/api/v1/nodes", (node(name, cpu="16", memory="64Gi") for name in fleet.names))
    await client.create_all(PODS, pods)
    await all_of(client.patch(f"{PODS}/{name}/status", {"status": _RUNNING}) for name in names)
    return names


async def _look_up(etcd: aiohttp.ClientSession, name: str) -> Stored:
    key = f"/registry/pods/default/{name}".encode()
    return Stored(etcd, key, await populating.read_stored(etcd, key))


def _retell(tape: Tape, count: int) -> Iterator[bytes]:
    """The changes on a tape as so many new ones, each newer than the last; then the end of the watch."""
    changes = [_part(line) for line in tape.lines if line.startswith(b'{"type":"MODIFIED"')]
    for number, (before, after) in zip(range(count), itertools.cycle(changes), strict=False):
        yield b'%b"resourceVersion":"%d"%b' % (before, _FAR + number, after)
    yield status_bodies.watch_expired().event()


def _part(line: bytes) -> tuple[bytes, bytes]:
    before, after = _VERSION.split(line, maxsplit=1)
    return before, after
