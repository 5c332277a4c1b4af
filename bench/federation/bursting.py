"""A burst: a policy is there, then all Deployments at once; it is over when all are where they belong."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench.extender.bursting import read_cpu, read_resident
from bench.federation.counting import Calls, count_calls
from bench.reading.arms import Failed
from localcluster.client import Object
from tests.live.federating import Place, deployment, eventually, federated, policy

MEMBERS = ("member1", "member2", "member3")
CHOSEN = 2
_DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
_POLICIES = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies"
_BINDINGS = "/apis/work.karmada.io/v1alpha2/resourcebindings?resourceVersion=0"
_CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"
_TWO_OF_THREE = [{"spreadByField": "cluster", "minGroups": CHOSEN, "maxGroups": CHOSEN}]
_LEASE = {"namespace": "default", "duration": "30s", "renewDeadline": "20s"}
_NODES, _PATIENCE, _BETWEEN_LOOKS = 3, 900.0, 0.2


class Moment(NamedTuple):
    """Seconds after the first Deployment was created, and the hub's calls until then."""

    seconds: float
    calls: Calls


class Burst(NamedTuple):
    """When all were created, scheduled, present in their members, and told to be so on the hub."""

    created: Moment
    scheduled: Moment
    present: Moment
    told: Moment
    cpu: float
    resident: int


@asynccontextmanager
async def standing(folder: Path, *, rate: int) -> AsyncIterator[Place]:
    """A hub with three members, and a federation that may send so many requests a second to each of them."""
    api = {"requestsPerSecond": rate, "burst": rate * 3 // 2}
    async with federated("federation-bench", MEMBERS) as place:
        for cluster in place.clusters.values():
            await cluster.add_nodes(_NODES, cpu="2000", memory="8Ti", pods=100_000)
        await place.start(folder, api=api, sessions={"api": api}, lease=_LEASE)
        for name in MEMBERS:
            await eventually(place.hub, f"{_CLUSTERS}/{name}", _is_ready)
        yield place


async def burst(place: Place, *, deployments: int) -> Burst:
    """Create so many Deployments and follow them to the members and back."""
    if place.process is None:
        raise Failed("the federation does not run")
    wanted = policy("all", spreadConstraints=_TWO_OF_THREE)
    wanted["spec"]["resourceSelectors"] = [{"apiVersion": "apps/v1", "kind": "Deployment"}]
    await place.hub.create(_POLICIES, wanted)
    used, before = read_cpu(place.process.pid), await count_calls(place.hub)
    began = time.monotonic()
    creating = asyncio.create_task(_create(place, deployments))

    async def reach(is_so: Callable[[], Any]) -> Moment:
        return await _reach(place, is_so, began=began, before=before)

    async def are_present() -> bool:
        return await _count_present(place) >= CHOSEN * deployments

    async def are(is_so: Callable[[Object], bool]) -> bool:
        return sum(map(is_so, (await place.hub.get(_BINDINGS))["items"])) >= deployments

    async def are_created() -> bool:
        return creating.done()

    created = await reach(are_created)
    scheduled = await reach(lambda: are(_is_scheduled))
    present = await reach(are_present)
    told = await reach(lambda: are(_is_told))
    await creating
    cpu = read_cpu(place.process.pid) - used
    return Burst(created, scheduled, present, told, cpu, read_resident(place.process.pid))


async def _create(place: Place, deployments: int) -> None:
    await place.hub.create_all(
        _DEPLOYMENTS, (deployment(f"web-{each:05d}", 1) for each in range(deployments))
    )


async def _reach(place: Place, is_so: Callable[[], Any], *, began: float, before: Counter[str]) -> Moment:
    async with asyncio.timeout(_PATIENCE):
        while not await is_so():
            if place.process is None or place.process.returncode is not None:
                raise Failed("the federation has ended")
            await asyncio.sleep(_BETWEEN_LOOKS)
    seconds = time.monotonic() - began
    calls = await count_calls(place.hub)
    return Moment(seconds, calls - before)


async def _count_present(place: Place) -> int:
    found = await asyncio.gather(
        *(client.get(f"{_DEPLOYMENTS}?resourceVersion=0") for client in place.members.values())
    )
    return sum(len(each["items"]) for each in found)


def _is_ready(cluster: Object) -> bool:
    status = cluster.get("status", {})
    room = status.get("resourceSummary", {}).get("allocatable")
    return bool(room and status.get("apiEnablements"))


def _is_scheduled(binding: Object) -> bool:
    return len(binding["spec"].get("clusters", ())) == CHOSEN and _holds(binding, "Scheduled")


def _is_told(binding: Object) -> bool:
    return _holds(binding, "FullyApplied")


def _holds(binding: Object, condition: str) -> bool:
    conditions = binding.get("status", {}).get("conditions", ())
    return any(each["type"] == condition and each["status"] == "True" for each in conditions)
