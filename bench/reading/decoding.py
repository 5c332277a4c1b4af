"""Reberth without a server: decodes a generated cluster, takes a snapshot, and prints the cost.

    python -m bench.reading.decoding PODS NODES [--trace]

Pages are made on the fly and their making is not counted. With --trace it counts the bytes that the pods
keep instead; that is exact, and far too slow for anything else.
"""

import argparse
import gc
import json
import time
import tracemalloc
from collections.abc import Callable, Iterable
from typing import Any

from bench.reading.populating import REPLICAS
from bench.reading.processes import peak, resident
from reberth.cluster import snapshot
from reberth.cluster.cache import ADDED, Cache
from reberth.cluster.kinds import NODES, PODS, Resource
from reberth.protocol.response import Reader
from tests.support.cluster import large_cluster


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("pods", type=int)
    parser.add_argument("nodes", type=int)
    parser.add_argument("--trace", action="store_true")
    arguments = parser.parse_args()
    measure: Callable[[int, int], dict[str, float]] = trace if arguments.trace else read
    print(json.dumps(measure(arguments.pods, arguments.nodes)))  # noqa: T201 - its answer


def read(pods: int, nodes: int) -> dict[str, float]:
    before = resident()
    cache = Cache(version=(1, 36))
    fill(cache, NODES, large_cluster.node_pages(nodes))
    with_nodes = resident()
    cpu = fill(cache, PODS, pages(pods, nodes=nodes))
    with_pods = resident()
    gc.collect()
    gc.freeze()  # as the daemons do once all is listed
    started, used = time.monotonic(), time.process_time()
    taken = snapshot.take(cache, now=time.time())
    ended = time.monotonic()
    return {
        "pods": len(taken.pods.rows),
        "nodes": len(taken.nodes.names),
        "cpu": cpu,
        "snapshot": ended - started,
        "snapshot_cpu": time.process_time() - used,
        "kept": with_pods - with_nodes,
        "before": before,
        "after": resident(),
        "peak": peak(),
    }


def trace(pods: int, nodes: int) -> dict[str, float]:
    cache = Cache(version=(1, 36))
    tracemalloc.start()
    fill(cache, PODS, pages(pods, nodes=nodes))
    return {"pods": pods, "kept": tracemalloc.get_traced_memory()[0]}


def pages(pods: int, *, nodes: int) -> Iterable[bytes]:
    return large_cluster.pod_pages(pods, replicas=REPLICAS, nodes=nodes)


def fill(cache: Cache, resource: Resource[Any], made: Iterable[bytes]) -> float:
    """Take pages as a mirror does; the seconds of CPU that it took, without those of making the pages."""
    reader, listing, seconds = Reader(resource.record), cache.relist(resource.kind), 0.0
    for body in made:
        started = time.process_time()
        page = reader.read_page("list", body)
        for each in page.found:
            listing.apply(ADDED, each)
        version = page.resource_version
        seconds += time.process_time() - started
    listing.finish(version)
    return seconds


if __name__ == "__main__":
    main()
