"""Failovers of one workload that fails in a cluster: what is known of its copies, and where it would go."""

from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import NamedTuple

from federation.api import ResourceBinding
from federation.api.eviction_blocks import read_application_failover
from federation.failover.application_failover import (
    CopyReport,
    CopyVerdict,
    FailoverReason,
    FailoverVerdict,
    ReadTime,
    judge_failover,
)
from federation.failover.application_tasks import has_replacement, with_evictions
from federation.failover.eviction_history import GiveUpRules
from federation.failover.health_clock import read_health_clock
from federation.failover.pending_replicas import PendingRules, read_pending, read_taken
from federation.failover.state_preservation import has_status
from federation.failover.storm_brake import StormBrake
from federation.membership.cluster_status import is_member_ready
from federation.objects.health import NO_CUSTOM_RULES, HealthRules, has_health_rule
from federation.objects.names import Key
from federation.objects.resources import HeldWork
from federation.planning.binding_scheduler import BindingScheduler
from federation.planning.evictions import FindCluster, list_concerned
from federation.propagation.binding import is_divided
from federation.propagation.schedule_note import apply_note
from federation.propagation.schedule_result import is_scheduled_by_us
from federation.propagation.work_sync import is_newest_applied
from federation.scheduling import Decision, Reason
from federation.scheduling.filters import EVICTION_HISTORY
from reberth.values.timestamp import write_time

_STORM = "Most workloads with application failover fail at once: moving them would help none of them."
_GIVES = "Its replicas without a node go to other clusters, and the available ones stay."
_NO_OTHER = "It fails in {clusters}, and has to stay: {why}"


class Substitute(NamedTuple):
    """The clusters in which a workload would make up for the copies that are due, with the tasks in place."""

    evicted: ResourceBinding
    due: tuple[CopyVerdict, ...]
    decision: Decision


class NoSubstitute(NamedTuple):
    """Why it has to stay where it fails, and when to look again at the latest."""

    reason: FailoverReason
    message: str
    look_at: float | None = None


def report_copies(
    binding: ResourceBinding,
    works: Mapping[str, HeldWork],
    find: FindCluster,
    *,
    pending: PendingRules | None = None,
) -> dict[str, CopyReport]:
    """Return what the Works say of the copies, by cluster.

    `pending`: when replicas that have no node are given to other clusters; None if they are not.
    """
    said = read_application_failover(binding)
    relieved = read_taken(binding, now=inf) if pending else {}
    needs_state = said is not None and bool(said.state_preservation and said.state_preservation.rules)
    there = {name: works[name] for name in sorted(list_concerned(binding)) if name in works}
    return {
        name: CopyReport(
            name,
            next((each.health for each in work.status.manifest_statuses or ()), ""),
            read_health_clock(work.status.conditions),
            (cluster := find(name)) is not None and is_member_ready(cluster),
            not needs_state or has_status(binding, name),
            pending.longer_than if pending and _awaits_nodes(work) else 0.0,
            relieved.get(name),
            is_newest_applied(work),
        )
        for name, work in there.items()
        if work.metadata.deletion_timestamp is None
    }


def _awaits_nodes(work: HeldWork) -> bool:
    """Tell whether replicas have no node, and not for long enough yet to be given elsewhere."""
    told = read_pending(work.status.conditions)
    return bool(told.waiting and not told.stuck)


def judge_binding(
    binding: ResourceBinding,
    copies: Mapping[str, CopyReport],
    rules: GiveUpRules,
    *,
    now: float,
    read_time: ReadTime,
    custom: HealthRules = NO_CUSTOM_RULES,
) -> FailoverVerdict | None:
    """Judge a workload; None if it does not fail over, or if another program schedules it."""
    if not is_scheduled_by_us(binding):
        return None
    resource = binding.spec.resource
    has_rule = has_health_rule(resource.api_version, resource.kind, custom)
    return judge_failover(binding, copies.values(), rules, now=now, read_time=read_time, has_rule=has_rule)


def find_way(
    key: Key,
    binding: ResourceBinding,
    verdict: FailoverVerdict,
    scheduler: BindingScheduler,
    brake: StormBrake,
    *,
    now: float,
    gives: Callable[[], bool] = lambda: False,
) -> Substitute | FailoverVerdict:
    """Return where it can go, or what holds it.

    `gives` tells whether other clusters would take the replicas that have no node: then those move alone.
    """
    if not verdict.due:
        return verdict
    if gives():
        return verdict._replace(reason=FailoverReason.PENDING_REPLICAS, message=_GIVES)
    if brake.holds({each.cluster for each in verdict.due}):
        return verdict._replace(reason=FailoverReason.STORM, message=_STORM)
    found = find_substitute(key, binding, verdict.due, scheduler, now=now)
    if isinstance(found, Substitute):
        return found
    looks = [each for each in (verdict.look_at, found.look_at) if each is not None]
    return verdict._replace(reason=found.reason, message=found.message, look_at=min(looks, default=None))


def find_substitute(
    key: Key,
    binding: ResourceBinding,
    due: tuple[CopyVerdict, ...],
    scheduler: BindingScheduler,
    *,
    now: float,
) -> Substitute | NoSubstitute:
    """Find clusters for as many of the copies as possible, those that have failed for longest first."""
    found: Substitute | NoSubstitute | None = None
    for count in range(len(due), 0, -1):
        found = _try(key, binding, due[:count], scheduler, now)
        if isinstance(found, Substitute):
            return found
    return found or NoSubstitute(FailoverReason.NO_SUBSTITUTE, "")


def _try(
    key: Key, binding: ResourceBinding, due: tuple[CopyVerdict, ...], scheduler: BindingScheduler, now: float
) -> Substitute | NoSubstitute:
    evicted = with_evictions(binding, due, now=now)
    decision = scheduler.decide(key, apply_note(evicted), now=now)
    names = {each.cluster for each in due}
    is_enough = has_replacement(binding, decision.clusters, names, is_divided=is_divided(binding))
    if decision.reason is Reason.SUCCESS and decision.cause and is_enough and _fits(binding, decision):
        return Substitute(evicted, due, decision)
    return _explain(names, decision)


def _fits(binding: ResourceBinding, decision: Decision) -> bool:
    """Tell whether all replicas have room: Duplicated and static weights do not check it themselves."""
    if not binding.spec.replicas:
        return True
    had = {each.name: each.replicas for each in binding.spec.clusters or ()}
    return all(
        each.replicas <= had.get(each.name, 0)
        or decision.verdicts[each.name].available + had.get(each.name, 0) >= each.replicas
        for each in decision.clusters
    )


def _explain(names: Iterable[str], decision: Decision) -> NoSubstitute:
    where = ", ".join(sorted(names))
    blocked = sorted(
        name for name, each in decision.verdicts.items() if each.reasons.keys() == {EVICTION_HISTORY}
    )
    if blocked:
        until = "for ever" if decision.look_at is None else f"until {write_time(decision.look_at)}"
        why = f"{', '.join(blocked)}, where it failed before, is blocked {until}."
        message = _NO_OTHER.format(clusters=where, why=why)
        return NoSubstitute(FailoverReason.BLOCKED, message, decision.look_at)
    told = decision.steady or decision.message
    why = "no other cluster has room for it." if decision.reason is Reason.SUCCESS else told
    message = _NO_OTHER.format(clusters=where, why=why)
    return NoSubstitute(FailoverReason.NO_SUBSTITUTE, message, decision.look_at)
