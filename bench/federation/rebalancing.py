"""One WorkloadRebalancer with many workloads: its duration, and the calls to the hub.

Members are API servers without pods: measured is the time from the trigger to the fresh scheduling.
Every workload has moved away from its preferred cluster before, and goes home.
"""

from bench.federation.bursting import select_all
from bench.federation.counting import count_work, rest
from bench.federation.following import Follower, Run
from bench.federation.watching import watching
from bench.reading.arms import Failed
from federation.objects.resources import REBALANCERS as RESOURCE
from localcluster.client import Object
from tests.live.support.hub_and_members import Place, deployment, eventually
from tests.live.support.hub_paths import BINDINGS, CLUSTERS, DEPLOYMENTS, POLICIES, REBALANCERS
from tests.live.support.rebalancing_members import rebalancer

_GROUPS = [
    {"affinityName": "primary", "clusterNames": ["member1"]},
    {"affinityName": "backup", "clusterNames": ["member2"]},
]
_TAINTS = [{"key": "lost", "effect": "NoSchedule"}]


async def rebalance(place: Place, part: str, *, size: int, rate: int, patience: float) -> Run:
    """Follow a rebalancer to its end, and until the hub has no more to do for it.

    Raises Failed where it has ended before all workloads were scheduled afresh.
    """
    names = [f"web-{number:05d}" for number in range(size)]
    await _lay_out(place, names, within=patience)
    follower = Follower(place, patience=patience)

    async with watching(place.cluster, RESOURCE) as seen:

        async def is_finished() -> object:
            return "all" in seen and seen["all"].status.finish_time

        await follower.begin()
        await place.hub.create(REBALANCERS, rebalancer("all", *names, makeBeforeBreak=False))
        await follower.reach("finished", is_finished)
    late = [each["metadata"]["name"] for each in await _list_bindings(place) if not _is_rescheduled(each)]
    if late:
        raise Failed(f"finished before {len(late)} of {size} were rescheduled, such as {late[0]}")
    await rest(place.hub, count_work)
    await follower.take("settled")
    return follower.finish(part, size=size, rate=rate)


async def _lay_out(place: Place, names: list[str], *, within: float) -> None:
    """Place all of them in the backup group, and wait until nothing happens any more."""
    cluster = f"{CLUSTERS}/member1"
    await place.hub.patch(cluster, {"spec": {"taints": _TAINTS}})
    await place.hub.create(POLICIES, select_all(clusterAffinities=_GROUPS))
    await place.hub.create_all(DEPLOYMENTS, (deployment(name, 1) for name in names))
    members = place.members["member2"]
    await eventually(members, DEPLOYMENTS, lambda found: len(found["items"]) == len(names), within=within)
    await place.hub.patch(cluster, {"spec": {"taints": []}})
    await rest(place.hub, count_work)


async def _list_bindings(place: Place) -> list[Object]:
    found: list[Object] = (await place.hub.get(BINDINGS))["items"]
    return found


def _is_rescheduled(binding: Object) -> bool:
    triggered = binding["spec"].get("rescheduleTriggeredAt")
    at_home = [each["name"] for each in binding["spec"]["clusters"]] == ["member1"]
    return at_home and bool(triggered) and binding["status"]["lastScheduledTime"] >= triggered
