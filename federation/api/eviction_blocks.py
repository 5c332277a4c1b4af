"""Until when a workload does not return to the clusters that it was evicted from because it failed there."""

from math import inf

from federation.api.bindings import ActiveEviction, ResourceBinding
from federation.api.placements import ApplicationFailover
from reberth.values.timestamp import TimeError, parse_time

LONGEST_BLOCK = 86400.0
"""Seconds beyond which moves that bring nothing do not lengthen a block."""


def read_application_failover(binding: ResourceBinding) -> ApplicationFailover | None:
    return binding.spec.failover.application if binding.spec.failover else None


def find_blocks(binding: ResourceBinding, *, now: float) -> dict[str, float]:
    """Return until when clusters are blocked, inf for ever; those whose time is over are left out.

    The length is that of the policy as it is now. Without application failover nothing is blocked.
    """
    said = read_application_failover(binding)
    if said is None:
        return {}
    ends = {
        each.cluster_name: find_block_end(each, said.block_predecessor_seconds, now=now)
        for each in binding.spec.active_eviction_history or ()
    }
    return {name: end for name, end in ends.items() if end > now}


def find_block_end(entry: ActiveEviction, seconds: int, *, now: float) -> float:
    """Each move in a row that had brought nothing doubles the block."""
    since = read_eviction_time(entry)
    if seconds == 0 or since is None:
        return inf if seconds == 0 else now
    length = min(seconds * 2.0 ** min(entry.fruitless, 64), LONGEST_BLOCK)
    return min(since, now) + max(length, seconds)


def read_eviction_time(entry: ActiveEviction) -> float | None:
    """Return None for an entry without a time that can be read: other programs may write it."""
    try:
        return parse_time(entry.creation_timestamp or entry.create_timestamp or "")
    except TimeError:
        return None
