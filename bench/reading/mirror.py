"""Reberth: caches pods and nodes of an API server, takes a snapshot, and prints the cost.

python -m bench.reading.mirror KUBECONFIG
"""

import asyncio
import json
import sys
import time

from bench.reading.processes import Heartbeat, peak, resident
from reberth.client.access import Access
from reberth.client.api import Api
from reberth.client.mirror import mirroring
from reberth.cluster import snapshot
from reberth.cluster.cache import Cache
from reberth.cluster.kinds import NODES, PODS

_PATIENCE = 120.0


async def measure(kubeconfig: str) -> dict[str, float]:
    """Count CPU and time from before the connection is made until the snapshot is taken."""
    before, cpu, started = resident(), time.process_time(), time.monotonic()
    cache = Cache(version=(1, 36))
    heartbeat = Heartbeat()
    async with Api(Access(kubeconfig)) as api, mirroring(api, cache, [PODS, NODES]) as mirror:
        beating = asyncio.create_task(heartbeat.run())
        async with asyncio.timeout(_PATIENCE):
            await mirror.synced()
        beating.cancel()
        synced = time.monotonic()
        taken = snapshot.take(cache, now=time.time())
        ended = time.monotonic()
        return {
            "pods": len(taken.pods.rows),
            "nodes": len(taken.nodes.names),
            "cpu": time.process_time() - cpu,
            "wall": ended - started,
            "snapshot": ended - synced,
            "block": heartbeat.longest,
            "busy": heartbeat.busiest,
            "before": before,
            "after": resident(),
            "peak": peak(),
        }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(sys.argv[1]))))  # noqa: T201 - its answer
