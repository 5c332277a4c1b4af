"""Cron schedules: their grammar, and when one has begun last within a time."""

from datetime import UTC, datetime, timedelta

import pytest

from rescheduler.budgets.cron import read_cron

HOUR = timedelta(hours=1)


def began(schedule: str, now: str, within: timedelta = HOUR) -> bool:
    """Tell whether the schedule has begun within a time before `now`."""
    found, until = read_cron(schedule), datetime.fromisoformat(now).replace(tzinfo=UTC)
    assert found is not None
    return found.find_last(until - within, until) is not None


@pytest.mark.parametrize(
    ("schedule", "now", "expected"),
    [
        ("0 9 * * mon-fri", "2026-11-19T09:59", True),  # a Thursday
        ("0 9 * * mon-fri", "2026-11-19T10:01", False),
        ("0 9 * * mon-fri", "2026-11-21T09:30", False),  # a Saturday
        ("0 9 * * 1-5", "2026-11-19T09:00", True),
        ("0 9 * * SUN,thu", "2026-11-19T09:30", True),
        ("*/20 * * * *", "2026-11-19T12:59", True),
        ("30/10 11 * * *", "2026-11-19T12:49", True),
        ("30/10 11 * * *", "2026-11-19T12:50", False),
        ("0 9-17/4 * * *", "2026-11-19T13:30", True),
        ("0 9-17/4 * * *", "2026-11-19T14:30", False),
        ("0 0 1 jan *", "2027-01-01T00:30", True),
        ("0 0 1 1 *", "2026-11-19T00:30", False),
        ("59 23 * * *", "2026-11-19T00:30", True),  # of the day before
        ("0 0 13 * fri", "2026-11-13T00:30", True),
        ("0 0 13 * thu", "2026-11-19T00:30", True),  # either is enough
        ("0 0 13 * *", "2026-11-19T00:30", False),
        ("0 0 13 * */1", "2026-11-19T00:30", False),
        ("0 0 */2 * thu", "2026-11-12T00:30", True),  # a restricted day, too
        ("0 0 ? * thu", "2026-11-19T00:30", True),
        ("0 0 29 2 *", "2028-02-29T00:30", True),
        ("@hourly", "2026-11-19T12:59", True),
        ("@daily", "2026-11-19T12:59", False),
        ("@midnight", "2026-11-19T00:59", True),
        ("@weekly", "2026-11-22T00:30", True),
        ("@monthly", "2026-12-01T00:30", True),
        ("@annually", "2027-01-01T00:30", True),
        ("@yearly", "2027-01-02T00:30", False),
    ],
)
def test_a_schedule_has_begun_within_the_last_hour(schedule: str, now: str, *, expected: bool) -> None:
    assert began(schedule, now) is expected


def test_the_end_of_the_time_belongs_to_it_and_its_beginning_does_not() -> None:
    assert began("0 9 * * *", "2026-11-19T09:00")
    assert not began("0 9 * * *", "2026-11-19T10:00")
    assert began("0 9 * * *", "2026-11-19T10:00", timedelta(hours=1, seconds=1))


def test_a_time_may_be_of_many_days_and_is_of_a_year_at_most() -> None:
    assert began("0 9 * * mon", "2026-11-19T08:00", timedelta(days=3))
    assert not began("0 9 * * mon", "2026-11-19T08:00", timedelta(days=2))
    assert began("0 0 1 1 *", "2026-12-31T00:00", timedelta(days=100_000))
    assert not began("0 0 29 2 *", "2026-11-19T00:00", timedelta(days=100_000))


@pytest.mark.parametrize(
    "text",
    [
        *("", "@every 1h", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *"),
        *(
            "* * * * 7",
            "5-1 * * * *",
            "*/0 * * * *",
            "1,,2 * * * *",
            "x * * * *",
            "1- * * * *",
            "* * * mon *",
        ),
        *(
            "TZ=Europe/Berlin 0 9 * * *",
            "-1 * * * *",
            "1/2/3 * * * *",
            "\u0661 * * * *",
            "9" * 5000 + " * * * *",
            "0," * 1000 + "0 * * * *",
        ),
    ],
)
def test_another_grammar_is_no_schedule(text: str) -> None:
    assert read_cron(text) is None


def test_the_last_of_several_times_is_found() -> None:
    found, until = read_cron("15,45 8,12 * * *"), datetime(2026, 11, 19, 12, 44, tzinfo=UTC)
    assert found is not None
    assert found.find_last(until - timedelta(days=1), until) == datetime(2026, 11, 19, 12, 15, tzinfo=UTC)
