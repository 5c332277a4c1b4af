"""The expiry of a finished WorkloadRebalancer (ttlSecondsAfterFinished)."""

from federation.api import ObservedWorkload, RebalancerStatus, WorkloadRebalancer
from reberth.values.timestamp import parse_time, write_time


def find_finish(before: RebalancerStatus, entries: tuple[ObservedWorkload, ...], *, now: float) -> str | None:
    """Return when the last entry got its result: now, if results have changed; None until all have one."""
    if any(entry.result is None for entry in entries):
        return None
    if before.finish_time and _results(before.observed_workloads or ()) == _results(entries):
        return before.finish_time
    return write_time(now)


def seconds_left(rebalancer: WorkloadRebalancer, *, now: float) -> float | None:
    """Return the seconds until it is deleted: 0 is now, None is not planned."""
    lifetime, finished = rebalancer.spec.ttl_seconds_after_finished, rebalancer.status.finish_time
    is_current = rebalancer.status.observed_generation == rebalancer.metadata.generation
    if lifetime is None or finished is None or not is_current:
        return None
    return max(0.0, parse_time(finished) + lifetime - now)


def _results(entries: tuple[ObservedWorkload, ...]) -> list[object]:
    return [(entry.workload, entry.result) for entry in entries]
