"""Tolerations of NoExecute taints: when a workload has to leave, and the rate of evictions."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from federation.api import ClusterToleration
from federation.api.clusters import NO_EXECUTE
from reberth.records import Taint
from reberth.selectors import tolerates
from reberth.values.token_bucket import TokenBucket


class Departure(NamedTuple):
    """When a workload has to leave, and because of which taint."""

    at: float
    taint: Taint


def find_departure(
    taints: Iterable[Taint] | None,
    tolerations: Iterable[ClusterToleration] | None,
    since: Callable[[Taint], float],
) -> Departure | None:
    """Return the earliest time at which a taint is no longer tolerated; None if the workload may stay.

    The time counts from when the taint was added. Of several tolerations for a taint the first one counts.
    """
    departures = (
        Departure(since(taint) + seconds, taint)
        for taint in taints or ()
        if taint.effect == NO_EXECUTE and (seconds := _find_patience(taint, tolerations or ())) is not None
    )
    return min(departures, key=lambda each: each.at, default=None)


def _find_patience(taint: Taint, tolerations: Iterable[ClusterToleration]) -> float | None:
    """Return the seconds for which the taint is tolerated; None is forever."""
    covering = next((each for each in tolerations if tolerates((each,), taint)), None)
    if covering is None:
        return 0.0
    seconds = covering.toleration_seconds
    return None if seconds is None else max(0.0, float(seconds))


def write_taint(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


class EvictionPace:
    """The rate of evictions: so many a second, one after the other, without a burst."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._bucket = TokenBucket(1)

    def reserve(self, now: float) -> float:
        """Reserve the next turn; return the seconds until it comes."""
        self._bucket.fill(now, rate=self._rate)
        self._bucket.tokens -= 1
        return max(0.0, -self._bucket.tokens / self._rate)
