"""A federation whose members can become unreachable; their pods run, and ready pods are counted."""

import asyncio
import contextlib
import json
import signal
import ssl
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import aiohttp

from localcluster import credentials
from localcluster.cluster import Cluster
from localcluster.components import CONTROLLERS, KWOK, SCHEDULER
from localcluster.credentials import Authority
from localcluster.faults import FaultProxy
from tests.live.support.federation_pages import wait_for_page
from tests.live.support.hub_and_members import Place, eventually, federated, reach
from tests.live.support.hub_paths import CLUSTERS

LIVING = ("member1", "member2")
"""Here controllers, a scheduler and kubelets are at work; in the third member a test plays their part."""
NAMES = (*LIVING, "member3")
_CONTROLLERS = "--controllers=deployment-controller,replicaset-controller,garbage-collector-controller"
QUICK = {"probeEvery": "300ms", "answerWithin": "2s", "threshold": "600ms", "letGoAfter": "20s"}
Sections = dict[str, Any]
"""Settings of the federation by their section."""


class Partitioned:
    """A place whose members are reached through proxies, so that each may be lost to the hub alone."""

    def __init__(self, place: Place, proxies: dict[str, FaultProxy], folder: Path) -> None:
        self.place = place
        self.hub = place.hub
        self.members = place.members
        self._proxies = proxies
        self._folder = folder
        self._sections: Sections | None = None

    async def lose(self, name: str) -> None:
        await self._proxies[name].cut(name)

    async def find(self, name: str) -> None:
        await self._proxies[name].mend(name)

    def proxy(self, name: str) -> FaultProxy:
        return self._proxies[name]

    async def run(self, *, sections: Sections | None = None, **members: Any) -> None:
        """Have the federation run with these settings for its members and others, and the members ready."""
        wanted = {**(sections or {}), "members": {**QUICK, **members}}
        if self._sections != wanted:
            await self.stop()
            self._sections = wanted
            await self._begin(wanted)
        await ready_members(self)

    async def restart(self) -> None:
        """End the federation, and have it begin anew with the settings that it had."""
        assert self._sections is not None
        await self.stop()
        await self._begin(self._sections)
        await ready_members(self)

    async def _begin(self, sections: Sections) -> None:
        """What the hub says of the members may be older than the process: wait until that serves."""
        await self.place.start(self._folder, **sections)
        await wait_for_page(self.place.cluster, "/readyz")

    async def crash(self) -> None:
        """Kill the federation amid its work, and run it again."""
        assert self._sections is not None
        await self.place.stop(signal.SIGKILL)
        await self.place.start(self._folder, **self._sections)

    async def stop(self) -> None:
        assert await self.place.stop() == 0
        log = self._folder / "federation.log"
        assert not log.exists() or " error " not in log.read_text()


@contextlib.asynccontextmanager
async def partitioned(
    prefix: str, folder: Path, *, living: Sequence[str] = LIVING
) -> AsyncIterator[Partitioned]:
    async with federated(prefix, NAMES) as place, contextlib.AsyncExitStack() as stack:
        await asyncio.gather(*(_enliven(place.clusters[name]) for name in living))
        proxies = {}
        for name, cluster in place.clusters.items():
            proxies[name] = await stack.enter_async_context(_stand_before(cluster))
            endpoint = await proxies[name].open(name)
            await reach(place.hub, name, endpoint)
        partitioned = Partitioned(place, proxies, folder)
        yield partitioned
        await partitioned.stop()


async def _enliven(cluster: Cluster) -> None:
    await asyncio.gather(
        cluster.start(CONTROLLERS, _CONTROLLERS),
        cluster.start(SCHEDULER),
        cluster.start(KWOK),
    )
    await cluster.add_nodes(1)


@contextlib.asynccontextmanager
async def _stand_before(cluster: Cluster) -> AsyncIterator[FaultProxy]:
    pki = cluster.design.path("pki")
    pair = Authority(pki).issue("fault-proxy", hosts=["127.0.0.1"])
    authority = pki / "ca.crt"
    async with FaultProxy(
        cluster.design.url, ca=authority, certificate=pair.certificate, key=pair.key
    ) as proxy:
        yield proxy


