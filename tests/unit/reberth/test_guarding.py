"""A guarded client checks right before a write is sent, after all waiting."""

import asyncio
from typing import Any, Self

import pytest

from reberth.client.access import Access
from reberth.client.api import Api, ApiSettings
from reberth.client.lease import Leadership, LeaseLost
from reberth.client.rate_limit import RateLimiter
from reberth.cluster.kinds import NODES, PODS

pytestmark = pytest.mark.looptime
POD = b'{"metadata":{"name":"web","namespace":"default"},"spec":{},"status":{}}'


class Answer:
    """What the API server says to everything."""

    connection = None  # all has come

    def __init__(self, status: int) -> None:
        self.status = status
        self.headers: dict[str, str] = {}
        self.content = self
        self._left = [POD]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is open."""

    async def read(self) -> bytes:
        return POD

    async def readany(self) -> bytes:
        return self._left.pop() if self._left else b""


class Connection:
    """Counts what is sent; the first so many requests are turned away."""

    renewals = 0

    def __init__(self, *, busy: int = 0) -> None:
        self.sent: list[str] = []
        self._busy = busy

    async def send(self, method: str, *_: Any, **__: Any) -> Answer:
        self.sent.append(method)
        return Answer(429 if len(self.sent) <= self._busy else 200)


def client(connection: Connection, *, rate: float = 1.0) -> tuple[Api, Leadership]:
    """A client whose rate is used up, and a leadership that ends in two seconds."""
    clock = asyncio.get_running_loop().time
    api: Any = Api(Access(), ApiSettings(deadline=60.0))
    api._connection = connection
    api._throttle = RateLimiter(rate=rate, burst=1, clock=clock)
    leadership = Leadership("me", deadline=clock() + 2, clock=clock)
    return api.guarded(leadership.check), leadership


async def evict(api: Api) -> None:
    await api.evict("web", namespace="default", uid="uid-web")


async def test_a_write_that_has_waited_beyond_the_lease_is_not_sent() -> None:
    connection = Connection()
    api, _ = client(connection)
    writes = [asyncio.create_task(evict(api)) for _ in range(5)]
    ended = await asyncio.gather(*writes, return_exceptions=True)
    assert connection.sent == ["POST", "POST"]
    assert [isinstance(each, LeaseLost) for each in ended] == [False, False, True, True, True]


async def test_a_write_that_is_sent_again_is_asked_about_again() -> None:
    connection = Connection(busy=9)
    api, leadership = client(connection, rate=1000.0)
    leadership.deadline = asyncio.get_running_loop().time() + 0.3
    with pytest.raises(LeaseLost):
        await evict(api)
    assert 1 <= len(connection.sent) < 9


async def test_reading_needs_no_leave() -> None:
    connection = Connection()
    api, leadership = client(connection)
    leadership.deadline = 0.0
    await api.get(PODS, "web", namespace="default")
    assert connection.sent == ["GET"]
    with pytest.raises(LeaseLost):
        await api.merge(NODES, "n1", {})
    assert connection.sent == ["GET"]


async def test_the_client_that_it_was_made_from_is_not_guarded() -> None:
    connection = Connection()
    api, leadership = client(connection)
    leadership.deadline = 0.0
    free: Any = Api(Access(), ApiSettings())
    free._connection, free._throttle = connection, RateLimiter(rate=1.0, burst=9, clock=lambda: 0.0)
    free.guarded(leadership.check)
    await evict(free)
    assert connection.sent == ["POST"]
    with pytest.raises(LeaseLost):
        await evict(api)
