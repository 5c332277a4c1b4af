"""Of a large object a part is held, and of all large ones of a namespace no more than fits."""

import gc
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import msgspec
import pytest
from msgspec.structs import replace

from reberth.cluster.cache import ADDED, DELETED, Cache
from reberth.cluster.kinds import BUDGET, HISTORY, NODE, POD
from reberth.cluster.object_size import LARGE, LARGEST, NamespaceSizes, shorten, weigh
from reberth.cluster.rows import PodRow
from reberth.cluster.templates import pack
from reberth.records import (
    Condition,
    EvictionHistory,
    HistoryStatus,
    Node,
    ObjectMeta,
    Pod,
    PodDisruptionBudget,
)
from tests.support.builders import as_record, node
from tests.support.large_objects import LARGE_PODS, MANY, TENANT, large_budget

versions = count(10**6)
ROOM = 2**23  # large objects enough to fill more are made in a second
every_largeness = pytest.mark.parametrize("largeness", LARGE_PODS)


@pytest.fixture(autouse=True)
def _little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reberth.cluster.object_size.MOST_IN_NAMESPACE", ROOM)


def make_cache() -> Cache:
    return Cache(version=(1, 36))


def put(cache: Cache, largeness: str, number: int, *, namespace: str = TENANT) -> PodRow:
    built = LARGE_PODS[largeness](number)
    built["metadata"] |= {"namespace": namespace, "resourceVersion": str(next(versions))}
    cache.apply(POD, ADDED, as_record(Pod, built))
    row = cache.of(POD).by_uid(f"pod-{number}")
    assert row is not None
    return row


@contextmanager
def traced() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()


def held() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@every_largeness
def test_a_pod_takes_no_more_than_a_quarter_of_a_megabyte_and_keeps_its_place(largeness: str) -> None:
    cache = make_cache()
    with traced():
        before = held()
        rows = [put(cache, largeness, number) for number in range(8)]
        assert (held() - before) / len(rows) <= LARGEST * 1.25
    for number, row in enumerate(rows):
        cpu = MANY * 1000 if largeness == "containers" else 0 if largeness == "images" else 1000
        assert row.template.main == pack(cpu, 0, 0, 1)
        assert row.template.controller is not None
        if largeness != "owner":
            assert row.template.controller.name == f"rs-{number}"


def test_a_large_pod_is_told_of_as_often_as_it_is_read() -> None:
    cache, told = make_cache(), []
    cache.on_cut = lambda kind, meta: told.append((kind, meta.namespace, meta.name))
    assert put(cache, "labels", 1).template.is_cut
    assert put(cache, "labels", 1).template.is_cut
    assert not put(cache, "annotation", 2).template.is_cut
    assert told == [("Pod", TENANT, "p-1")] * 2


def test_the_large_pods_of_a_namespace_share_what_it_may_take() -> None:
    cache, fit = make_cache(), ROOM // LARGEST
    with traced():
        before = held()
        rows = [put(cache, "tolerations", number) for number in range(fit + 20)]
        assert held() - before <= ROOM * 1.25
    sizes = [weigh(msgspec.json.encode(row.template.pod)) for row in rows]
    assert max(sizes) <= LARGEST
    assert max(sizes[fit + 10 :]) <= LARGE
    elsewhere = put(cache, "tolerations", 10**6, namespace="other")
    assert LARGE < weigh(msgspec.json.encode(elsewhere.template.pod)) <= LARGEST


def test_what_is_gone_makes_room() -> None:
    cache, most = make_cache(), ROOM // LARGEST + 20
    for number in range(most):
        put(cache, "tolerations", number)
    for number in range(most):
        gone = ObjectMeta(f"p-{number}", TENANT, f"pod-{number}", str(next(versions)))
        cache.apply(POD, DELETED, Pod(gone))
    gc.collect()
    row = put(cache, "tolerations", most)
    assert weigh(msgspec.json.encode(row.template.pod)) > LARGE


