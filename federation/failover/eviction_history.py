"""The history of a workload's failovers: what it blocks, how many moves brought nothing, when it is given up.

A move brought nothing if the copy that it made was never Healthy. The history has one entry for each cluster,
of its newest eviction. An entry is forgotten when its block has ended and it counts for nothing any more.
"""

from collections.abc import Collection
from typing import NamedTuple

from federation.api import ActiveEviction, ResourceBinding
from federation.api.eviction_blocks import find_block_end, read_application_failover, read_eviction_time
from federation.failover.health_clock import HealthClock
from reberth.values.timestamp import TimeError, parse_time, write_time

APPLICATION_FAILURE = "ApplicationFailure"
MOST_ENTRIES = 64
_MOST_FRUITLESS = 64

History = tuple[ActiveEviction, ...]


class GiveUpRules(NamedTuple):
    """After how many fruitless moves within a time a workload is given up, and for how long."""

    after: int = 2
    within: float = 48 * 3600.0
    lasting: float = 24 * 3600.0


def count_fruitless(
    binding: ResourceBinding, cluster: str, copy: HealthClock, rules: GiveUpRules, *, now: float
) -> int:
    """Count the moves in a row that have brought nothing, with the one that brought the workload here.

    It made the copy, or let the workload return to one that it had left.
    """
    last = find_newest(binding)
    moved_at = read_eviction_time(last) if last else None
    if last is None or moved_at is None or now - moved_at > rules.within:
        return 0
    if _is_since(copy.reported, moved_at):
        return 0 if copy.is_settled else last.fruitless + 1
    has_returned = any(each.cluster_name == cluster for each in binding.spec.active_eviction_history or ())
    return last.fruitless + 1 if has_returned and not _is_since(copy.failing, moved_at) else 0


def find_end_of_giving_up(
    binding: ResourceBinding, fruitless: int, rules: GiveUpRules, *, now: float
) -> float | None:
    """Return until when it is given up after so many moves that brought nothing; None if it is not."""
    last = find_newest(binding)
    moved_at = read_eviction_time(last) if last else None
    if fruitless < rules.after or moved_at is None:
        return None
    return end if (end := moved_at + rules.lasting) > now else None


def find_newest(binding: ResourceBinding) -> ActiveEviction | None:
    dated = [
        (at, each)
        for each in binding.spec.active_eviction_history or ()
        if each.reason == APPLICATION_FAILURE and (at := read_eviction_time(each)) is not None
    ]
    return max(dated, key=lambda each: each[0])[1] if dated else None


def add_evictions(
    binding: ResourceBinding, fruitless: dict[str, int], rules: GiveUpRules, *, now: float
) -> History:
    """Return the history with evictions from these clusters, and how many moves had brought nothing."""
    new = tuple(
        ActiveEviction(name, write_time(now), APPLICATION_FAILURE, min(count, _MOST_FRUITLESS))
        for name, count in sorted(fruitless.items())
    )
    kept = prune_history(binding, None, rules, now=now)
    return (*(each for each in kept if each.cluster_name not in fruitless), *new)[-MOST_ENTRIES:]


def forget_evictions(binding: ResourceBinding, clusters: Collection[str]) -> History:
    """Return the history without these clusters: the workload returned there."""
    history = binding.spec.active_eviction_history or ()
    return tuple(each for each in history if each.cluster_name not in clusters)


def prune_history(
    binding: ResourceBinding, clusters: Collection[str] | None, rules: GiveUpRules, *, now: float
) -> History:
    """Return the entries that still count, oldest first. `clusters` are those that exist, None for any."""
    said = read_application_failover(binding)
    if said is None:
        return ()
    kept = [
        each
        for each in binding.spec.active_eviction_history or ()
        if (clusters is None or each.cluster_name in clusters)
        and _counts(each, said.block_predecessor_seconds, rules, now)
    ]
    return tuple(sorted(kept, key=lambda each: read_eviction_time(each) or 0.0))


def _counts(entry: ActiveEviction, seconds: int, rules: GiveUpRules, now: float) -> bool:
    at = read_eviction_time(entry)
    remembered = at is not None and now - at <= max(rules.within, rules.lasting)
    return remembered or find_block_end(entry, seconds, now=now) > now


def _is_since(time: str | None, moved_at: float) -> bool:
    try:
        return time is not None and parse_time(time) >= moved_at
    except TimeError:
        return False
