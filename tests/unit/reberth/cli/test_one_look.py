"""One look lists each kind, and one that cannot be listed keeps none of the others from being read."""

from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest

from reberth.cli.one_look import OneLook
from reberth.client.api import Api
from reberth.cluster.cache import Cache, Listing
from reberth.cluster.kinds import HISTORIES, NODES, PODS, Resource
from reberth.cluster.pods.requests import NEWEST
from reberth.protocol.response import BadObject, Page
from reberth.values.errors import Forbidden, Gone, NotFound, Unreachable
from tests.support.builders import Object, as_record, node, pod

pytestmark = pytest.mark.looptime
ROLLOUTS = Resource(HISTORIES.kind, "rollouts", is_optional=True)


def read(resource: Resource[Any], built: Object) -> Any:
    """The record of an object as the API server would give it."""
    metadata = {**built["metadata"], "resourceVersion": "5", "uid": built["metadata"]["name"]}
    return as_record(resource.record, {**built, "metadata": metadata})


WEB = [read(PODS, pod("web"))]


class Lists:
    """An API server that has some lists, in parts, and refuses others; some lists break off `first`."""

    def __init__(self, *first: Exception, **answers: Any) -> None:
        self._first = [*first]
        self._answers = answers

    async def list_parts(self, resource: Resource[Any]) -> AsyncGenerator[Page[Any], None]:
        answer = self._answers[resource.name]
        if isinstance(answer, Exception):
            raise answer
        for each in answer:
            yield Page((each,), "7", "")
            if self._first:
                raise self._first.pop()


async def look(*resources: Resource[Any], **answers: Any) -> tuple[OneLook, Cache]:
    taken, cache = OneLook(resources), Cache(version=NEWEST)
    await taken.take(cast("Api", Lists(**answers)), cache)
    return taken, cache


async def test_every_kind_is_read_whole() -> None:
    nodes = [read(NODES, node(name)) for name in "ab"]
    taken, cache = await look(NODES, PODS, nodes=nodes, pods=WEB)
    assert (taken.troubles, taken.unreadable, taken.waiting) == ({}, {}, set())
    assert (len(cache.of(NODES.kind)), len(cache.of(PODS.kind))) == (2, 1)


@pytest.mark.parametrize("error", [Forbidden("list", "no right"), Unreachable("list", "connection refused")])
async def test_a_kind_that_cannot_be_listed_is_named_and_the_others_are_read(error: Exception) -> None:
    taken, cache = await look(NODES, PODS, nodes=error, pods=WEB)
    assert taken.troubles == {"nodes": str(error)}
    assert len(cache.of(PODS.kind)) == 1


async def test_a_kind_of_another_project_may_be_missing_and_one_of_ours_is_named() -> None:
    gone = NotFound("list", "no such kind")
    taken, _ = await look(ROLLOUTS, HISTORIES, rollouts=gone, evictionhistories=gone)
    assert list(taken.troubles) == ["evictionhistories"]
    assert taken.troubles["evictionhistories"].startswith("not installed in this cluster")


async def test_objects_that_cannot_be_read_are_counted_and_the_first_is_named() -> None:
    bad = [BadObject("shop", f"web-{number}", "no name", "1") for number in range(3)]
    taken, cache = await look(PODS, pods=[*bad, *WEB])
    assert taken.unreadable == {"pods": (3, "shop/web-0: no name")}
    assert len(cache.of(PODS.kind)) == 1


@pytest.mark.parametrize("error", [Gone("list", "too old"), Unreachable("list", "connection reset")])
async def test_a_list_that_breaks_off_begins_anew(error: Exception) -> None:
    bad, cache = BadObject("shop", "web", "no name", "1"), Cache(version=NEWEST)
    taken = OneLook([PODS])
    await taken.take(cast("Api", Lists(error, pods=[bad, *WEB])), cache)
    assert (taken.troubles, len(cache.of(PODS.kind))) == ({}, 1)
    assert list(taken.list_gaps()) == ["1 of pods that cannot be read: shop/web: no name"]


async def test_an_object_that_meets_a_defect_is_left_out_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    apply = Listing.apply

    def stumble(listing: Any, event: str, subject: Any) -> None:
        if subject.metadata.name == "odd":
            raise AttributeError(subject.metadata.name)
        apply(listing, event, subject)

    monkeypatch.setattr(Listing, "apply", stumble)
    taken, cache = await look(PODS, pods=[read(PODS, pod("odd")), *WEB])
    ((count, first),) = taken.unreadable.values()
    assert (count, len(cache.of(PODS.kind))) == (1, 1)
    assert "AttributeError" in first
