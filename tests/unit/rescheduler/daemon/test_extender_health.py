"""Whether the extenders are reachable, with a fake client."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, cast

import msgspec
import pytest

from reberth.cluster.cache import Cache
from reberth.cluster.kinds import NODE
from reberth.records import Node
from reberth.values import errors
from reberth.values.refusal import Refused
from rescheduler.daemon.extender_health import ExtenderHealth
from rescheduler.execution.extenders import NO_EXTENDER, ExtenderClient, ObjectVersion
from rescheduler.settings import ReschedulerSettings
from tests.support import builders

pytestmark = [pytest.mark.looptime, pytest.mark.asyncio]


def _node(name: str) -> Node:
    built = builders.node(name)
    built["metadata"]["resourceVersion"] = "7"
    return builders.as_record(Node, built)


class FakeAsker:
    """Answers what it holds, and notes what it was asked."""

    def __init__(self) -> None:
        self.answer: Refused | errors.ReberthError | None = None
        self.asked: list[ObjectVersion] = []

    async def refuse_unseen(self, sought: Iterable[ObjectVersion]) -> Refused | None:
        self.asked.extend(sought)
        if isinstance(self.answer, errors.ReberthError):
            raise self.answer
        return self.answer


class Tried:
    """What tries, whom it asks, and when it told of a change."""

    def __init__(self, *, nodes: Iterable[str] = ("n1", "n2"), extender: str = "required") -> None:
        cache = Cache(version=(1, 36))
        found = [_node(name) for name in nodes]
        cache.replace(NODE, found, "9")
        self.settings = msgspec.structs.replace(ReschedulerSettings(), extender=extender)
        self.extenders = FakeAsker()
        self.changes: list[float] = []
        clock = asyncio.get_running_loop().time
        self.extender_health = ExtenderHealth(
            cast("ExtenderClient", self.extenders),
            cache,
            settings=lambda: self.settings,
            on_change=lambda: self.changes.append(clock()),
        )


@asynccontextmanager
async def trying(**how: Any) -> AsyncIterator[Tried]:
    tried = Tried(**how)
    task = asyncio.create_task(tried.extender_health.run())
    await asyncio.sleep(0.01)
    yield tried
    task.cancel()


async def test_there_is_no_brake_while_the_extenders_answer() -> None:
    async with trying() as tried:
        await asyncio.sleep(10)
        assert tried.extender_health.refused is None
        assert tried.changes == []
    assert {each.resource for each in tried.extenders.asked} == {"nodes"}
    assert len(tried.extenders.asked) == 3


async def test_the_brake_is_on_while_the_extenders_are_unreachable() -> None:
    async with trying() as tried:
        tried.extenders.answer = NO_EXTENDER
        await asyncio.sleep(11)
        assert tried.extender_health.refused == Refused("ExtendersUnreachable", "no extender can be reached")
        tried.extenders.answer = None
        await asyncio.sleep(5)
        assert tried.extender_health.refused is None
    assert len(tried.changes) == 2


async def test_an_api_server_that_does_not_list_their_addresses_is_the_reason() -> None:
    async with trying() as tried:
        tried.extenders.answer = errors.Forbidden("list endpointslices", "not for you")
        await asyncio.sleep(5)
        assert tried.extender_health.refused is not None
        assert "not for you" in tried.extender_health.refused.reason


@pytest.mark.parametrize("how", [{"extender": "none"}, {"nodes": ()}])
async def test_no_extender_is_asked_if_nothing_depends_on_it(how: Any) -> None:
    async with trying(**how) as tried:
        await asyncio.sleep(10)
    assert tried.extenders.asked == []
    assert tried.extender_health.refused is None