def test_replicas_of_a_large_pod_count_once() -> None:
    cache = make_cache()
    for number in range(400):
        built = LARGE_PODS["tolerations"](0)
        built["metadata"] |= {
            "name": f"p-{number}",
            "uid": f"pod-{number}",
            "resourceVersion": str(next(versions)),
        }
        cache.apply(POD, ADDED, as_record(Pod, built))
    rows = cache.of(POD).rows()
    assert len({id(row.template) for row in rows}) == 1
    assert weigh(msgspec.json.encode(rows.all[0].template.pod)) > LARGE


def put_budget(cache: Cache, number: int) -> int:
    record = as_record(PodDisruptionBudget, large_budget(number))
    version = str(next(versions))
    cache.apply(BUDGET, ADDED, replace(record, metadata=replace(record.metadata, resource_version=version)))
    kept = cache.of(BUDGET).by_uid(f"pdb-{number}")
    assert kept is not None
    assert kept.spec.max_unavailable == 1
    return weigh(msgspec.json.encode(kept))


def test_objects_of_other_kinds_are_cut_too_and_make_room_when_they_go() -> None:
    cache, told = make_cache(), []
    cache.on_cut = lambda kind, meta: told.append((kind, meta.name))
    sizes = [put_budget(cache, number) for number in range(ROOM // LARGEST + 20)]
    assert max(sizes) <= LARGEST
    assert sizes[-1] <= LARGE
    assert told[-1] == ("PodDisruptionBudget", f"pdb-{len(sizes) - 1}")
    for number in range(30):
        gone = ObjectMeta(f"pdb-{number}", TENANT, f"pdb-{number}", str(next(versions)))
        cache.apply(BUDGET, DELETED, PodDisruptionBudget(gone))
    assert put_budget(cache, 10**6) > LARGE
    cache.replace(BUDGET, [], str(next(versions)))
    assert cache._sizes._sums == {}


def test_a_node_is_cut_and_offers_what_it_offers() -> None:
    cache, told = make_cache(), []
    cache.on_cut = lambda kind, meta: told.append((kind, meta.name))
    built = node("n1", cpu="8", memory="32Gi")
    built["metadata"] |= {"uid": "n1", "resourceVersion": "5"}
    built["status"]["images"] = [
        {"names": [f"{each}".ljust(250, "i")], "sizeBytes": 1} for each in range(5_000)
    ]
    cache.apply(NODE, ADDED, as_record(Node, built))
    row = cache.of(NODE).by_uid("n1")
    assert row is not None
    assert row.main[:8] == pack(8000)
    assert weigh(msgspec.json.encode(row.record)) <= LARGEST
    assert told == [("Node", "n1")]


def test_of_the_conditions_of_a_history_only_ours_is_held() -> None:
    cache = make_cache()
    conditions = [Condition(f"t{each}", "True", "r", "m" * 32_768) for each in range(16)]
    own = Condition("GivenUp", "True", "FruitlessMoves", "m" * 32_768)
    history = EvictionHistory(
        ObjectMeta("h", TENANT, "h", "7"), status=HistoryStatus(conditions=(*conditions, own))
    )
    cache.apply(HISTORY, ADDED, history)
    (kept,) = cache.of(HISTORY).rows()
    assert kept.status.conditions is not None
    assert [(each.type, len(each.message or "")) for each in kept.status.conditions] == [("GivenUp", 1024)]


@every_largeness
def test_the_last_cut_is_small(largeness: str) -> None:
    pod = as_record(Pod, LARGE_PODS[largeness](1))
    assert weigh(msgspec.json.encode(shorten(pod, 0))) <= LARGE


def test_small_objects_are_not_counted() -> None:
    sizes = NamespaceSizes()
    sizes.put("a", "x", LARGE)
    assert sizes.limit("a", "y", LARGE + 1) == LARGEST
    sizes.put("a", "x", ROOM)
    assert sizes.limit("a", "y", LARGE + 1) == LARGE
    assert sizes.limit("a", "x", LARGEST) == LARGEST
    sizes.put("a", "x", 1)
    assert sizes.limit("a", "y", LARGE + 1) == LARGEST
