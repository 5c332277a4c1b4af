"""The clock of a copy's health: conditions of its Work, which survive restarts and changes of the leader.

`Reported` is True since the first status came from the member, `Settled` since the copy was Healthy for the
first time, and `Failing` while it is Unhealthy. A crash loop shows its pods as ready for a moment in every
round: a copy that is Unhealthy again soon after it was Healthy has been failing all the time, and if that was
its first time, it has not settled.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from federation.objects.conditions import find_condition
from federation.objects.health import HEALTHY, UNHEALTHY
from federation.objects.template import Object
from reberth.records import Condition
from reberth.values.timestamp import TimeError, parse_time

REPORTED, SETTLED, FAILING = "Reported", "Settled", "Failing"
MOMENT = 10.0
"""Seconds for which a copy must be Healthy until its failure is over, and until it has settled."""
ROLLING_OUT = "RollingOut"
_FAILURE_BEGAN = re.compile(r"It was failing since (\S{20,35})\.")
_TOLD = {
    REPORTED: ("StatusReported", "The member has reported a status."),
    SETTLED: ("WasHealthy", "It has been Healthy."),
}
_RECOVERED, _IS_WELL = "Recovered", "It is Healthy."
_NOT_YET = ("NotHealthyYet", "It has not been Healthy yet.")
_IS_FAILING = ("Unhealthy", "It is not as its kind should be.")
_NOBODY_KNOWS = ("HealthUnknown", "Nobody knows whether it is as its kind should be.")
_IS_ROLLING_OUT = (ROLLING_OUT, "It is not complete because a new version is being rolled out.")


class CopyHealth(NamedTuple):
    """What a member says of a copy now."""

    health: str
    is_rolling_out: bool = False


class HealthClock(NamedTuple):
    """Since when a copy is reported, and fails or is unknown; and whether it was ever Healthy."""

    reported: str | None = None
    is_settled: bool = False
    failing: str | None = None
    unknown: str | None = None
    well: str | None = None
    """Since when it has not been failing any more; None if it never failed."""
    is_rolling_out: bool = False


def read_health_clock(conditions: tuple[Condition, ...] | None) -> HealthClock:
    reported, settled = find_condition(conditions, REPORTED), find_condition(conditions, SETTLED)
    failing = find_condition(conditions, FAILING)
    return HealthClock(
        reported.last_transition_time if reported else None,
        settled is not None and settled.status == "True",
        failing.last_transition_time if failing and failing.status == "True" else None,
        failing.last_transition_time if failing and failing.status == "Unknown" else None,
        failing.last_transition_time if failing and failing.status == "False" else None,
        failing is not None and failing.reason == ROLLING_OUT,
    )


def tell_health(has: tuple[Condition, ...] | None, copy: CopyHealth, *, now: float) -> Iterator[Condition]:
    """Yield the conditions that a copy's health calls for. Failing is not told before it ever failed."""
    yield Condition(REPORTED, "True", *_TOLD[REPORTED])
    is_settled = copy.health == HEALTHY or _has_settled(find_condition(has, SETTLED), now)
    yield Condition(SETTLED, str(is_settled), *(_TOLD[SETTLED] if is_settled else _NOT_YET))
    if (failing := _tell_failing(find_condition(has, FAILING), copy, now)) is not None:
        yield failing


def changes_failure(had: tuple[Condition, ...] | None, written: Iterable[Object]) -> bool:
    """Tell whether these conditions begin or end a failure."""
    before = find_condition(had, FAILING)
    after = next((each for each in written if each["type"] == FAILING), None)
    return after is not None and (before.status if before else "False") != after["status"]


def _has_settled(had: Condition | None, now: float) -> bool:
    """Tell whether a copy that is not Healthy any more was so for longer than a moment."""
    if had is None or had.status != "True":
        return False
    try:
        return now - parse_time(had.last_transition_time or "") >= MOMENT
    except TimeError:
        return True


def _tell_failing(had: Condition | None, copy: CopyHealth, now: float) -> Condition | None:
    is_failing = had is not None and had.status == "True"
    if copy.health == UNHEALTHY and not copy.is_rolling_out:
        return Condition(FAILING, "True", *_IS_FAILING, _find_earlier_start(had, now))
    if copy.health not in {HEALTHY, UNHEALTHY}:
        return had if is_failing else Condition(FAILING, "Unknown", *_NOBODY_KNOWS)
    if had is None:
        return None
    reason, message = _IS_ROLLING_OUT if copy.is_rolling_out else (_RECOVERED, _say_end(had))
    return Condition(FAILING, "False", reason, message)


def _say_end(had: Condition) -> str:
    """Say when the failure that is over began; a later look at the same end says the same."""
    if had.status == "True":
        return f"It was failing since {had.last_transition_time}."
    return (had.message if had.reason == _RECOVERED else None) or _IS_WELL


def _find_earlier_start(had: Condition | None, now: float) -> str | None:
    """Return when the failure began if the copy was well for a moment only."""
    found = _FAILURE_BEGAN.fullmatch((had.message or "") if had and had.status == "False" else "")
    if had is None or found is None:
        return None
    try:
        parse_time(found[1])
        was_well_for = now - parse_time(had.last_transition_time or "")
    except TimeError:
        return None
    return found[1] if was_well_for < MOMENT else None


class ClockReader:
    """Reads the times of clocks that other processes may have written, on machines with clocks of their own.

    A time in the future counts as the moment at which it was first seen. A time from before this process
    began is judged later, by how far clocks may differ.
    """

    def __init__(self, *, began: float, skew: float) -> None:
        self._began = began
        self._skew = skew
        self._first_seen: dict[tuple[str, str], float] = {}

    def read(self, owner: str, time: str, *, now: float) -> float:
        """Return when it was; the `owner` of the time keeps two of the same text apart."""
        try:
            at = parse_time(time)
        except TimeError:
            at = now + 1
        if at > now:
            return self._first_seen.setdefault((owner, time), now)
        at = min(at, self._first_seen.get((owner, time), at))
        return at + self._skew if at < self._began else at

    def forget(self, owner: str) -> None:
        for each in [each for each in self._first_seen if each[0] == owner]:
            del self._first_seen[each]
