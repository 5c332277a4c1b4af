"""Reberth on the same API server: cache its objects, and forecast the same candidates.

python -m bench.landing.refusing KUBECONFIG
"""

import asyncio
import gc
import json
import sys
import time
from statistics import median

from bench.landing import workloads
from bench.landing.candidates import CHOOSY, LARGE
from bench.reading.arms import Failed
from reberth.client.access import Access
from reberth.client.api import Api
from reberth.client.mirror import mirroring
from reberth.cluster import snapshot
from reberth.cluster.cache import Cache
from reberth.cluster.kinds import ALL_RESOURCES
from reberth.cluster.snapshot import Snapshot
from reberth.forecast.forecast import Forecast, forecast_replacement
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.profile import default_scheduler
from reberth.forecast.state.view import view_snapshot

_PATIENCE = 300.0
_ROUNDS = 3
_SCHEDULER = default_scheduler(workloads.VERSION)


async def measure(kubeconfig: str) -> dict[str, float]:
    taken = await _take(kubeconfig)
    gc.collect()
    gc.freeze()
    rounds = [_go_round(taken) for _ in range(_ROUNDS)]
    return {part: median(each[part] for each in rounds) for part in rounds[0]}


async def _take(kubeconfig: str) -> Snapshot:
    """Cache all kinds that a forecast reads, as far as the cluster has them."""
    cache = Cache(version=workloads.VERSION)
    core = [each for each in ALL_RESOURCES if not each.kind.group.endswith("reberth.dev")]
    async with Api(Access(kubeconfig)) as api, mirroring(api, cache, core) as mirror:
        async with asyncio.timeout(_PATIENCE):
            await mirror.synced()
        return snapshot.take(cache, now=time.time())


def _go_round(taken: Snapshot) -> dict[str, float]:
    """Give seconds of CPU for one candidate of each kind with a fresh cache: the first one pays for all."""
    figures = {}
    for sort in (LARGE, CHOOSY):
        places = taken.pods.within(sort)
        view, used = view_snapshot(SnapshotFacts(taken, workloads.VERSION)), time.process_time()
        for place in places:
            found = forecast_replacement(place, view, _SCHEDULER)
            if not isinstance(found, Forecast) or len(found.feasible):
                raise Failed(f"{sort}/{taken.pods.rows[place].name} was to fit nowhere")
        figures[sort] = (time.process_time() - used) / len(places)
    return figures


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(sys.argv[1]))))  # noqa: T201 - its answer
