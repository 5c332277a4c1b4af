"""Replicas that get no node in their cluster: how many other clusters would take, and what is written then.

Only replicas that are divided by room move by this. Those that are available stay, and so does each cluster
that has them; a cluster from which replicas were taken is given none for a while.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from federation.api import ResourceBinding, TargetCluster
from federation.api.eviction_blocks import read_application_failover
from federation.failover.health_clock import read_health_clock
from federation.failover.pending_replicas import (
    PendingRules,
    list_taken,
    read_pending,
    read_taken,
    write_taken,
)
from federation.membership.cluster_status import is_member_ready
from federation.objects.any_json import number
from federation.objects.names import Key
from federation.objects.resources import HeldWork
from federation.objects.template import Object
from federation.planning.binding_scheduler import BindingScheduler
from federation.planning.evictions import FindCluster
from federation.propagation.aggregation import read_status
from federation.propagation.schedule_note import apply_note
from federation.propagation.schedule_result import is_scheduled_by_us
from federation.propagation.work_sync import is_newest_applied, retains_replicas
from federation.scheduling import Decision, Reason
from federation.scheduling.cause import SkipReason
from federation.scheduling.demand import read_binding_demand

Replicas = dict[str, int]


class Gift(NamedTuple):
    """Replicas that other clusters take: the workload without them, and where it would be with them."""

    taken: Replicas
    reduced: ResourceBinding
    decision: Decision

    @property
    def total(self) -> int:
        return sum(self.taken.values())


class NoGift(NamedTuple):
    """Why replicas that have no node stay where they are."""

    pending: Replicas
    message: str


def find_gift(
    key: Key,
    binding: ResourceBinding,
    pending: Replicas,
    scheduler: BindingScheduler,
    *,
    rules: PendingRules,
    now: float,
) -> Gift | NoGift | None:
    """Return what can be given of them; None if nothing is to be, or if something else is under way first.

    `pending`: how many have had no node for long, by cluster (list_stuck).
    """
    if not pending or not _may_give(binding, now) or not _is_calm(key, binding, scheduler, now):
        return None
    avoided = pending.keys() | list_taken(binding, rules, now=now).keys()
    found = _try(key, binding, pending, avoided, scheduler=scheduler, now=now)
    if isinstance(found, Gift):
        return found
    room = sum(each.available for name, each in found.verdicts.items() if each.passed and name not in avoided)
    less = _limit(pending, room)
    trial = (
        _try(key, binding, less, avoided, scheduler=scheduler, now=now)
        if 0 < room < sum(pending.values())
        else None
    )
    if isinstance(trial, Gift):
        return trial
    where = ", ".join(f"{name}:{count}" for name, count in pending.items())
    return NoGift(pending, f"Replicas without a node ({where}) stay: no other cluster has room for them.")


def write_gift(
    binding: ResourceBinding, gift: Gift, change: Object, rules: PendingRules, *, now: float
) -> Object:
    """Return the patch that gives them: `change` has the new clusters."""
    kept = list_taken(binding, rules._replace(block_for=max(rules.block_for, rules.longer_than)), now=now)
    taken = {**kept, **dict.fromkeys(gift.taken, now)}
    metadata = change["metadata"]
    annotations = {**metadata["annotations"], **write_taken(taken)}
    return {**change, "metadata": {**metadata, "annotations": annotations}}


def list_stuck(
    binding: ResourceBinding,
    works: Mapping[str, HeldWork],
    find: FindCluster,
    *,
    rules: PendingRules,
    now: float,
) -> Replicas:
    """Return how many replicas have had no node for long, by cluster; available ones are not among them.

    After a gift its Work still tells of the pods that were given: none counts until it has waited anew.
    """
    relieved = {name for name, at in read_taken(binding, now=now).items() if now < at + rules.longer_than}
    found = {
        each.name: _count_stuck(works[each.name], each.replicas)
        for each in binding.spec.clusters or ()
        if each.name in works.keys() - relieved
        and (cluster := find(each.name)) is not None
        and is_member_ready(cluster)
    }
    return {name: count for name, count in sorted(found.items()) if count}


def _count_stuck(work: HeldWork, replicas: int) -> int:
    """None of a copy that is being rolled out, or in another version than what is told of it."""
    stuck = read_pending(work.status.conditions).stuck
    if not stuck or work.metadata.deletion_timestamp is not None or not is_newest_applied(work):
        return 0
    if read_health_clock(work.status.conditions).is_rolling_out or retains_replicas(work):
        return 0
    status = read_status(work)
    available = number(status, "availableReplicas") if isinstance(status, dict) else 0
    return max(0, min(stuck, replicas - available))


def _may_give(binding: ResourceBinding, now: float) -> bool:
    """Application failover moves all replicas of a cluster, unless it is told to keep the available ones."""
    if not is_scheduled_by_us(binding) or not read_binding_demand(binding, now=now).divides_by_room:
        return False
    failover = read_application_failover(binding)
    return failover is None or failover.preserve_available_replicas


def _is_calm(key: Key, binding: ResourceBinding, scheduler: BindingScheduler, now: float) -> bool:
    """Tell whether nothing else moves the workload: an eviction, a handover, or the scheduler."""
    spec = binding.spec
    if spec.graceful_eviction_tasks or (spec.handover and spec.handover.clusters):
        return False
    decision = scheduler.decide(key, apply_note(binding), now=now)
    return not decision.cause and decision.message == SkipReason.UNCHANGED


def _try(
    key: Key,
    binding: ResourceBinding,
    taken: Replicas,
    avoided: Collection[str],
    *,
    scheduler: BindingScheduler,
    now: float,
) -> Gift | Decision:
    left = tuple(
        TargetCluster(each.name, each.replicas - taken.get(each.name, 0))
        for each in binding.spec.clusters or ()
    )
    left = tuple(each for each in left if each.replicas)
    reduced = replace(binding, spec=replace(binding.spec, clusters=left))
    decision = scheduler.decide(key, apply_note(reduced), now=now, without_room=avoided)
    gains = {each.name: each.replicas for each in decision.clusters}
    keeps_all = all(gains.get(each.name, 0) >= each.replicas for each in left)
    is_whole = sum(gains.values()) == binding.spec.replicas
    if decision.reason is Reason.SUCCESS and decision.cause and keeps_all and is_whole:
        return Gift(taken, reduced, decision)
    return decision


def _limit(pending: Replicas, room: int) -> Replicas:
    """Return as many of them as there is room for."""
    limited: Replicas = {}
    for name, count in pending.items():
        limited[name] = min(count, room - sum(limited.values()))
    return {name: count for name, count in limited.items() if count}
