"""The newest known version of an object: of the cache, or of the last answer."""

from typing import Any

import pytest
from msgspec.structs import replace

from reberth.client.newest import NewestObjects
from reberth.cluster.cache import DELETED, MODIFIED, Cache
from reberth.cluster.kinds import HISTORIES, HISTORY, NODE, NODES
from reberth.records import EvictionHistory, Node
from tests.support import builders
from tests.support.memory.objects import empty_history

PLACE: dict[str, Any] = {"name": empty_history().metadata.name, "namespace": "shop"}


def history(version: int, uid: str = "uid-1") -> EvictionHistory:
    made = empty_history()
    return replace(made, metadata=replace(made.metadata, uid=uid, resource_version=str(version)))


@pytest.fixture
def cache() -> Cache:
    return Cache(version=(1, 36))


def test_of_cache_and_answer_the_newer_one_is_known(cache: Cache) -> None:
    newest = NewestObjects(cache)
    cache.replace(HISTORY, [history(3)], "3")
    assert newest.find(HISTORIES, **PLACE) == history(3)
    newest.learn(HISTORIES, history(5))
    assert newest.find(HISTORIES, **PLACE) == history(5)
    cache.apply(HISTORY, MODIFIED, history(4))
    assert newest.find(HISTORIES, **PLACE) == history(5)
    cache.apply(HISTORY, MODIFIED, history(7))
    assert newest.find(HISTORIES, **PLACE) == history(7)


def test_an_answer_that_arrives_after_a_newer_one_is_not_believed(cache: Cache) -> None:
    """A read that was sent before a write may be answered after it."""
    newest = NewestObjects(cache)
    newest.learn(HISTORIES, history(6))
    assert newest.learn(HISTORIES, history(5)) == history(5)
    assert newest.find(HISTORIES, **PLACE) == history(6)
    newest.forget(HISTORIES, **PLACE)
    newest.learn(HISTORIES, history(5))
    assert newest.find(HISTORIES, **PLACE) == history(5)


def test_an_object_that_was_deleted_after_its_answer_is_not_known(cache: Cache) -> None:
    newest = NewestObjects(cache)
    cache.replace(HISTORY, [], "1")
    newest.learn(HISTORIES, history(5))
    cache.apply(HISTORY, MODIFIED, history(5))
    assert newest.find(HISTORIES, **PLACE) == history(5)
    cache.apply(HISTORY, DELETED, history(6))
    assert newest.find(HISTORIES, **PLACE) is None
    assert newest.is_known_missing(HISTORIES, **PLACE)


def test_after_etcd_was_restored_no_answer_from_before_is_believed(cache: Cache) -> None:
    newest = NewestObjects(cache)
    newest.learn(HISTORIES, history(5000))
    cache.replace(HISTORY, [history(5000)], "5001")
    assert newest.find(HISTORIES, "another", namespace="shop") is None
    cache.replace(HISTORY, [history(10, "uid-2")], "12")
    assert newest.find(HISTORIES, **PLACE) == history(10, "uid-2")


def test_only_a_cache_that_was_listed_tells_that_an_object_is_missing(cache: Cache) -> None:
    newest = NewestObjects(cache)
    assert not newest.is_known_missing(HISTORIES, **PLACE)
    cache.replace(HISTORY, [], "1")
    assert newest.is_known_missing(HISTORIES, **PLACE)
    newest.learn(HISTORIES, history(5))
    assert not newest.is_known_missing(HISTORIES, **PLACE)
    assert not NewestObjects(None).is_known_missing(HISTORIES, **PLACE)


def test_without_a_cache_the_last_answer_is_known() -> None:
    newest = NewestObjects(None)
    assert newest.find(HISTORIES, **PLACE) is None
    newest.learn(HISTORIES, history(5))
    assert newest.find(HISTORIES, **PLACE) == history(5)


def test_of_a_node_the_whole_object_is_known(cache: Cache) -> None:
    node = builders.as_record(Node, builders.node("n1"))
    node = replace(node, metadata=replace(node.metadata, uid="uid-n1", resource_version="4"))
    cache.replace(NODE, [node], "4")
    found = NewestObjects(cache).find(NODES, "n1")
    assert found
    assert (found.metadata.name, found.metadata.resource_version) == ("n1", "4")


def named(number: int) -> EvictionHistory:
    one = history(number, f"uid-{number}")
    return replace(one, metadata=replace(one.metadata, name=f"h{number}"))


def test_answers_that_the_cache_has_seen_are_not_held(cache: Cache) -> None:
    newest = NewestObjects(cache)
    cache.replace(HISTORY, [], "1")
    for number in range(2, 100):
        newest.learn(HISTORIES, named(number))
    assert len(newest._answers) == 98
    cache.apply(HISTORY, MODIFIED, history(97))
    newest.learn(HISTORIES, named(100))
    assert list(newest._answers.values()) == [named(number) for number in (98, 99, 100)]


@pytest.mark.parametrize("is_cached", [True, False])
def test_of_answers_that_the_cache_has_not_seen_the_last_are_held(cache: Cache, *, is_cached: bool) -> None:
    newest = NewestObjects(cache if is_cached else None)
    newest.learn(HISTORIES, named(1))
    for number in range(2, 2000):
        newest.learn(HISTORIES, named(number))
        newest.learn(HISTORIES, named(1))
    assert len(newest._answers) <= 500
    assert newest.find(HISTORIES, "h1", namespace="shop") == named(1)
    assert newest.find(HISTORIES, "h1999", namespace="shop") == named(1999)
    assert newest.find(HISTORIES, "h2", namespace="shop") is None
