"""What starts a cycle, with a virtual clock."""

import asyncio

import pytest

from reberth.cluster.cache import Cache
from reberth.cluster.kinds import POD
from reberth.records import Pod
from reberth.values.duration import Duration
from rescheduler.daemon.triggers import ClusterTriggers, Trigger
from rescheduler.settings import CycleSettings
from tests.support import builders

pytestmark = [pytest.mark.looptime, pytest.mark.asyncio]
SETTINGS = CycleSettings(
    interval=Duration(60), settle=Duration(2), min_interval=Duration(5), pending=Duration(30)
)


def now() -> float:
    return asyncio.get_running_loop().time()


async def begin() -> Trigger:
    """A trigger whose first cycle has begun."""
    trigger = Trigger(lambda: SETTINGS)
    began = now()
    assert await trigger.sleep() == "start"
    assert now() == began
    return trigger


async def test_without_events_the_interval_starts_a_cycle() -> None:
    trigger, began = await begin(), now()
    assert [await trigger.sleep(), await trigger.sleep()] == ["interval", "interval"]
    assert now() - began == pytest.approx(120, abs=0.01)


async def test_a_burst_of_events_starts_one_cycle_when_it_has_settled() -> None:
    trigger, began = await begin(), now()
    for delay, cause in ((20.0, "node"), (20.5, "pending"), (21.0, "node")):
        asyncio.get_running_loop().call_later(delay, trigger.fire, cause)
    assert await trigger.sleep() == "node"
    assert now() - began == pytest.approx(22, abs=0.01)
    assert await trigger.sleep() == "interval"
    assert now() - began == pytest.approx(82, abs=0.01)


async def test_events_begin_no_cycle_right_after_the_last_one() -> None:
    trigger, began = await begin(), now()
    trigger.fire("moves")
    assert await trigger.sleep() == "moves"
    assert now() - began == pytest.approx(5, abs=0.01)


async def test_an_event_while_the_loop_is_not_sleeping_is_not_lost() -> None:
    trigger = await begin()
    trigger.fire("settings")
    await asyncio.sleep(30)
    began = now()
    assert await trigger.sleep() == "settings"
    assert now() - began == pytest.approx(2, abs=0.01)


@pytest.mark.parametrize(("bound_after", "wakes"), [(None, True), (10.0, False)])
async def test_a_pod_that_is_pending_for_too_long_starts_a_cycle(
    bound_after: float | None,
    wakes: bool,  # noqa: FBT001 - a column of the table
) -> None:
    trigger, cache = await begin(), Cache(version=(1, 36))
    listener = ClusterTriggers(trigger, cache, lambda: SETTINGS, on_binding=lambda _pod, _node: None)
    cache.replace(POD, [pod(None)], "1")
    (row,) = cache.of(POD).rows()
    listener.pod_waits(row)
    if bound_after:
        await asyncio.sleep(bound_after)
        cache.replace(POD, [pod("n1")], "2")
    assert await trigger.sleep() == ("pending" if wakes else "interval")


def pod(node: str | None) -> Pod:
    made = builders.pod("web", node=node, uid="uid-web")
    made["metadata"]["resourceVersion"] = "2" if node else "1"
    return builders.as_record(Pod, made)
