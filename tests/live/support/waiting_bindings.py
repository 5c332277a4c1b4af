"""Bindings that wait for room while their members' room changes, and what the hub is asked for meanwhile."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from bench.federation.counting import Calls, count_all, count_calls, rest
from localcluster.client import Client
from tests.live.support.failing_members import Partitioned, condition
from tests.live.support.hub_and_members import deployment, eventually, policy
from tests.live.support.hub_paths import BINDINGS, CLUSTERS, DEPLOYMENTS, POLICIES
from tests.live.support.rebalancing_members import AGGREGATED

_NODE = "/api/v1/nodes/node-00000"
_LITTLE = "250m"
_REPLICAS = 50
"""Of 100m each: more than there ever is room for."""


async def make_waiting(place: Partitioned, count: int) -> None:
    """Create so many Deployments for which no member has room, and wait until each is told so."""
    for name, client in place.members.items():
        await _set_room(client, _LITTLE)
        await eventually(place.hub, f"{CLUSTERS}/{name}", _has_little)
    wanted = policy("all", replicaScheduling=AGGREGATED)
    wanted["spec"]["resourceSelectors"] = [{"apiVersion": "apps/v1", "kind": "Deployment"}]
    await place.hub.create(POLICIES, wanted)
    made = (deployment(f"waits-{number:04d}", _REPLICAS) for number in range(count))
    await place.hub.create_all(DEPLOYMENTS, made)
    await place.hub.wait(
        BINDINGS,
        lambda found: sum(map(_waits, found["items"])) == count,
        seconds=60 + count / 5,
        every=0.2 + count / 300,
    )
    await rest(place.hub, lambda calls: count_all(_leave_out_reports(calls)))


def _has_little(cluster: Any) -> bool:
    return bool(cluster["status"].get("resourceSummary", {}).get("allocatable", {}).get("cpu") == _LITTLE)


def _waits(binding: Any) -> bool:
    return condition(binding, "Scheduled").get("reason") == "Unschedulable"


async def count_writes(place: Partitioned, *, seconds: float) -> tuple[Counter[str], int]:
    """Change the room of all members every second; what the hub is asked for, and how often members report.

    Each report is a write on a Cluster, however many wait.
    """
    before, end = await count_calls(place.hub), time.monotonic() + seconds
    for room in _draw_rooms():
        await asyncio.gather(*(_set_room(client, room) for client in place.members.values()))
        await asyncio.sleep(min(1.0, max(0.0, end - time.monotonic())))
        if time.monotonic() >= end:
            break
    calls = await count_calls(place.hub) - before
    writes = _leave_out_reports(calls)
    return writes, count_all(calls) - count_all(writes)


def _leave_out_reports(calls: Calls) -> Counter[str]:
    return Counter({what: count for what, count in calls.items() if not what.endswith("clusters/status")})


def _draw_rooms() -> Iterator[str]:
    chance, last = random.Random(20), 0
    while True:
        if (room := chance.randint(300, 900)) != last:
            yield f"{room}m"
            last = room


async def _set_room(member: Client, cpu: str) -> None:
    room = {"cpu": cpu}
    await member.patch(f"{_NODE}/status", {"status": {"allocatable": room, "capacity": room}})
