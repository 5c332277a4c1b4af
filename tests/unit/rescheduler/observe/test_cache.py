"""Which changes of the cache are notified."""

from typing import Any

import pytest

from reberth.cluster.cache import ADDED, BOOKMARK, DELETED, MODIFIED
from reberth.cluster.kinds import NODE, POD, REPLICA_SET
from reberth.cluster.rows import PodRow
from reberth.memory.notes import ANNOTATION
from reberth.records import Node, Pod, TemplatedOwner
from rescheduler.observe.cache import NotifyingCache
from tests.support import builders


class Ear:
    """Keeps what it hears, and what the mirror showed at that moment."""

    def __init__(self, cache: NotifyingCache) -> None:
        self.heard: list[Any] = []
        self._cache = cache

    def node_changed(self) -> None:
        self.heard.append("node")

    def pod_waits(self, pod: PodRow) -> None:
        self.heard.append(("waits", pod.name))

    def pod_binds(self, pod: PodRow, node: str) -> None:
        shown = self._cache.of(POD).by_uid(pod.uid)
        assert shown is not None
        self.heard.append(("binds", pod.name, node, shown.node))


@pytest.fixture
def ear() -> Ear:
    cache = NotifyingCache(version=(1, 36))
    cache.listener = heard = Ear(cache)
    return heard


def node(version: int, **fields: Any) -> Node:
    made = builders.node("n1", **fields)
    made["metadata"] |= {"uid": "uid-n1", "resourceVersion": str(version)}
    return builders.as_record(Node, made)


def pod(version: int, **fields: Any) -> Pod:
    made = builders.pod("web", uid="uid-web", **fields)
    made["metadata"]["resourceVersion"] = str(version)
    return builders.as_record(Pod, made)


def test_a_node_change_is_notified_only_if_a_plan_depends_on_it(ear: Ear) -> None:
    cache = ear._cache
    steps = [
        (ADDED, node(1), 1),
        (MODIFIED, node(2, annotations={ANNOTATION: "{}"}), 0),
        (MODIFIED, node(3, unschedulable=True), 1),
        (MODIFIED, node(3, unschedulable=False), 0),  # an old event
        (BOOKMARK, node(4), 0),
        (MODIFIED, node(5, cpu="16", unschedulable=True), 1),
        (DELETED, node(6), 1),
    ]
    for event, seen, told in steps:
        ear.heard.clear()
        cache.apply(NODE, event, seen)
        assert ear.heard == ["node"] * told, (event, seen.metadata.resource_version)


def test_a_pod_waits_once_and_is_bound_once(ear: Ear) -> None:
    cache = ear._cache
    cache.apply(POD, ADDED, pod(1))
    cache.apply(POD, MODIFIED, pod(2))
    cache.apply(POD, MODIFIED, pod(3, node="n1"))
    cache.apply(POD, MODIFIED, pod(4, node="n1"))
    cache.apply(POD, DELETED, pod(5, node="n1"))
    assert ear.heard == [("waits", "web"), ("binds", "web", "n1", None)]


def test_a_pod_that_is_bound_already_and_other_kinds_notify_no_listener(ear: Ear) -> None:
    made = builders.replica_set("web")
    made["metadata"] |= {"uid": "uid-web", "resourceVersion": "1"}
    owner = builders.as_record(TemplatedOwner, made)
    ear._cache.apply(POD, ADDED, pod(1, node="n1"))
    assert ear._cache.apply(REPLICA_SET, ADDED, owner)
    assert ear.heard == []


def test_a_notifying_cache_works_without_a_listener() -> None:
    cache = NotifyingCache(version=(1, 36))
    assert cache.apply(POD, ADDED, pod(1))
    assert cache.of(POD).by_uid("uid-web") is not None
