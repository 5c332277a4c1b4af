import math
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reberth.cluster.cache import ADDED, DELETED, MODIFIED, Cache
from reberth.cluster.columns import read_pods
from reberth.cluster.kinds import CLAIM, NAMESPACE, NODE, POD, SERVICE
from reberth.cluster.pods.requests import count_bound_requests
from reberth.cluster.rows import PHASES
from reberth.cluster.snapshot import Snapshot, build, take
from reberth.cluster.templates import RESOURCES, Template
from reberth.records import DatedMeta, Namespace, Node, ObjectMeta, Pod, Service
from reberth.selectors import EVERYTHING, NOTHING, Selector, parse_selector
from reberth.values.timestamp import parse_time
from tests.support.builders import Object, container, node, owner, pod
from tests.support.cluster.strategies import (
    NAMESPACES,
    NODE_NAMES,
    TIMES,
    node_record,
    nodes,
    pod_record,
    pods,
)

KUBERNETES = (1, 36)
NOW = 1_800_000_000.0

all_nodes = st.lists(nodes(), unique_by=lambda built: built["metadata"]["name"])
all_pods = st.lists(
    pods(), max_size=8, unique_by=lambda built: (built["metadata"]["namespace"], built["metadata"]["name"])
)


def cache_of(nodes: Iterable[Node] = (), pods: Iterable[Pod] = ()) -> Cache:
    cache = Cache(version=KUBERNETES)
    cache.replace(NODE, nodes, "1000")
    cache.replace(POD, pods, "1000")
    return cache


def snapshot_of(nodes: Sequence[Object] = (), pods: Sequence[Object] = ()) -> Snapshot:
    return take(cache_of(map(node_record, nodes), map(pod_record, pods)), now=NOW)


def list_arrays(part: Any) -> list[tuple[str, np.ndarray[Any, Any]]]:
    """Give every array of a snapshot, with the way to it."""
    if isinstance(part, np.ndarray):
        return [("", part)]
    if is_dataclass(part):
        parts = {field.name: getattr(part, field.name) for field in fields(part)}
    else:
        parts = dict(part) if hasattr(part, "items") else {}
    return [(f"{name}.{inner}", array) for name in parts for inner, array in list_arrays(parts[name])]


def as_bytes(snapshot: Snapshot) -> dict[str, tuple[bytes, str]]:
    return {path: (array.tobytes(), str(array.dtype)) for path, array in list_arrays(snapshot)}


def counts(record: Pod, known: Iterable[str]) -> bool:
    return record.spec.node_name in known and record.status.phase not in ("Succeeded", "Failed")


@settings(max_examples=40)
@given(all_nodes, all_pods)
def test_the_sums_of_a_node_are_those_of_its_pods(nodes: list[Object], pods: list[Object]) -> None:
    records = [pod_record(built) for built in pods]
    snapshot = snapshot_of(nodes, pods)
    for place, name in enumerate(snapshot.nodes.names):
        demands = [
            count_bound_requests(record, version=KUBERNETES)
            for record in records
            if record.spec.node_name == name and counts(record, [name])
        ]
        expected = [sum(each.amounts.get(resource, 0) for each in demands) for resource in RESOURCES[:3]]
        assert snapshot.sums.requested.main[:, place].tolist() == [*expected, len(demands)]
        for resource, column in snapshot.sums.requested.extended.items():
            assert column[place] == sum(each.amounts.get(resource, 0) for each in demands)
        assert snapshot.sums.load[0, place] == sum(each.load_cpu for each in demands)
        assert snapshot.sums.load[1, place] == sum(each.load_memory for each in demands)


@settings(max_examples=40)
@given(all_nodes, all_pods)
def test_snapshot_columns_have_the_values_of_the_objects(nodes: list[Object], pods: list[Object]) -> None:
    snapshot = snapshot_of(nodes, pods)
    columns, known = snapshot.pods, {built["metadata"]["name"]: built for built in nodes}
    records = {
        (built["metadata"]["namespace"], built["metadata"]["name"]): pod_record(built) for built in pods
    }
    assert list(snapshot.nodes.names) == sorted(known)
    assert [(row.namespace, row.name) for row in columns.rows] == sorted(records)
    for place, row in enumerate(columns.rows):
        record = records[row.namespace, row.name]
        node = record.spec.node_name
        assert columns.node[place] == (snapshot.nodes.names.index(node) if node in known else -1)
        assert snapshot.templates.all[columns.template[place]] is row.template
        assert columns.namespaces[columns.namespace[place]] == row.namespace
        assert columns.priority[place] == (record.spec.priority or 0)
        assert PHASES[columns.phase[place]] == record.status.phase
        assert columns.terminating[place] == (record.metadata.deletion_timestamp is not None)
        assert columns.ready[place] == row.is_ready
        assert columns.counted[place] == counts(record, known)
        assert columns.created[place] == parse_time(record.metadata.creation_timestamp or "")
        deleted = columns.deleted[place]
        assert deleted == row.deleted if row.deleted else math.isnan(deleted)
        assert columns.by_uid(row.uid) == columns.named(row.namespace, row.name) == place


