"""The stage of application failover: workloads leave clusters in which they fail, or return to them."""

from collections.abc import Iterator

from federation.api import ResourceBinding
from federation.failover.application_failover import FailoverReason, FailoverVerdict
from federation.failover.application_tasks import list_recovered, write_begin, write_return
from federation.failover.storm_brake import StormBrake
from federation.objects.names import Key
from federation.planning.failover.pending_replicas import Gift
from federation.planning.failover.pending_stage import find_planned_gift
from federation.planning.failover.substitutes import (
    Substitute,
    find_way,
    judge_binding,
    report_copies,
)
from federation.planning.plan import Action, PlannedWait, WaitsFor
from federation.planning.rehearsal import Rehearsal, list_clusters
from federation.propagation.binding import is_divided
from federation.scheduling import name_of
from reberth.values.timestamp import TimeError, parse_time, write_time

_NAME = "application_failover"
_QUIET = {FailoverReason.CALM, FailoverReason.EVICTING}


def fail_over(rehearsal: Rehearsal) -> bool:
    """Begin the failovers that are due, all at once, and withdraw those whose old copies are well."""
    is_changed, rehearsal.storm = False, _observe_all(rehearsal)
    for key, binding in rehearsal.hub.list_bindings():
        with rehearsal.contained(name_of(binding)):
            is_changed = _fail_over(rehearsal, key, binding) or is_changed
    return is_changed


def list_failover_waits(rehearsal: Rehearsal, key: Key, binding: ResourceBinding) -> Iterator[PlannedWait]:
    """Yield what a failover of a workload waits for; nothing if it is calm."""
    if _NAME not in rehearsal.rules.controllers:
        return
    verdict = _judge(rehearsal, key, binding)
    if verdict is None or verdict.reason in _QUIET:
        return
    found = _find_way(rehearsal, key, binding, verdict)
    if isinstance(found, FailoverVerdict):
        until = None if found.look_at is None else write_time(found.look_at)
        yield PlannedWait(WaitsFor.FAILOVER, f"{found.reason}: {found.message}", until)


def _fail_over(rehearsal: Rehearsal, key: Key, binding: ResourceBinding) -> bool:
    verdict = _judge(rehearsal, key, binding)
    if verdict is None:
        return False
    if _return(rehearsal, key, binding):
        return True
    found = _find_way(rehearsal, key, binding, verdict)
    if not isinstance(found, Substitute):
        return False
    hub, now, scheduler = rehearsal.hub, rehearsal.now, rehearsal.scheduler
    change = scheduler.change(found.evicted, found.decision)
    if change is None:
        return False
    scheduler.reserve(key, found.evicted, found.decision, now=now)
    patch = write_begin(found.evicted, found.due, rehearsal.rules.give_up, change, now=now)
    written = hub.patch_binding(key, patch)
    for each in found.due:
        rehearsal.tell_move(Action.FAIL_OVER, binding, written, f"it fails in {each.cluster}")
    return True


def _return(rehearsal: Rehearsal, key: Key, binding: ResourceBinding) -> bool:
    hub, now = rehearsal.hub, rehearsal.now
    copies = report_copies(binding, hub.works_of(key), hub.find_cluster)
    recovered = list_recovered(binding, copies, now=now, read_time=lambda time: _read(time, now))
    if not recovered:
        return False
    patch = write_return(binding, recovered, is_divided=is_divided(binding), now=now)
    written = hub.patch_binding(key, patch)
    names = ", ".join(task.from_cluster for task in recovered)
    reason = f"{names}: the old copy is healthy again"
    rehearsal.tell(Action.WITHDRAW_EVICTION, name_of(binding), reason, to=list_clusters(written))
    return True


def _find_way(
    rehearsal: Rehearsal, key: Key, binding: ResourceBinding, verdict: FailoverVerdict
) -> Substitute | FailoverVerdict:
    return find_way(
        key,
        binding,
        verdict,
        rehearsal.scheduler,
        rehearsal.storm,
        now=rehearsal.now,
        gives=lambda: isinstance(find_planned_gift(rehearsal, key, binding), Gift),
    )


def _judge(rehearsal: Rehearsal, key: Key, binding: ResourceBinding) -> FailoverVerdict | None:
    hub, now = rehearsal.hub, rehearsal.now
    copies = report_copies(binding, hub.works_of(key), hub.find_cluster, pending=rehearsal.rules.pending)
    rules = rehearsal.rules.give_up
    custom = hub.rules.health
    return judge_binding(
        binding, copies, rules, now=now, read_time=lambda time: _read(time, now), custom=custom
    )


def _observe_all(rehearsal: Rehearsal) -> StormBrake:
    brake = StormBrake(rehearsal.rules.storm)
    for key, binding in rehearsal.hub.list_bindings():
        with rehearsal.contained(name_of(binding)):
            verdict = _judge(rehearsal, key, binding)
            brake.observe(key, verdict.failing if verdict else None)
    return brake


def _read(time: str, now: float) -> float:
    """Read the time of a clock; one in the future counts as now."""
    try:
        return min(parse_time(time), now)
    except TimeError:
        return now
