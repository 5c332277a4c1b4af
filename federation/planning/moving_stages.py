"""The stages by which workloads leave clusters and return: evictions, handovers, rebalancers, failback."""

from functools import partial
from typing import NamedTuple

import msgspec

from federation.api import ResourceBinding, WorkloadRebalancer
from federation.failover.eviction_tasks import (
    change_failover_condition,
    write_assessment,
    write_tasks,
)
from federation.objects.names import Key
from federation.planning.dry_run import answer_dry_run, is_answered
from federation.planning.evictions import assess_evictions, list_concerned, list_evictions
from federation.planning.handover_status import with_newest_status
from federation.planning.hub_objects import HubObjects, key_of_bound
from federation.planning.plan import Action
from federation.planning.rebalanced_bindings import Lookup, binding_key, choose_handover
from federation.planning.rehearsal import Rehearsal, list_clusters
from federation.rebalancing.failback import (
    NoAction,
    RecordGroup,
    TriggerFailback,
    decide_failback,
    is_returning,
    request_return,
    wants_failback,
)
from federation.rebalancing.handover import (
    Hold,
    Ready,
    Return,
    Wait,
    is_overdue,
    kept_replicas,
    review_handover,
    write_handover_end,
    write_return,
)
from federation.rebalancing.review import Limits, Trigger, list_wanted, review, set_limits
from federation.rebalancing.triggers import with_trigger, write_trigger
from federation.scheduling import Fleet, Reason, name_of
from reberth.values.timestamp import write_time

HandoverStep = Ready | Wait | Return | Hold | None
FailbackStep = RecordGroup | TriggerFailback | NoAction
_READY, _LATE = "the new copies are ready", "the new copies were not ready in time"


def evict(rehearsal: Rehearsal) -> bool:
    """Start the evictions that are due."""
    hub, now, is_changed = rehearsal.hub, rehearsal.now, False
    for key, binding in hub.list_bindings():
        with rehearsal.contained(name_of(binding)):
            found = list_evictions(binding, hub.find_cluster, rehearsal.causes)
            due = [task for cause, task in found if cause.at <= now]
            if due:
                had = binding.spec.graceful_eviction_tasks or ()
                hub.patch_binding(key, write_tasks(binding, (*had, *due)))
                is_changed = True
            for task in due:
                leaving = tuple(each for each in list_clusters(binding) if each.name == task.from_cluster)
                rehearsal.tell(Action.EVICT, name_of(binding), task.message, origin=leaving)
    return is_changed


def end_evictions(rehearsal: Rehearsal) -> bool:
    """End and withdraw evictions."""
    is_changed = False
    for key, binding in rehearsal.hub.list_bindings():
        if binding.spec.graceful_eviction_tasks and binding.metadata.deletion_timestamp is None:
            with rehearsal.contained(name_of(binding)):
                is_changed = _end_evictions(rehearsal, key, binding) or is_changed
    return is_changed


def _end_evictions(rehearsal: Rehearsal, key: Key, binding: ResourceBinding) -> bool:
    hub, now = rehearsal.hub, rehearsal.now
    clusters = (hub.find_cluster(name) for name in list_concerned(binding))
    found = assess_evictions(
        binding,
        hub.works_of(key),
        (each for each in clusters if each is not None),
        rehearsal.causes,
        patience=rehearsal.rules.patience,
        now=now,
    )
    change, written = write_assessment(binding, found), binding
    if change:
        written = hub.patch_binding(key, change)
    status = change_failover_condition(written, found, now=now)
    if status:
        hub.patch_binding(key, status)
    for task in found.ended:
        reason = f"{task.from_cluster}: the new copies are healthy, or its grace period is over"
        rehearsal.tell(Action.END_EVICTION, name_of(binding), reason)
    for task in found.withdrawn:
        reason = f"{task.from_cluster}: its cause is gone"
        rehearsal.tell(Action.WITHDRAW_EVICTION, name_of(binding), reason, to=list_clusters(written))
    return bool(change or status)


def review_binding_handover(rehearsal: Rehearsal, binding: ResourceBinding) -> HandoverStep:
    """Tell what becomes of the handover of a binding; None if there is none."""
    hub = rehearsal.hub
    if not kept_replicas(binding) or binding.metadata.deletion_timestamp is not None:
        return None
    return review_handover(_renew(hub, binding), lambda: Fleet(hub.cluster_rows), now=rehearsal.now)


def _renew(hub: HubObjects, binding: ResourceBinding) -> ResourceBinding:
    return with_newest_status(binding, hub.works_of(key_of_bound(binding)), hub.find_cluster)


def end_handovers(rehearsal: Rehearsal) -> bool:
    """Let old copies go, or workloads return."""
    hub, now, is_changed = rehearsal.hub, rehearsal.now, False
    for key, binding in hub.list_bindings():
        with rehearsal.contained(name_of(binding)):
            match review_binding_handover(rehearsal, binding):
                case Ready(in_time):
                    written = hub.patch_binding(key, write_handover_end(binding))
                    action, reason = (Action.HAND_OVER, _READY) if in_time else (Action.LET_GO, _LATE)
                    kept = binding.spec.handover.clusters if binding.spec.handover else None
                    rehearsal.tell(
                        action, name_of(binding), reason, origin=kept or (), to=list_clusters(written)
                    )
                    is_changed = True
                case Return() as back:
                    written = hub.patch_binding(key, write_return(binding, back, now=now))
                    rehearsal.tell_move(Action.RETURN, binding, written, _LATE)
                    is_changed = True
    return is_changed