@settings(max_examples=40)
@given(all_nodes, all_pods)
def test_every_counted_pod_stands_at_its_node_and_no_other(nodes: list[Object], pods: list[Object]) -> None:
    snapshot = snapshot_of(nodes, pods)
    for place in range(len(nodes)):
        expected = np.flatnonzero(snapshot.pods.counted & (snapshot.pods.node == place))
        assert snapshot.pods.on(place).tolist() == expected.tolist()
    assert len(snapshot.pods.by_node) == snapshot.pods.counted.sum()


@settings(max_examples=40)
@given(all_nodes, all_pods, st.randoms(use_true_random=False))
def test_the_order_of_arrival_leaves_no_trace(nodes: list[Object], pods: list[Object], chance: Any) -> None:
    before = as_bytes(snapshot_of(nodes, pods))
    cache = Cache(version=KUBERNETES)
    events = [(NODE, node_record(built)) for built in nodes] + [(POD, pod_record(built)) for built in pods]
    chance.shuffle(events)
    for version, (kind, record) in enumerate(events):
        cache.apply(kind, ADDED, at(record, version + 1))
        if chance.random() < 0.3:
            take(cache, now=NOW)
    assert as_bytes(take(cache, now=NOW)) == before


pod_events = st.lists(
    st.tuples(st.sampled_from([ADDED, MODIFIED, DELETED]), pods(), st.booleans()), max_size=12
)


@settings(max_examples=60)
@given(all_nodes, all_nodes, pod_events)
def test_earlier_snapshots_do_not_change_a_later_one(
    first: list[Object], then: list[Object], events: list[tuple[str, Object, bool]]
) -> None:
    """Parts of an earlier snapshot are used again; a cache that was never looked at gives the same bytes."""
    cache = cache_of(map(node_record, first))
    for version, (event, built, look) in enumerate(events):
        cache.apply(POD, event, pod_record(built, 2000 + version))
        if look:
            take(cache, now=NOW)
    left = {
        (built["metadata"]["namespace"], built["metadata"]["name"]): (event, built)
        for event, built, _ in events
    }
    known = [pod_record(built) for event, built in left.values() if event != DELETED]
    node_records = [node_record(built, 2) for built in then]
    fresh = cache_of(node_records, known)
    cache.replace(NODE, node_records, "9000")
    seen, expected = take(cache, now=NOW), take(fresh, now=NOW)
    assert as_bytes(seen) == as_bytes(expected)
    assert seen.pods.namespaces == expected.pods.namespaces
    assert [each.pod for each in seen.templates.all] == [each.pod for each in expected.templates.all]
    assert [row.uid for row in seen.pods.rows] == [row.uid for row in expected.pods.rows]


def at(record: Any, version: int) -> Any:
    return replace(record, metadata=replace(record.metadata, resource_version=str(version)))


@settings(max_examples=40)
@given(all_nodes, all_pods, all_pods)
def test_a_snapshot_ignores_later_changes_of_its_cache(
    nodes: list[Object], pods: list[Object], later: list[Object]
) -> None:
    cache = cache_of(map(node_record, nodes), map(pod_record, pods))
    snapshot = take(cache, now=NOW)
    before, rows, templates = as_bytes(snapshot), snapshot.pods.rows, snapshot.templates.all
    for version, built in enumerate(later):
        cache.apply(POD, MODIFIED, pod_record(built, 2000 + 2 * version))
        cache.apply(POD, DELETED, pod_record(built, 2001 + 2 * version))
    cache.replace(NODE, [], "3000")
    assert (snapshot.pods.rows, snapshot.templates.all) == (rows, templates)
    assert as_bytes(snapshot) == before
    assert len(snapshot.of(NODE)) == len(nodes)


