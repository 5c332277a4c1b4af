"""One rebalancer over many workloads: how long it takes, and what it costs the hub.

    python -m bench.federation.rebalancing --workloads 300 --rate 40

Members are API servers without pods, so what is counted is the way from the wish to the fresh scheduling.
Every workload has moved away from its preferred cluster before, and goes home.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.federation.bursting import standing
from bench.federation.counting import Calls, count_calls
from tests.live.federating import Place, deployment, eventually, policy
from tests.live.hub_paths import BINDINGS, DEPLOYMENTS, POLICIES, REBALANCERS
from tests.live.rebalancing import rebalancer

_GROUPS = [
    {"affinityName": "primary", "clusterNames": ["member1"]},
    {"affinityName": "backup", "clusterNames": ["member2"]},
]
_PATIENCE = 600.0


async def measure(*, workloads: int, rate: int, moves: bool) -> dict[str, Any]:
    """Give the seconds until it has finished and all bindings are rescheduled, and the hub's calls."""
    with tempfile.TemporaryDirectory() as folder:
        async with standing(Path(folder), rate=rate) as place:
            names = [f"web-{number:05d}" for number in range(workloads)]
            await _lay_out(place, names, moves=moves)
            before, began = await count_calls(place.hub), time.monotonic()
            await place.hub.create(REBALANCERS, rebalancer("all", *names, makeBeforeBreak=False))
            rescheduled = asyncio.create_task(_reschedule(place, names, began))
            await _reach_finish(place)
            finished = time.monotonic() - began
            return {
                "workloads": workloads,
                "rate": rate,
                "moves": moves,
                "finished": round(finished, 2),
                "rescheduled": round(await rescheduled, 2),
                "calls": dict(sorted((await _settle(place, before)).items())),
            }


async def _lay_out(place: Place, names: list[str], *, moves: bool) -> None:
    """Place all of them in the backup group, and wait until nothing happens any more."""
    wanted = policy("all", clusterAffinities=_GROUPS if moves else _GROUPS[1:])
    wanted["spec"]["resourceSelectors"] = [{"apiVersion": "apps/v1", "kind": "Deployment"}]
    cluster = "/apis/cluster.karmada.io/v1alpha1/clusters/member1"
    taints = [{"key": "lost", "effect": "NoSchedule"}]
    await place.hub.patch(cluster, {"spec": {"taints": taints}})
    await place.hub.create(POLICIES, wanted)
    await place.hub.create_all(DEPLOYMENTS, (deployment(name, 1) for name in names))
    members = place.members["member2"]
    await eventually(members, DEPLOYMENTS, lambda found: len(found["items"]) == len(names), within=_PATIENCE)
    await place.hub.patch(cluster, {"spec": {"taints": []}})
    await _settle(place, await count_calls(place.hub))


async def _settle(place: Place, before: Calls) -> Calls:
    """Wait until the hub has had no more to do for some seconds; give what it had to do."""
    last: Calls | None = None
    while last is None or last != (now := await count_calls(place.hub)):
        last = await count_calls(place.hub) if last is None else now
        await asyncio.sleep(3)
    return last - before


async def _reach_finish(place: Place) -> None:
    path = f"{REBALANCERS}/all"
    await eventually(place.hub, path, lambda one: one.get("status", {}).get("finishTime"), within=_PATIENCE)


async def _reschedule(place: Place, names: list[str], began: float) -> float:
    def is_done(found: Any) -> bool:  # noqa: ANN401 - JSON of the hub
        done = sum(
            one["status"].get("lastScheduledTime", "") >= one["spec"].get("rescheduleTriggeredAt", "~")
            for one in found["items"]
        )
        return int(done) == len(names)

    await eventually(place.hub, f"{BINDINGS}?resourceVersion=0", is_done, within=_PATIENCE)
    return time.monotonic() - began


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--workloads", type=int, default=300)
    parser.add_argument("--rate", type=int, default=40)
    parser.add_argument("--stay", action="store_true", help="nothing has a better place to go to")
    given = parser.parse_args()
    found = asyncio.run(measure(workloads=given.workloads, rate=given.rate, moves=not given.stay))
    sys.stdout.write(f"{json.dumps(found)}\n")
