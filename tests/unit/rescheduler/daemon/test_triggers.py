"""What begins a cycle, on a clock that nobody waits for."""

import asyncio

import pytest

from reberth.cluster.cache import Cache
from reberth.cluster.kinds import POD
from reberth.records import Pod
from reberth.values.duration import Duration
from rescheduler.daemon.triggers import PendingWatch, Waker
from rescheduler.settings import CycleSettings
from tests.support import builders

pytestmark = [pytest.mark.looptime, pytest.mark.asyncio]
SETTINGS = CycleSettings(
    interval=Duration(60), settle=Duration(2), least_pause=Duration(5), pending=Duration(30)
)


def now() -> float:
    return asyncio.get_running_loop().time()


async def begin() -> Waker:
    """A waker whose first cycle has begun."""
    waker = Waker(lambda: SETTINGS)
    began = now()
    assert await waker.sleep() == "start"
    assert now() == began
    return waker


async def test_without_events_the_interval_wakes() -> None:
    waker, began = await begin(), now()
    assert [await waker.sleep(), await waker.sleep()] == ["interval", "interval"]
    assert now() - began == pytest.approx(120, abs=0.01)


async def test_a_burst_of_events_wakes_once_when_it_has_settled() -> None:
    waker, began = await begin(), now()
    for delay, cause in ((20.0, "node"), (20.5, "pending"), (21.0, "node")):
        asyncio.get_running_loop().call_later(delay, waker.ring, cause)
    assert await waker.sleep() == "node"
    assert now() - began == pytest.approx(22, abs=0.01)
    assert await waker.sleep() == "interval"
    assert now() - began == pytest.approx(82, abs=0.01)


async def test_events_begin_no_cycle_right_after_the_last_one() -> None:
    waker, began = await begin(), now()
    waker.ring("moves")
    assert await waker.sleep() == "moves"
    assert now() - began == pytest.approx(5, abs=0.01)


async def test_an_event_while_nobody_sleeps_is_not_lost() -> None:
    waker = await begin()
    waker.ring("settings")
    await asyncio.sleep(30)
    began = now()
    assert await waker.sleep() == "settings"
    assert now() - began == pytest.approx(2, abs=0.01)


@pytest.mark.parametrize(("bound_after", "wakes"), [(None, True), (10.0, False)])
async def test_a_pod_that_waits_for_too_long_wakes(
    bound_after: float | None,
    wakes: bool,  # noqa: FBT001 - a column of the table
) -> None:
    waker, cache = await begin(), Cache(version=(1, 36))
    watch = PendingWatch(waker, cache, lambda: SETTINGS)
    cache.replace(POD, [pod(None)], "1")
    (row,) = cache.of(POD).rows()
    watch.look_after(row)
    if bound_after:
        await asyncio.sleep(bound_after)
        cache.replace(POD, [pod("n1")], "2")
    assert await waker.sleep() == ("pending" if wakes else "interval")


def pod(node: str | None) -> Pod:
    made = builders.pod("web", node=node, uid="uid-web")
    made["metadata"]["resourceVersion"] = "2" if node else "1"
    return builders.as_record(Pod, made)