def test_no_array_can_be_written() -> None:
    built = pod(
        "web", node="n1", cpu="1", containers=[container(resources={"requests": {"example.com/a": "1"}})]
    )
    arrays = list_arrays(snapshot_of([node("n1", extended={"example.com/a": "2"})], [built]))
    assert len(arrays) >= 15
    for path, array in arrays:
        assert not array.flags.writeable, path
        assert array.base is None or not array.base.flags.writeable, path
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_amounts_of_one_resource_lie_side_by_side() -> None:
    snapshot = snapshot_of([node(name) for name in NODE_NAMES], [pod("a", node="n1"), pod("b", cpu="1")])
    for table in (
        snapshot.nodes.allocatable.main,
        snapshot.templates.requests.main,
        snapshot.templates.load,
        snapshot.sums.requested.main,
        snapshot.sums.load,
    ):
        assert table.flags.c_contiguous


def test_only_namespaces_in_which_something_happened_are_read_again() -> None:
    cache = cache_of(pods=[pod_record(pod("web", namespace=namespace)) for namespace in ("a", "b")])
    before = take(cache, now=NOW).of(POD).parts
    cache.apply(POD, MODIFIED, pod_record(pod("web", namespace="b"), 2000))
    after = take(cache, now=NOW).of(POD).parts
    assert after[0].read(read_pods) is before[0].read(read_pods)
    assert after[1].read(read_pods) is not before[1].read(read_pods)


def test_an_empty_cluster_has_empty_columns() -> None:
    snapshot = take(Cache(version=KUBERNETES), now=NOW)
    assert (snapshot.now, snapshot.nodes.names, snapshot.pods.rows) == (NOW, (), ())
    assert snapshot.nodes.allocatable.main.shape == snapshot.sums.requested.main.shape == (4, 0)
    assert snapshot.sums.load.shape == (2, 0)
    assert snapshot.select(EVERYTHING, "default").tolist() == []


def test_nodes_are_found_by_name() -> None:
    snapshot = snapshot_of([node("n2", cpu="2"), node("n1", cpu="1", unschedulable=True)])
    assert dict(snapshot.nodes.index) == {"n1": 0, "n2": 1}
    assert snapshot.nodes.allocatable.main[0].tolist() == [1000, 2000]
    assert snapshot.nodes.unschedulable.tolist() == [True, False]
    assert [record.metadata.name for record in snapshot.nodes.records] == ["n1", "n2"]


def test_resources_that_only_some_have_are_columns_for_all() -> None:
    wish = [container(resources={"requests": {"example.com/fpga": "1"}})]
    snapshot = snapshot_of(
        [node("n1", extended={"example.com/gpu": "4"}), node("n2")], [pod("a", node="n2", containers=wish)]
    )
    for columns in (snapshot.nodes.allocatable, snapshot.templates.requests, snapshot.sums.requested):
        assert list(columns.extended) == ["example.com/fpga", "example.com/gpu"]
    assert snapshot.nodes.allocatable.extended["example.com/gpu"].tolist() == [4, 0]
    assert snapshot.sums.requested.extended["example.com/fpga"].tolist() == [0, 1]


def test_amounts_without_measure_do_not_overflow_a_sum() -> None:
    endless = [pod(f"p{number}", node="n1", memory="9223372036854775807") for number in range(500)]
    snapshot = snapshot_of([node("n1", memory="9223372036854775807")], endless)
    assert snapshot.sums.requested.main[1, 0] == 500 * 2**53
    assert snapshot.sums.load[1, 0] == 500 * 2**53


def test_pods_of_a_node_are_listed_in_order() -> None:
    many = [pod(f"p{number:03}", node=NODE_NAMES[number % 2]) for number in range(300)]
    snapshot = snapshot_of([node(name) for name in NODE_NAMES[:2]], many)
    assert snapshot.pods.on(0).tolist() == list(range(0, 300, 2))
    assert snapshot.pods.on(1).tolist() == list(range(1, 300, 2))


def test_finished_pods_stay_visible_but_take_nothing() -> None:
    snapshot = snapshot_of([node("n1")], [pod("done", node="n1", cpu="1", phase="Succeeded")])
    assert snapshot.sums.requested.main[:, 0].tolist() == [0, 0, 0, 0]
    assert snapshot.pods.on(0).tolist() == []
    assert (snapshot.pods.node.tolist(), snapshot.pods.counted.tolist()) == ([0], [False])
    assert snapshot.pods.named("default", "done") == 0


def test_a_pod_on_a_node_that_is_not_known_is_on_none() -> None:
    snapshot = snapshot_of([node("n1")], [pod("lost", node="n9")])
    assert snapshot.pods.node.tolist() == [-1]
    assert snapshot.pods.rows[0].node == "n9"


