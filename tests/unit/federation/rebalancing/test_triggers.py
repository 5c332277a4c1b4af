"""When a workload is triggered, and when the scheduler has handled the trigger."""

import pytest

from federation.rebalancing.triggers import (
    check_times,
    choose_trigger,
    is_handled,
    is_pending,
    is_scheduled,
    is_triggered,
)
from federation.scheduling import Fleet, decide
from reberth.values.object_error import ObjectError
from reberth.values.timestamp import parse_time, write_time
from tests.support.federation.clusters import DYNAMIC, binding, rooms

CREATED = parse_time("2026-11-18T12:00:00Z")


def after(seconds: float | None) -> str | None:
    return None if seconds is None else write_time(CREATED + seconds)


@pytest.mark.parametrize(
    ("last", "now", "wanted"),
    [
        pytest.param(None, 5.0, 0, id="never scheduled"),
        pytest.param(-3600.0, 5.0, 0, id="R-01 and R-17, scheduled before"),
        pytest.param(0.0, 0.4, 1, id="R-15, scheduled in the second of the creation"),
        pytest.param(6.0, 60.9, 60, id="R-16, an old rebalancer to which this workload is new"),
        pytest.param(60.0, 60.9, 61, id="scheduled just now"),
        pytest.param(900.0, 60.0, 901, id="a scheduler whose clock is ahead"),
    ],
)
def test_the_trigger_is_later_than_the_last_scheduling(last: float | None, now: float, wanted: int) -> None:
    found = binding(4, status={"lastScheduledTime": after(last)})
    trigger = choose_trigger(found, created=CREATED, now=CREATED + now)
    assert trigger == CREATED + wanted
    assert not is_scheduled(found, trigger)


@pytest.mark.parametrize("last", [-3600.0, 0.0, 6.0, 60.0, 900.0])
def test_the_scheduler_handles_a_trigger_once(last: float) -> None:
    found = binding(4, DYNAMIC, at={"m2": 4}, applied=DYNAMIC, status={"lastScheduledTime": after(last)})
    now = CREATED + 60
    trigger = choose_trigger(found, created=CREATED, now=now)
    triggered = binding(
        4,
        DYNAMIC,
        at={"m2": 4},
        applied=DYNAMIC,
        rescheduleTriggeredAt=write_time(trigger),
        status={"lastScheduledTime": after(last)},
    )
    assert is_triggered(triggered, trigger)
    assert is_pending(triggered)
    decision = decide(triggered, Fleet(rooms(20, 16)), now=now)
    assert {each.name: each.replicas for each in decision.clusters} == {"m1": 2, "m2": 2}
    assert decision.scheduled_at is not None
    done = binding(
        4,
        DYNAMIC,
        rescheduleTriggeredAt=write_time(trigger),
        status={"lastScheduledTime": write_time(decision.scheduled_at)},
    )
    assert is_scheduled(done, trigger)
    assert not is_pending(done)


def test_a_binding_without_a_trigger_is_not_pending() -> None:
    assert not is_pending(binding(1))
    assert not is_triggered(binding(1), CREATED)


def test_a_time_that_cannot_be_read_is_named() -> None:
    with pytest.raises(ObjectError, match=r"spec\.rescheduleTriggeredAt"):
        check_times(binding(1, rescheduleTriggeredAt="yesterday"))
    with pytest.raises(ObjectError, match=r"status\.lastScheduledTime"):
        check_times(binding(1, status={"lastScheduledTime": "yesterday"}))


@pytest.mark.parametrize(
    ("trigger", "last", "handled"),
    [
        pytest.param(None, None, False, id="no trigger"),
        pytest.param("2026-11-18T12:00:02Z", None, False, id="never scheduled"),
        pytest.param("2026-11-18T12:00:02Z", "2026-11-18T12:00:01Z", False, id="not scheduled since"),
        pytest.param("2026-11-18T12:00:02Z", "2026-11-18T12:00:02Z", True, id="carried out"),
        pytest.param("2026-11-18T12:00:02Z", "noon", True, id="there is nothing to wait for"),
    ],
)
def test_a_trigger_is_pending_until_it_is_handled(
    trigger: str | None, last: str | None, *, handled: bool
) -> None:
    found = binding(4, status={"lastScheduledTime": last}, rescheduleTriggeredAt=trigger)
    assert is_handled(found) is handled
