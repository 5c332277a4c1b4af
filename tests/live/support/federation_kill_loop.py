"""Kill the federation at one of its writes, and let the next process take over.

The fault proxy holds one write, to the hub or to a member, before it reaches the API server or after it took
effect, and the process is killed while it waits. Before the next process starts, the capacity of the clusters
changes.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count, cycle, product
from pathlib import Path
from signal import SIGKILL
from typing import Any, NamedTuple, Protocol

import pytest
import pytest_asyncio

from localcluster import credentials
from localcluster.client import Client, Object
from localcluster.faults import Delay, FaultProxy, Match, Rule, Stall, nth
from tests.live.support.fault_client import standing_before
from tests.live.support.hub_and_members import MEMBERS, Place, eventually, federated, reach
from tests.live.support.hub_paths import BINDINGS, CLUSTERS, DEPLOYMENTS
from tests.support.resumable_rounds import Proof

WITHIN = 90.0
ROUNDS = 20
_NODE = "/api/v1/nodes/node-00000"
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/reberth-federation"
_PATIENT = {"namespace": "default", "duration": "60s", "renewDeadline": "40s", "retryEvery": "500ms"}


class Write(NamedTuple):
    """The nth write of this kind that a life needs, of objects whose path ends so."""

    client: str
    verb: str
    resource: str
    number: int = 1
    of: str = ""


@dataclass
class Stage:
    """The place, with a fault proxy before the hub and before the first of its members."""

    place: Place
    proxies: dict[str, FaultProxy]
    folder: Path
    settings: dict[str, Any]
    rooms: Iterator[str] = field(default_factory=lambda: cycle(("192", "64")))
    seen: dict[str, Object] = field(default_factory=dict)

    async def start(self) -> None:
        await self.place.start(
            self.folder, lease=_PATIENT, execution={"lookWhetherGoneEvery": "300ms"}, **self.settings
        )

    async def kill_at(self, rule: Rule, client: str) -> None:
        """Kill the process at its write, change the world, and begin anew."""
        await self.proxies[client].until(lambda: rule.acted == 1)
        await self.place.stop(SIGKILL)
        self.seen = await self.look()
        await self.place.members[MEMBERS[1]].patch(f"{_NODE}/status", {"status": _room(next(self.rooms))})
        await self.place.hub.delete(_LEASE)

    async def look(self) -> dict[str, Object]:
        """What is decided, and which copies are there: name by name."""
        found = {each["metadata"]["name"]: each for each in (await self.place.hub.get(BINDINGS))["items"]}
        for member, client in self.place.members.items():
            for each in (await client.get(DEPLOYMENTS))["items"]:
                found[f"{member}/{each['metadata']['name']}"] = each
        return found


def staging(prefix: str, **settings: Any) -> Any:
    """Return the fixture `stage` of a module."""

    @pytest_asyncio.fixture(scope="module", loop_scope="module")
    async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
        async with _staged(prefix, tmp_path_factory.mktemp("federation"), **settings) as made:
            yield made

    return stage


@asynccontextmanager
async def _staged(prefix: str, folder: Path, **settings: Any) -> AsyncIterator[Stage]:
    """A hub and two members without anything that works on them but the federation."""
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(federated(prefix))
        for cluster in place.clusters.values():
            await cluster.add_nodes(1, cpu="64", pods=10_000, memory="1Ti")
        hub = await stack.enter_async_context(standing_before(place.cluster))
        token = {"token": credentials.read_token(place.cluster.design)}
        server = await hub.open("hub")
        place.account = credentials.write_kubeconfig(
            place.cluster.design, "admin", token, server=server, name="hub"
        )
        member = await stack.enter_async_context(standing_before(place.clusters[MEMBERS[0]]))
        await reach(place.hub, MEMBERS[0], await member.open("member"))
        made = Stage(place, {"hub": hub, "member": member}, folder, settings)
        await made.start()
        for name in MEMBERS:
            await eventually(place.hub, f"{CLUSTERS}/{name}", _is_known, within=WITHIN)
        yield made


Life = Callable[[Stage], Coroutine[Any, Any, None]]


class NamedLife(Protocol):
    """The life of the workload of this name."""

    def __call__(self, stage: Stage, /, name: str) -> Coroutine[Any, Any, None]: ...


def lives(prefix: str, live: NamedLife) -> Callable[[], Life]:
    """Return what makes one life after the other, each of a workload with a name of its own."""
    numbers = count()
    return lambda: partial(live, name=f"{prefix}-{next(numbers)}")


def list_points(writes: Iterable[Write]) -> list[tuple[Write, str]]:
    return list(product(writes, ("before", "after")))


async def kill_and_go_on(stage: Stage, write: Write, when: str, live: Life) -> None:
    """Kill it at this write of a life; the next one lives the rest of it."""
    proxy = stage.proxies[write.client]
    stage.seen = {}
    match = Match(verb=write.verb, resource=write.resource, path=f"*{write.of}")
    hold = Delay(600) if when == "before" else Stall()
    async with proxy.fault(match, hold, nth(write.number)) as rule:
        killing = asyncio.create_task(stage.kill_at(rule, write.client))
        living = asyncio.create_task(live(stage))
        await asyncio.wait((killing, living), return_when=asyncio.FIRST_COMPLETED)
        if living.done():  # the write was not needed, or the life is over before its time
            killing.cancel()
            await living
            pytest.fail(f"{write} did not happen")
        await killing
    await stage.start()
    await living


async def prove(name: str, stage: Stage, write: Write, when: str, make_life: Callable[[], Life]) -> None:
    """Kill at a point as often as has not been passed yet, in a life of its own each time."""
    proof = Proof("-".join([name, *map(str, write), when]).replace("/", "-"))
    for number in proof.remaining(range(ROUNDS)):
        await kill_and_go_on(stage, write, when, make_life())
        proof.note([number])


async def play(client: Client, name: str, *, ready: int | None = None) -> None:
    """Do what controllers and kubelets do; by default all pods are ready."""
    path = f"{DEPLOYMENTS}/{name}"
    found = await client.get(path)
    replicas = found["spec"]["replicas"]
    counts = ("updatedReplicas", "readyReplicas", "availableReplicas")
    status = dict.fromkeys(counts, replicas if ready is None else ready) | {"replicas": replicas}
    status["observedGeneration"] = found["metadata"]["generation"]
    await client.patch(f"{path}/status", {"status": status})


def is_gone(found: Any) -> bool:
    return found is None


def _is_known(cluster: Any) -> bool:
    status = cluster.get("status", {})
    room = status.get("resourceSummary", {}).get("allocatable")
    return bool(room and status.get("apiEnablements"))


def _room(cpu: str) -> Object:
    return {"allocatable": {"cpu": cpu}, "capacity": {"cpu": cpu}}
