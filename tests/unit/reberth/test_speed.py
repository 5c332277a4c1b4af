"""Limits on cost, relative to json.loads of the same bytes.

What is compared stands in one process and is measured in CPU time, so a busy machine does not matter much.
"""

import gc
import json
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from statistics import median
from typing import cast

import msgspec
import pytest

from reberth.cluster.cache import ADDED, Cache
from reberth.cluster.kinds import NODE, POD, REPLICA_SET
from reberth.cluster.snapshot import take
from reberth.protocol.page import PartialPage
from reberth.protocol.response import Reader
from reberth.records import Node, Pod, TemplatedOwner, WorkloadIdentity
from tests.support import builders
from tests.support.cluster.large_cluster import node_pages, pod_pages
from tests.support.cpu_cost import cost, few_collections

pytestmark = pytest.mark.speed

PIECE = 2**16
REPLICAS = 10
NODES = 100
PODS = 1000


class PodList(msgspec.Struct):
    items: tuple[Pod, ...]


class NodeList(msgspec.Struct):
    items: tuple[Node, ...]


def ratio(work: Callable[[], object], yardstick: Callable[[], object], *, rounds: int = 25) -> float:
    """CPU of the work over that of the yardstick, in turns, so that both meet the same machine.

    The median of the turns: the yardstick alone varies by half from turn to turn.
    """
    return median(cost(work) / cost(yardstick) for _ in range(rounds))


@pytest.fixture(scope="module")
def pages() -> list[bytes]:
    return list(pod_pages(PODS, replicas=REPLICAS, nodes=NODES))


def parse(pages: Iterable[bytes]) -> list[object]:
    """The yardstick; what it makes is kept to its end, as what is measured is."""
    return [json.loads(page) for page in pages]


def decode(pages: Iterable[bytes]) -> list[Pod]:
    decoder = msgspec.json.Decoder(PodList)
    return [pod for page in pages for pod in decoder.decode(page).items]


def fill(cache: Cache, pods: Iterable[Pod]) -> None:
    listing = cache.relist(POD)
    for pod in pods:
        listing.apply(ADDED, pod)
    listing.finish("9000000")


def test_the_pods_are_as_large_as_real_ones(pages: list[bytes]) -> None:
    assert 6_000 <= sum(map(len, pages)) / PODS <= 8_000


def test_decoding_pods_costs_a_fraction_of_parsing_them(pages: list[bytes]) -> None:
    with few_collections():
        assert ratio(lambda: decode(pages), lambda: parse(pages)) <= 0.15


def test_mirroring_decoded_pods_costs_a_fraction_of_parsing_them(pages: list[bytes]) -> None:
    pods = decode(pages)
    with few_collections():
        assert ratio(lambda: fill(Cache(version=(1, 36)), pods), lambda: parse(pages)) <= 0.27


READER = Reader(Pod)
"""A client makes one, too, for all pages and watches of a kind."""


def read_whole(pages: Iterable[bytes]) -> list[Pod]:
    """Pods of pages that have arrived as a whole."""
    return [pod for page in pages for pod in READER.read_page("list", page).objects]


def list_as_it_arrives(pages: Iterable[bytes]) -> Iterator[Pod]:
    """Pods of pages that come in the pieces in which a connection brings them."""
    for page in pages:
        arriving = PartialPage("list", READER)
        for start in range(0, len(page), PIECE):
            yield from cast("Iterator[Pod]", arriving.feed(page[start : start + PIECE]))
        yield from cast("Iterator[Pod]", arriving.end())


def test_a_page_that_is_read_while_it_arrives_costs_no_more_than_a_whole_one(pages: list[bytes]) -> None:
    assert len(list(list_as_it_arrives(pages))) == PODS
    with few_collections():
        assert ratio(lambda: list(list_as_it_arrives(pages)), lambda: read_whole(pages)) <= 1.1


def test_listing_pods_into_the_cache_costs_a_fraction_of_parsing_them(pages: list[bytes]) -> None:
    with few_collections():
        found = ratio(lambda: fill(Cache(version=(1, 36)), list_as_it_arrives(pages)), lambda: parse(pages))
    assert found <= 0.15 + 0.27  # what decoding and mirroring may cost


def test_a_snapshot_costs_little_for_each_pod(pages: list[bytes]) -> None:
    cache, pods = Cache(version=(1, 36)), 10_000
    fill(cache, decode(pod_pages(pods, replicas=REPLICAS, nodes=NODES)))
    nodes = [node for page in node_pages(NODES) for node in msgspec.json.decode(page, type=NodeList).items]
    cache.replace(NODE, nodes, "9000000")
    with few_collections():
        of_a_pod = ratio(lambda: take(cache, now=0.0), lambda: parse(pages)) * PODS / pods
    assert of_a_pod <= 0.01


def test_a_replica_takes_less_than_a_kilobyte() -> None:
    cache, pods = Cache(version=(1, 36)), 2_000
    tracemalloc.start()
    try:
        fill(cache, decode(pod_pages(pods, replicas=REPLICAS, nodes=NODES)))
        gc.collect()
        assert len(cache.of(POD)) == pods
        assert tracemalloc.get_traced_memory()[0] / pods <= 1024
    finally:
        tracemalloc.stop()


def fill_namespace(replica_sets: int) -> Cache:
    """One namespace: Deployments of ten ReplicaSets, each with one pod."""
    cache, ids = Cache(version=(1, 36)), range(replica_sets)
    owners = [builders.replica_set(f"web-{number}") for number in ids]
    owned = [builders.owner("ReplicaSet", f"web-{number}", uid=f"rs-{number}") for number in ids]
    pods = [builders.pod(f"web-{number}", node="n1", owned_by=owned[number]) for number in ids]
    for number in ids:
        above = builders.owner("Deployment", f"web-{number // REPLICAS}", uid=f"of-{number // REPLICAS}")
        owners[number]["metadata"] |= {"uid": f"rs-{number}", "ownerReferences": [above]}
        pods[number]["metadata"] |= {"uid": f"pod-{number}"}
    for kind, record, listed in ((REPLICA_SET, TemplatedOwner, owners), (POD, Pod, pods)):
        for number in ids:
            listed[number]["metadata"]["resourceVersion"] = str(number + 1)
        cache.replace(kind, [builders.as_record(record, each) for each in listed], str(replica_sets))
    return cache


def test_the_pods_of_a_deployment_are_counted_at_the_same_cost_among_twice_as_many() -> None:
    deployments = [WorkloadIdentity("apps/v1", "Deployment", f"web-{n}", f"of-{n}") for n in range(100)]

    def count(cache: Cache) -> None:
        """Count a thousand times."""
        for each in deployments * 10:
            assert cache.count_workload("default", each) == REPLICAS

    few, many = fill_namespace(1_000), fill_namespace(2_000)
    for cache in (few, many):
        count(cache)  # the first question groups the ReplicaSets of the namespace
    assert ratio(lambda: count(many), lambda: count(few)) <= 1.3
