"""Progress of one rebalanced workload: triggered, scheduled, healthy; or what it waits for."""

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from msgspec.structs import replace

from federation.api import (
    DEFAULT_SCHEDULER,
    SCHEDULED,
    ObservedWorkload,
    RebalanceResult,
    ResourceBinding,
)
from federation.api.labels import SCHEDULABLE
from federation.api.rebalancers import BINDING_NOT_FOUND, NOT_READY_IN_TIME, NOT_SCHEDULED
from federation.rebalancing.handover import last_return
from federation.rebalancing.replicas import count_all, count_moved, is_ready, write_replicas
from federation.rebalancing.triggers import choose_trigger, is_scheduled, is_triggered
from reberth.values.text_limits import cut
from reberth.values.timestamp import parse_time, write_time

HEALTHY, PROGRESSING = "Healthy", "Progressing"


Renew = Callable[[ResourceBinding], ResourceBinding]
"""Gives a binding the newest status of its copies."""


def as_told(binding: ResourceBinding) -> ResourceBinding:
    """Give the binding with the status that it has itself."""
    return binding


class WaitingFor(StrEnum):
    """What an unfinished entry waits for."""

    BINDING = "BindingNotFound"
    UNREADABLE = "BindingUnreadable"
    POLICY = "NoPolicy"
    OTHERS = "FollowsOthers"
    BUDGET = "Budget"
    SUSPENDED = "Suspended"
    OTHER_SCHEDULER = "OtherScheduler"
    SCHEDULER = "Scheduler"
    CLUSTERS = "Unschedulable"
    HEALTH = "Health"


_TEXTS = {
    WaitingFor.BINDING: "No binding found; the workload is rebalanced as soon as it has one.",
    WaitingFor.POLICY: "No policy propagates it any more; it is rebalanced as soon as one does.",
    WaitingFor.OTHERS: "It follows the workloads that require it; rebalance those instead.",
    WaitingFor.BUDGET: "Waiting until fewer replicas are moving.",
    WaitingFor.SUSPENDED: "Scheduling is suspended.",
    WaitingFor.SCHEDULER: "Waiting for the scheduler.",
}


class Moment(NamedTuple):
    """When the rebalancer was created, and the present time."""

    created: float
    now: float


def start_entry(entry: ObservedWorkload, binding: ResourceBinding, moment: Moment) -> ObservedWorkload:
    """Fix the trigger time of an entry, and record where the workload is."""
    trigger = choose_trigger(binding, created=moment.created, now=moment.now)
    return ObservedWorkload(
        entry.workload,
        message=_TEXTS[WaitingFor.SCHEDULER],
        triggered_at=write_time(trigger),
        origin=binding.spec.clusters or (),
    )


def update_entry(
    entry: ObservedWorkload, binding: ResourceBinding | None, renew: Renew = as_told
) -> ObservedWorkload:
    """Update an entry from its binding. One that has to be triggered comes back without a trigger time."""
    if entry.result is RebalanceResult.SUCCESSFUL:
        return entry if binding is None else _look_at_health(entry, binding, renew)
    if entry.reason == NOT_READY_IN_TIME:
        return entry
    lack = _find_lack(binding)
    if binding is None or lack is not None:
        return _fail(entry, lack or WaitingFor.BINDING)
    trigger = trigger_of(entry)
    if trigger is None or (is_scheduled(binding, trigger) and not is_triggered(binding, trigger)):
        return ObservedWorkload(entry.workload)  # also if the scheduler ran before the trigger was written
    if is_scheduled(binding, trigger):
        return _succeed(entry, binding, renew)
    return replace(entry, message=describe(*_find_obstacle(binding)))


def trigger_of(entry: ObservedWorkload) -> float | None:
    return parse_time(entry.triggered_at) if entry.triggered_at else None


def wait_for_budget(entry: ObservedWorkload) -> ObservedWorkload:
    """Let an entry wait until fewer replicas are moving."""
    return replace(entry, message=_TEXTS[WaitingFor.BUDGET])


