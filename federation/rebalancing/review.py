"""The review of a WorkloadRebalancer: its new status, and which bindings to trigger.

A trigger is written in two steps: first its time into the status, then into the binding. A process that
restarts between them finds the time in the status and writes the same one, so that no binding is rescheduled
twice for one request. The result is read from the binding alone: it was scheduled since the trigger.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import msgspec
from msgspec.structs import replace

from federation.api import (
    ObservedWorkload,
    RebalancedWorkload,
    RebalancerStatus,
    ResourceBinding,
    WorkloadRebalancer,
)
from federation.rebalancing.entries import merge_entries
from federation.rebalancing.expiry import find_finish
from federation.rebalancing.progress import (
    Moment,
    Renew,
    WaitingFor,
    as_told,
    count_moving,
    find_waiting,
    start_entry,
    trigger_of,
    update_entry,
    wait_for_budget,
)
from federation.rebalancing.replicas import count_all
from federation.rebalancing.triggers import check_times, is_triggered
from reberth.values.object_error import ObjectError
from reberth.values.text_limits import cut
from reberth.values.timestamp import parse_time

Find = Callable[[RebalancedWorkload], ResourceBinding | None]
Bindings = dict[RebalancedWorkload, ResourceBinding | None]


class Limits(msgspec.Struct, frozen=True):
    """Seconds for which old copies stay at most (None: not at all), and replicas that may move at once."""

    handover: int | None = None
    patience: float = 600.0
    most_moving: int | None = None


class Trigger(msgspec.Struct, frozen=True):
    """A binding to reschedule, after the status has been written."""

    workload: RebalancedWorkload
    binding: ResourceBinding
    at: str


class Review(msgspec.Struct, frozen=True):
    """The result of a review; `look_again` is when the next timeout ends."""

    status: RebalancerStatus
    triggers: tuple[Trigger, ...] = ()
    waiting: Counter[WaitingFor] = msgspec.field(default_factory=Counter)
    look_again: float | None = None


def set_limits(rebalancer: WorkloadRebalancer, *, timeout: float) -> Limits:
    """Read the limits of the rebalancer; `timeout` is the default."""
    spec = rebalancer.spec
    seconds = spec.handover_timeout_seconds or max(1, int(timeout))
    return Limits(seconds if spec.make_before_break else None, seconds, spec.max_moving_replicas)


def list_wanted(
    rebalancer: WorkloadRebalancer, resolve: Callable[[WorkloadRebalancer], Iterable[RebalancedWorkload]]
) -> list[RebalancedWorkload]:
    """List the workloads of the spec. Selectors are resolved once for each generation of it."""
    named = list(rebalancer.spec.workloads or ())
    if rebalancer.status.observed_generation != rebalancer.metadata.generation:
        return [*named, *resolve(rebalancer)]
    return [*named, *(entry.workload for entry in rebalancer.status.observed_workloads or ())]


def review(
    rebalancer: WorkloadRebalancer,
    wanted: Iterable[RebalancedWorkload],
    find: Find,
    *,
    limits: Limits,
    now: float,
    renew: Renew = as_told,
) -> Review:
    """Review all workloads of a rebalancer. Raises TimeError if its own times cannot be read.

    One without a creation time, in a file for example, is created now.
    """
    created = rebalancer.metadata.creation_timestamp
    moment = Moment(parse_time(created) if created else now, now)
    before = rebalancer.status
    known = {entry.workload: entry for entry in merge_entries(wanted, before.observed_workloads or ())}
    bindings = {workload: find(workload) for workload in known}
    looked = [_look(entry, bindings, renew) for entry in known.values()]
    entries, look_again = _give_turns(looked, bindings, limits, moment)
    status = RebalancerStatus(entries, rebalancer.metadata.generation, find_finish(before, entries, now=now))
    return Review(
        status,
        tuple(_list_triggers(entries, bindings)),
        Counter(filter(None, (find_waiting(each, bindings[each.workload]) for each in entries))),
        look_again,
    )


def _look(entry: ObservedWorkload, bindings: Bindings, renew: Renew) -> ObservedWorkload:
    """Update one entry. A binding that cannot be read does not keep the others from being updated."""
    binding = bindings[entry.workload]
    try:
        if binding is not None:
            check_times(binding)
    except ObjectError as error:
        bindings[entry.workload] = None
        return replace(entry, message=cut(str(error)))
    return update_entry(entry, binding, renew)


def _give_turns(
    entries: Iterable[ObservedWorkload],
    bindings: Bindings,
    limits: Limits,
    moment: Moment,
) -> tuple[tuple[ObservedWorkload, ...], float | None]:
    """Start as many entries as may move at once; return them, and when the first one times out."""
    entries = tuple(entries)
    ends = [(each, _end_of(each, limits)) for each in entries]
    moving = {each.workload: count_moving(each, until=end, now=moment.now) for each, end in ends}
    under_way = sum(moving.values())
    given: list[ObservedWorkload] = []
    for entry in entries:
        binding = bindings[entry.workload]
        if binding is None or entry.result is not None or entry.triggered_at is not None:
            given.append(entry)
            continue
        size = count_all(binding.spec.clusters or ())
        if limits.most_moving is not None and under_way and under_way + size > limits.most_moving:
            given.append(wait_for_budget(entry))
            continue
        under_way += size
        given.append(start_entry(entry, binding, moment))
    is_held = any(each.result is None and each.triggered_at is None for each in given)
    waits = [end for each, end in ends if moving[each.workload] and each.result is not None]
    return tuple(given), min(waits) if is_held and waits else None


def _end_of(entry: ObservedWorkload, limits: Limits) -> float:
    return (trigger_of(entry) or 0.0) + limits.patience


def _list_triggers(entries: Iterable[ObservedWorkload], bindings: Bindings) -> Iterator[Trigger]:
    for entry in entries:
        binding, trigger = bindings[entry.workload], trigger_of(entry)
        if binding is None or trigger is None or entry.result is not None or entry.triggered_at is None:
            continue
        if not is_triggered(binding, trigger):
            yield Trigger(entry.workload, binding, entry.triggered_at)
