import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from federation.hub.call_priority import URGENCY, CallPriority, Urgency

pytestmark = pytest.mark.looptime


def turns(*, rate: float = 1, burst: int = 1, at_once: int = 100, patience: float = 1000) -> CallPriority:
    clock = asyncio.get_running_loop().time
    return CallPriority(rate=rate, burst=burst, clock=clock, at_once=at_once, patience=patience)


class Crowd:
    """Callers by name, and when each of them had its turn."""

    def __init__(self, made: CallPriority, *, lasting: float = 0) -> None:
        self.served: list[tuple[float, str]] = []
        self._turns = made
        self._lasting = lasting

    async def call(self, name: str, urgency: Urgency = Urgency.PLACING) -> None:
        URGENCY.set(urgency)
        async with self._turns:
            self.served.append((asyncio.get_running_loop().time(), name))
            await asyncio.sleep(self._lasting)

    @asynccontextmanager
    async def calling(self, *calls: tuple[str, Urgency]) -> AsyncIterator[list[asyncio.Task[None]]]:
        async with asyncio.TaskGroup() as group:
            yield [group.create_task(self.call(name, urgency)) for name, urgency in calls]


async def test_calls_after_a_burst_are_made_at_the_configured_rate() -> None:
    crowd = Crowd(turns(rate=2, burst=2))
    async with crowd.calling(*((name, Urgency.PLACING) for name in "abcd")):
        pass
    assert crowd.served == [(0, "a"), (0, "b"), (0.5, "c"), (1, "d")]


async def test_the_most_urgent_is_first_and_equals_keep_their_order() -> None:
    crowd = Crowd(turns())
    calls = [("first", Urgency.SUMMING_UP), ("late", Urgency.REPORTING), ("a", Urgency.SCHEDULING)]
    async with crowd.calling(*calls, ("b", Urgency.SCHEDULING), ("now", Urgency.WATCHING)):
        pass
    assert [name for _, name in crowd.served] == ["first", "now", "a", "b", "late"]


async def test_a_call_that_waited_long_goes_before_more_urgent_ones() -> None:
    crowd = Crowd(turns(patience=3))
    urgent = [(str(number), Urgency.SCHEDULING) for number in range(6)]
    async with crowd.calling(*urgent[:1], ("patient", Urgency.SUMMING_UP), *urgent[1:]):
        pass
    assert crowd.served[3] == (3, "patient")


async def test_no_more_than_so_many_are_under_way_and_the_urgent_go_first_then_too() -> None:
    crowd = Crowd(turns(rate=1000, burst=1000, at_once=2), lasting=5)
    calls = [("a", Urgency.REPORTING), ("b", Urgency.REPORTING), ("c", Urgency.REPORTING)]
    async with crowd.calling(*calls, ("d", Urgency.SCHEDULING)):
        pass
    assert crowd.served == [(0, "a"), (0, "b"), (5, "d"), (5, "c")]


async def test_a_cancelled_call_takes_no_turn() -> None:
    crowd = Crowd(turns())
    async with crowd.calling(*((name, Urgency.PLACING) for name in "abc")) as tasks:
        await asyncio.sleep(0.5)
        tasks[1].cancel()
    assert crowd.served == [(0, "a"), (1, "c")]


async def test_a_call_cancelled_at_its_turn_lets_the_next_one_proceed() -> None:
    made = turns(rate=1000, burst=1000, at_once=1)
    crowd = Crowd(made)
    async with asyncio.TaskGroup() as group:
        async with made:
            tasks = [group.create_task(crowd.call(name)) for name in "ab"]
            await asyncio.sleep(1)
        tasks[0].cancel()
    assert crowd.served == [(1, "b")]


async def test_waiting_for_a_turn_takes_no_token() -> None:
    made = turns()
    crowd = Crowd(made)
    for _ in range(3):
        await made.wait_for_turn()
    async with crowd.calling(("a", Urgency.PLACING)):
        pass
    assert crowd.served == [(0, "a")]
    async with asyncio.timeout(1.5):
        await made.wait_for_turn()