def find_waiting(entry: ObservedWorkload, binding: ResourceBinding | None) -> WaitingFor | None:
    """Return what the entry waits for; None if it is done."""
    if entry.result is RebalanceResult.SUCCESSFUL:
        return WaitingFor.HEALTH if entry.health == PROGRESSING else None
    if entry.reason == NOT_READY_IN_TIME:
        return None
    if binding is None:
        return WaitingFor.BINDING if entry.result is RebalanceResult.FAILED else WaitingFor.UNREADABLE
    waiting = WaitingFor.BUDGET if entry.triggered_at is None else _find_obstacle(binding)[0]
    return _find_lack(binding) or waiting


def describe(waiting: WaitingFor, detail: str) -> str:
    return cut(detail) or _TEXTS[waiting]


def count_moving(entry: ObservedWorkload, *, until: float, now: float) -> int:
    """Count the moving replicas of an entry; before it is scheduled it may be all of them."""
    if entry.triggered_at is None or entry.result is RebalanceResult.FAILED:
        return 0
    if entry.result is None:
        return count_all(entry.origin or ())
    is_under_way = entry.health == PROGRESSING and now < until
    return count_moved(entry.origin or (), entry.to or ()) if is_under_way else 0


def _fail(entry: ObservedWorkload, lack: WaitingFor) -> ObservedWorkload:
    """Fail an entry for now: without a trigger time it is tried again as soon as nothing is lacking."""
    reason = BINDING_NOT_FOUND if lack is WaitingFor.BINDING else NOT_SCHEDULED
    return ObservedWorkload(entry.workload, RebalanceResult.FAILED, reason=reason, message=_TEXTS[lack])


def _find_lack(binding: ResourceBinding | None) -> WaitingFor | None:
    """Return why no scheduler will ever look at the workload as it is; None if one does."""
    if binding is None:
        return WaitingFor.BINDING
    if binding.spec.placement is None and binding.spec.required_by:
        return WaitingFor.OTHERS
    labels = binding.metadata.labels or {}
    return None if any(label in labels for label in SCHEDULABLE) else WaitingFor.POLICY


def _succeed(entry: ObservedWorkload, binding: ResourceBinding, renew: Renew) -> ObservedWorkload:
    done = replace(
        entry,
        result=RebalanceResult.SUCCESSFUL,
        message=None,
        to=binding.spec.clusters or (),
        health=PROGRESSING,
    )
    return _look_at_health(done, binding, renew)


def _look_at_health(entry: ObservedWorkload, binding: ResourceBinding, renew: Renew) -> ObservedWorkload:
    """Once healthy, an entry stays so: later failures are not part of the rebalancing.

    A binding may still show a copy that was in the same cluster before, and was ready: its Works are asked.
    """
    if entry.health != PROGRESSING:
        return entry
    returned, trigger = last_return(binding), trigger_of(entry)
    if returned is not None and trigger is not None and returned >= trigger:
        back = write_replicas(binding.spec.clusters or ())
        message = f"The new copies were not ready in time; the workload returned to {back}."
        return replace(
            entry, result=RebalanceResult.FAILED, reason=NOT_READY_IN_TIME, message=message, health=None
        )
    is_well = is_ready(binding) and is_ready(renew(binding))
    return replace(entry, health=HEALTHY) if is_well else entry


def _find_obstacle(binding: ResourceBinding) -> tuple[WaitingFor, str]:
    """Return why the binding is not scheduled yet, with the scheduler's own message if it has one."""
    spec = binding.spec
    if spec.suspension and spec.suspension.scheduling:
        return WaitingFor.SUSPENDED, ""
    scheduler = spec.scheduler_name or DEFAULT_SCHEDULER
    if scheduler != DEFAULT_SCHEDULER:
        return WaitingFor.OTHER_SCHEDULER, f"Waiting for the scheduler {scheduler}."
    for each in binding.status.conditions or ():
        if each.type == SCHEDULED and each.status == "False":
            return WaitingFor.CLUSTERS, each.message or ""
    return WaitingFor.SCHEDULER, ""
