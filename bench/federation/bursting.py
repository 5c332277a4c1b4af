"""A burst: a policy exists, then all Deployments are created at once; it ends when all are propagated."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from bench.federation.following import Follower, Run
from bench.federation.watching import watching
from federation.api import SCHEDULED, ResourceBinding
from federation.objects.resources import BINDINGS
from federation.propagation.aggregation import FULLY_APPLIED
from localcluster.client import Object
from reberth.cluster.kinds import Resource, plain_kind
from reberth.records import PartialObject
from tests.live.support.hub_and_members import Place, deployment, eventually, federated, policy
from tests.live.support.hub_paths import CLUSTERS, DEPLOYMENTS, POLICIES

MEMBERS = ("member1", "member2", "member3")
CHOSEN = 2
_COPIES = Resource(plain_kind("Deployment", PartialObject, "apps"), "deployments", "v1", namespaced=True)
_TWO_OF_THREE = [{"spreadByField": "cluster", "minGroups": CHOSEN, "maxGroups": CHOSEN}]
_LEASE = {"namespace": "default", "duration": "30s", "renewDeadline": "20s"}
_NODES = 3


@asynccontextmanager
async def standing(folder: Path, *, rate: int) -> AsyncIterator[Place]:
    """A hub with three members, and a federation with a limit of requests per second to each of them."""
    api = {"requestsPerSecond": rate, "burst": rate * 3 // 2}
    async with federated("federation-bench", MEMBERS) as place:
        for cluster in place.clusters.values():
            await cluster.add_nodes(_NODES, cpu="2000", memory="8Ti", pods=100_000)
        await place.start(folder, api=api, sessions={"api": api}, lease=_LEASE)
        for name in MEMBERS:
            await eventually(place.hub, f"{CLUSTERS}/{name}", _is_ready, within=60)
        yield place


def select_all(**placement: object) -> Object:
    """Return a policy for every Deployment."""
    wanted = policy("all", **placement)
    wanted["spec"]["resourceSelectors"] = [{"apiVersion": "apps/v1", "kind": "Deployment"}]
    return wanted


async def burst(place: Place, part: str, *, size: int, rate: int, patience: float) -> Run:
    """Create Deployments and follow them to the members and back."""
    await place.hub.create(POLICIES, select_all(spreadConstraints=_TWO_OF_THREE))
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        bindings = await enter(watching(place.cluster, BINDINGS))
        members = [await enter(watching(place.clusters[name], _COPIES)) for name in MEMBERS]

        async def are(is_so: Callable[[ResourceBinding], bool]) -> bool:
            return sum(map(is_so, bindings.values())) >= size

        async def are_present() -> bool:
            return sum(map(len, members)) >= CHOSEN * size

        follower = Follower(
            place, patience=patience, count_told=lambda: sum(map(_is_told, bindings.values()))
        )
        await follower.begin()
        await _create(place, size)
        await follower.take("created")
        await follower.reach("scheduled", lambda: are(_is_scheduled))
        await follower.reach("present", are_present)
        await follower.reach("told", lambda: are(_is_told))
    return follower.finish(part, size=size, rate=rate)


async def _create(place: Place, size: int) -> None:
    await place.hub.create_all(DEPLOYMENTS, (deployment(f"web-{each:05d}", 1) for each in range(size)))


def _is_ready(cluster: Object | None) -> bool:
    status = (cluster or {}).get("status", {})
    room = status.get("resourceSummary", {}).get("allocatable")
    return bool(room and status.get("apiEnablements"))


def _is_scheduled(binding: ResourceBinding) -> bool:
    return len(binding.spec.clusters or ()) == CHOSEN and _holds(binding, SCHEDULED)


def _is_told(binding: ResourceBinding) -> bool:
    return _holds(binding, FULLY_APPLIED)


def _holds(binding: ResourceBinding, condition: str) -> bool:
    return any((each.type, each.status) == (condition, "True") for each in binding.status.conditions or ())