class Census:
    """Counts the ready pods of a workload over all members, by watches of their own; `lowest` since asked."""

    def __init__(self) -> None:
        self.lowest: int | None = None
        self._ready: set[tuple[str, str]] = set()

    @property
    def count(self) -> int:
        return len(self._ready)

    def begin(self) -> None:
        self.lowest = self.count

    def take(self, member: str, event: str, pod: Any) -> None:
        conditions = pod.get("status", {}).get("conditions", ())
        is_ready = any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)
        place = (member, pod["metadata"]["uid"])
        if is_ready and event != "DELETED" and "deletionTimestamp" not in pod["metadata"]:
            self._ready.add(place)
        else:
            self._ready.discard(place)
        if self.lowest is not None:
            self.lowest = min(self.lowest, self.count)


class Moment(NamedTuple):
    """An event: its number in the order of all members, which share one etcd, and when it came to us."""

    revision: int
    at: float


class PodTimes:
    """When pods of a workload came, and when they were gone, by member."""

    def __init__(self) -> None:
        self.came: defaultdict[str, list[Moment]] = defaultdict(list)
        self.gone: defaultdict[str, list[Moment]] = defaultdict(list)

    def take(self, member: str, event: str, pod: Any) -> None:
        times = {"ADDED": self.came, "DELETED": self.gone}.get(event)
        if times is not None:
            revision = int(pod["metadata"]["resourceVersion"])
            times[member].append(Moment(revision, asyncio.get_running_loop().time()))


class PodWatcher(Protocol):
    def take(self, member: str, event: str, pod: Any) -> None: ...


@contextlib.asynccontextmanager
async def counting(place: Place, app: str, names: Sequence[str] = LIVING) -> AsyncIterator[Census]:
    census = Census()
    async with watching(place, app, census, names):
        yield census


@contextlib.asynccontextmanager
async def watching(
    place: Place, app: str, watcher: PodWatcher, names: Sequence[str] = LIVING
) -> AsyncIterator[None]:
    """Show the watcher each event of the workload's pods in these members."""
    async with contextlib.AsyncExitStack() as stack:
        tasks = [
            asyncio.create_task(
                _watch(await stack.enter_async_context(_open(place.clusters[name])), name, app, watcher)
            )
            for name in names
        ]
        try:
            yield
        finally:
            for task in tasks:
                assert not task.done(), "a watch of pods has ended"
                task.cancel()
            await asyncio.wait(tasks)


def _open(cluster: Cluster) -> aiohttp.ClientSession:
    design = cluster.design
    trust = ssl.create_default_context(cafile=str(design.path("pki", "ca.crt")))
    return aiohttp.ClientSession(
        design.url,
        headers={"Authorization": f"Bearer {credentials.read_token(design, credentials.ADMIN)}"},
        connector=aiohttp.TCPConnector(ssl=trust),
        timeout=aiohttp.ClientTimeout(),
        read_bufsize=2**22,
    )


async def _watch(session: aiohttp.ClientSession, member: str, app: str, watcher: PodWatcher) -> None:
    path = f"/api/v1/namespaces/default/pods?watch=1&labelSelector=app%3D{app}"
    async with session.get(path) as answer:
        async for line in answer.content:
            event = json.loads(line)
            watcher.take(member, event["type"], event["object"])


async def until(holds: Callable[[], object], what: str, *, within: float = 60) -> None:
    try:
        async with asyncio.timeout(within):
            while not holds():
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(what) from None


async def ready_members(place: Partitioned, names: Sequence[str] = NAMES) -> None:
    for name in names:
        await eventually(
            place.hub,
            f"{CLUSTERS}/{name}",
            lambda one: (
                condition(one, "Ready").get("status") == "True"
                and one["status"].get("apiEnablements")
                and not one["spec"].get("taints")
            ),
        )


def condition(found: Any, name: str) -> dict[str, Any]:
    conditions = (found or {}).get("status", {}).get("conditions", ())
    return next((each for each in conditions if each["type"] == name), {})