def test_terminating_pods_are_counted_and_marked() -> None:
    snapshot = snapshot_of([node("n1")], [pod("going", node="n1", cpu="1", deleted=TIMES[0])])
    assert snapshot.sums.requested.main[0].tolist() == [1000]
    assert snapshot.pods.terminating.tolist() == [True]
    assert snapshot.pods.deleted.tolist() == [parse_time(TIMES[0])]


def test_a_pod_that_does_not_exist_is_not_found() -> None:
    snapshot = snapshot_of([], [pod("b")])
    assert [snapshot.pods.named("default", name) for name in ("a", "b", "c")] == [None, 0, None]
    assert snapshot.pods.by_uid("nobody") is None
    assert (snapshot.pods.within("default"), len(snapshot.pods.within("other"))) == (range(1), 0)


selectors = st.sampled_from(
    [
        *(EVERYTHING, NOTHING, parse_selector("app=a"), parse_selector("app,!tier")),
        parse_selector("topology.kubernetes.io/zone=a"),
        parse_selector("app=a,statefulset.kubernetes.io/pod-name notin (b)"),
    ]
)


@settings(max_examples=40)
@given(all_pods, selectors, st.sampled_from([*NAMESPACES, "empty"]))
def test_a_selector_finds_pods_by_shared_labels_and_by_their_own(
    pods: list[Object], selector: Selector, namespace: str
) -> None:
    snapshot = snapshot_of([], pods)
    expected = {
        built["metadata"]["name"]
        for built in pods
        if built["metadata"]["namespace"] == namespace and selector.matches(built["metadata"].get("labels"))
    }
    found = snapshot.select(selector, namespace).tolist()
    assert found == sorted(found)
    assert {snapshot.pods.rows[place].name for place in found} == expected
    assert {snapshot.pods.rows[place].namespace for place in found} <= {namespace}


def test_other_kinds_are_found_by_name_and_namespace() -> None:
    cache = cache_of()
    web = Service(ObjectMeta("web", "default", "s", resource_version="1"))
    cache.replace(SERVICE, [web], "5")
    cache.replace(
        NAMESPACE,
        [Namespace(DatedMeta(name, "", name, resource_version="1", labels=labels)) for name, labels in
         (("default", {"team": "a"}), ("bare", None))],
        "5",
    )  # fmt: skip
    snapshot = take(cache, now=NOW)
    assert list(snapshot.of(SERVICE).within("default")) == [web]
    assert snapshot.of(SERVICE).named("default", "web") is web
    assert list(snapshot.of(CLAIM)) == []
    assert snapshot.of(CLAIM).named("default", "data") is None
    assert [snapshot.namespace_labels(name) for name in ("default", "bare", "gone")] == [
        {"team": "a"},
        {},
        {},
    ]


def test_columns_can_be_built_apart_from_the_cache() -> None:
    cache = cache_of(
        [node_record(node("n1"))], [pod_record(pod("a", node="n1", owned_by=owner("ReplicaSet", "a")))]
    )
    contents = cache.contents()
    cache.replace(POD, [], "2000")
    assert build(contents, now=NOW).pods.on(0).tolist() == [0]


def test_templates_of_a_namespace_are_asked_once_while_nothing_changes_there() -> None:
    cache = cache_of(pods=[pod_record(pod("a-1", namespace="a")), pod_record(pod("b-1", namespace="b"))])
    asked: list[str] = []

    def is_of_b(template: Template) -> bool:
        asked.append(template.namespace)
        return template.namespace == "b"

    first, again = (take(cache, now=NOW).templates_where(is_of_b) for _ in range(2))
    assert first == again == (1,)
    cache.apply(POD, ADDED, pod_record(pod("a-2", namespace="a", labels={"app": "other"}), 1001))
    later = take(cache, now=NOW)
    assert [later.templates.all[place].namespace for place in later.templates_where(is_of_b)] == ["b"]
    assert asked == ["a", "b", "a", "a"]


def test_templates_are_found_by_namespace_and_label() -> None:
    pods = [
        pod_record(pod(name, namespace=space, labels={"app": name})) for space, name in ("bx", "ay", "bz")
    ]
    snapshot = take(cache_of(pods=pods), now=NOW)
    of_b = snapshot.templates_in("b")
    assert [snapshot.templates.all[place].namespace for place in of_b] == ["b", "b"]
    (found,) = snapshot.templates_with("b", "app", "z")
    assert snapshot.templates.all[found].labels == {"app": "z"}
    assert (list(snapshot.templates_in("c")), list(snapshot.templates_with("c", "app", "z"))) == ([], [])
    assert list(snapshot.templates_with("a", "app", "z")) == []