def rebalance(rehearsal: Rehearsal) -> bool:
    """Answer and carry out WorkloadRebalancers."""
    is_changed = False
    for name in sorted(rehearsal.hub.rebalancers):
        one = rehearsal.hub.rebalancers[name]
        if one.metadata.deletion_timestamp is None:
            with rehearsal.contained(f"WorkloadRebalancer {name}"):
                is_changed = _rebalance(rehearsal, one) or is_changed
    return is_changed


def _rebalance(rehearsal: Rehearsal, one: WorkloadRebalancer) -> bool:
    hub, now = rehearsal.hub, rehearsal.now
    lookup = Lookup(hub.find_binding, hub.list_metas)
    limits = set_limits(one, timeout=rehearsal.rules.rebalancer_handover)
    if one.spec.dry_run and is_answered(one):
        return False
    wanted, find = list_wanted(one, lookup.resolve), lookup.find_binding
    if one.spec.dry_run:
        fork = rehearsal.scheduler.fork()
        hub.put_rebalancer_status(
            one.metadata.name, answer_dry_run(one, wanted, find, fork, limits=limits, now=now)
        )
        return True
    found = review(one, wanted, find, limits=limits, now=now, renew=partial(_renew, hub))
    hub.put_rebalancer_status(one.metadata.name, found.status)
    for trigger in found.triggers:
        _trigger(rehearsal, one, trigger, limits)
    return bool(found.triggers) or found.status != one.status


def _trigger(rehearsal: Rehearsal, one: WorkloadRebalancer, trigger: Trigger, limits: Limits) -> None:
    handover = choose_handover(one, trigger.binding, limits)
    reason = f"WorkloadRebalancer {one.metadata.name} requests a fresh scheduling"
    key, request = binding_key(trigger.workload), _Request(Action.REBALANCE, reason, trigger.at, handover)
    _write_trigger(rehearsal, key, trigger.binding, request)


class _Request(NamedTuple):
    """A request for a fresh scheduling: its time, and how long new copies have to get ready."""

    action: Action
    reason: str
    at: str
    handover: int | None


def _write_trigger(rehearsal: Rehearsal, key: Key, binding: ResourceBinding, request: _Request) -> None:
    """Trigger a binding, with its new clusters if they can be decided now."""
    scheduler, now, change = rehearsal.scheduler, rehearsal.now, None
    at, handover, reason = request.at, request.handover, request.reason
    if "scheduler" in rehearsal.rules.controllers:
        triggered = with_trigger(binding, at, handover)
        decision, change = scheduler.decide_triggered(key, triggered, now=now)
        if change is not None:
            scheduler.reserve(key, triggered, decision, now=now)
        elif decision.reason is not Reason.SUCCESS:
            reason = f"{reason}; it stays: {decision.message}"
    written = rehearsal.hub.patch_binding(key, write_trigger(binding, at, handover, change or {}))
    rehearsal.tell_move(request.action, binding, written, reason)


def fail_back(rehearsal: Rehearsal) -> bool:
    """Let workloads return to earlier cluster groups, a few at a time."""
    hub, is_changed, turns = rehearsal.hub, False, _count_turns(rehearsal)
    for key, binding in hub.list_bindings():
        if not wants_failback(binding):
            continue
        with rehearsal.contained(name_of(binding)):
            match decide_binding_failback(rehearsal, key, binding):
                case RecordGroup(group):
                    said = None if group is None else msgspec.to_builtins(group)
                    hub.patch_binding(key, {"status": {"failback": said}})
                    is_changed = True
                case TriggerFailback(home) if turns > 0:
                    turns -= 1
                    _fail_back(rehearsal, key, binding, home)
                    is_changed = True
    return is_changed


def decide_binding_failback(rehearsal: Rehearsal, key: Key, binding: ResourceBinding) -> FailbackStep:
    fleet = rehearsal.scheduler.see_fleet(key, binding, now=rehearsal.now)
    return decide_failback(binding, fleet, now=rehearsal.now)


def _count_turns(rehearsal: Rehearsal) -> int:
    """Count how many more workloads may return at the same time."""
    turns = rehearsal.rules.failback_at_once
    for _, binding in rehearsal.hub.list_bindings():
        with rehearsal.contained(name_of(binding)):
            turns -= is_returning(binding) and not is_overdue(binding, now=rehearsal.now)
    return turns


def _fail_back(rehearsal: Rehearsal, key: Key, binding: ResourceBinding, group: str) -> None:
    timeout, now = rehearsal.rules.failback_handover, rehearsal.now
    at, seconds = request_return(binding, timeout=timeout, now=now)
    reason = f"cluster group {group} has room for all replicas again"
    request = _Request(Action.FAIL_BACK, reason, write_time(at), seconds)
    _write_trigger(rehearsal, key, binding, request)
