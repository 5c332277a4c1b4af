"""The client's own rate limit, with a virtual clock."""

import asyncio

import pytest

from reberth.client.rate_limit import RateLimiter


@pytest.mark.looptime
async def test_a_burst_goes_at_once_and_the_rest_at_the_rate() -> None:
    loop = asyncio.get_running_loop()
    throttle = RateLimiter(rate=10, burst=5, clock=loop.time)
    began = loop.time()
    times = []
    for _ in range(8):
        await throttle.take()
        times.append(round(loop.time() - began, 3))
    assert times == [0, 0, 0, 0, 0, 0.1, 0.2, 0.3]


@pytest.mark.looptime
async def test_tokens_come_back_with_time_but_never_more_than_a_burst() -> None:
    loop = asyncio.get_running_loop()
    throttle = RateLimiter(rate=10, burst=2, clock=loop.time)
    await asyncio.sleep(100)
    began = loop.time()
    await asyncio.gather(*(throttle.take() for _ in range(4)))
    assert round(loop.time() - began, 3) == 0.2


@pytest.mark.looptime
async def test_never_more_than_rate_and_burst_in_any_window() -> None:
    loop = asyncio.get_running_loop()
    throttle = RateLimiter(rate=50, burst=100, clock=loop.time)
    taken = []

    async def take() -> None:
        await throttle.take()
        taken.append(loop.time())

    await asyncio.gather(*(take() for _ in range(400)))
    in_first_second = sum(at - taken[0] < 1 for at in taken)
    assert in_first_second <= 150
    assert round(taken[-1] - taken[0], 2) == 6.0
