from typing import Any

import msgspec
import pytest

from federation.failover.health_clock import MOMENT, CopyHealth, read_health_clock, tell_health
from federation.objects.conditions import put_condition
from reberth.records import Condition
from reberth.values.timestamp import write_time

NOW = 1_800_000_000.0
WELL, ILL, UNSURE = CopyHealth("Healthy"), CopyHealth("Unhealthy"), CopyHealth("Unknown")
ROLLING = CopyHealth("Unhealthy", is_rolling_out=True)
Conditions = tuple[Condition, ...]


def lived(*life: tuple[CopyHealth, float]) -> Conditions:
    """The conditions after a copy was seen like this, so many seconds after NOW."""
    has: Conditions = ()
    for copy, at in life:
        for wanted in tuple(tell_health(has, copy, now=NOW + at)):
            changed: Any = put_condition(has, wanted, now=NOW + at)
            has = msgspec.convert(changed, Conditions) if changed else has
    return has


def failing_since(*life: tuple[CopyHealth, float]) -> str | None:
    return read_health_clock(lived(*life)).failing


def test_a_failure_begins_when_the_copy_is_first_unhealthy_and_ends_when_it_is_healthy() -> None:
    assert failing_since((WELL, 0)) is None
    assert failing_since((WELL, 0), (ILL, 5), (ILL, 90)) == write_time(NOW + 5)
    assert failing_since((ILL, 0), (ILL, 5)) == write_time(NOW)
    assert failing_since((ILL, 0), (WELL, 5)) is None


def test_a_copy_that_never_failed_has_no_condition_that_says_so() -> None:
    assert [each.type for each in lived((WELL, 0), (WELL, 9))] == ["Reported", "Settled"]
    assert [each.type for each in lived((ROLLING, 0))] == ["Reported", "Settled"]


def test_a_crash_loop_whose_pods_are_ready_for_a_moment_fails_all_the_time() -> None:
    loop = [(ILL, 0.0)] + [
        (copy, at + wait) for at in range(20, 400, 40) for copy, wait in ((WELL, 0), (ILL, 2))
    ]
    assert failing_since(*loop) == write_time(NOW)
    assert failing_since(*loop, (WELL, 400), (WELL, 405)) is None, "while it is well nothing is to be done"
    assert failing_since(*loop, (WELL, 400), (WELL, 409), (ILL, 409)) == write_time(NOW)


def test_a_copy_that_was_well_for_longer_begins_to_fail_anew() -> None:
    later = 20 + MOMENT
    assert failing_since((ILL, 0), (WELL, 20), (ILL, later)) == write_time(NOW + later)


def test_unknown_health_neither_begins_nor_ends_a_failure() -> None:
    assert failing_since((WELL, 0), (UNSURE, 5)) is None
    assert failing_since((ILL, 0), (UNSURE, 5), (UNSURE, 50)) == write_time(NOW)
    assert failing_since((WELL, 0), (UNSURE, 5), (ILL, 9)) == write_time(NOW + 9)
    assert read_health_clock(lived((UNSURE, 5), (UNSURE, 9))).unknown == write_time(NOW + 5)


def test_a_rollout_is_no_failure() -> None:
    assert failing_since((WELL, 0), (ROLLING, 5), (ROLLING, 600)) is None
    assert failing_since((WELL, 0), (ROLLING, 5), (ILL, 600)) == write_time(NOW + 600)
    assert failing_since((ILL, 0), (ROLLING, 5), (WELL, 6), (ILL, 7)) == write_time(NOW + 7)


def test_settled_stays_and_the_first_report_is_remembered() -> None:
    clock = read_health_clock(lived((ILL, 0), (WELL, 5), (ILL, 50)))
    assert clock.is_settled
    assert clock.reported == write_time(NOW)
    assert not read_health_clock(lived((ILL, 0), (ILL, 5))).is_settled


def test_a_copy_that_was_well_for_moments_only_has_not_settled() -> None:
    loop = [(copy, at + wait) for at in range(20, 400, 40) for copy, wait in ((WELL, 0.0), (ILL, 9))]
    assert not read_health_clock(lived(*loop)).is_settled
    assert not read_health_clock(lived((WELL, 0), (ROLLING, 9), (ROLLING, 60))).is_settled
    assert read_health_clock(lived(*loop, (WELL, 400), (ILL, 400 + MOMENT), (ILL, 411))).is_settled
    assert read_health_clock(lived((WELL, 0), (WELL, 99), (ILL, 101))).is_settled


@pytest.mark.parametrize("message", ["", "It was failing since yesterday-at-noon-or-so.", None, "x" * 1024])
def test_a_message_of_somebody_else_is_no_clock(message: str | None) -> None:
    odd = Condition("Failing", "False", "Recovered", message, write_time(NOW))
    found = [each for each in tell_health((odd,), ILL, now=NOW + 1) if each.type == "Failing"]
    assert found[0].last_transition_time is None
