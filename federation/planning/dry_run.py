"""The answer to a WorkloadRebalancer with `dryRun`: where its workloads would move, and why others would not.

Each workload is decided as its trigger would have it decided, with the room that the ones before it would
take. Nothing is triggered, and no room is reserved but in the fork of the scheduler that decides.
"""

from collections.abc import Iterable, Iterator
from itertools import accumulate

import msgspec
from msgspec.structs import replace

from federation.api import (
    DEFAULT_SCHEDULER,
    ObservedWorkload,
    RebalancedWorkload,
    RebalanceResult,
    RebalancerStatus,
    ResourceBinding,
    TargetCluster,
    WorkloadRebalancer,
)
from federation.api.rebalancers import BINDING_NOT_FOUND, DRY_RUN, NOT_SCHEDULED
from federation.planning.binding_scheduler import BindingScheduler
from federation.planning.rebalanced_bindings import binding_key, choose_handover
from federation.propagation.schedule_result import is_scheduled_by_us
from federation.rebalancing.entries import merge_entries
from federation.rebalancing.expiry import find_finish
from federation.rebalancing.replicas import count_moved, write_replicas
from federation.rebalancing.review import Find, Limits
from federation.rebalancing.triggers import check_times, choose_trigger, with_trigger
from federation.scheduling import Decision, Reason
from federation.scheduling.cause import Cause
from reberth.values.object_error import ObjectError
from reberth.values.text_limits import cut
from reberth.values.timestamp import write_time

MOST_BYTES = 2**20
"""Of the spec and the answer of a rebalancer together: etcd takes no object of more than 1.5 MiB."""
_MOST_ENTRIES = 8192
_MORE = "The answers for {count} more workloads do not fit into the status; ask for fewer at once."
UNREADABLE = "BindingUnreadable"
_MISSING = "No binding found; there is nothing to rebalance."
_STAYS = "A fresh scheduling would leave it where it is: {clusters}."
_MOVES = "A fresh scheduling would move {count}, from {origin} to {to}."


def is_answered(rebalancer: WorkloadRebalancer) -> bool:
    """Tell whether the present spec has its answer: it is given once, and says how it was at finishTime."""
    status = rebalancer.status
    return status.observed_generation == rebalancer.metadata.generation and status.finish_time is not None


def answer_dry_run(
    rebalancer: WorkloadRebalancer,
    wanted: Iterable[RebalancedWorkload],
    find: Find,
    scheduler: BindingScheduler,
    *,
    limits: Limits,
    now: float,
) -> RebalancerStatus:
    """Answer for all workloads at once."""
    entries = list_answers(rebalancer, wanted, find, scheduler, limits=limits, now=now)
    return write_answer(rebalancer, entries, now=now)


def list_answers(
    rebalancer: WorkloadRebalancer,
    wanted: Iterable[RebalancedWorkload],
    find: Find,
    scheduler: BindingScheduler,
    *,
    limits: Limits,
    now: float,
) -> Iterator[ObservedWorkload]:
    """Answer for one workload after the other, as they would be triggered, by a fork of the scheduler."""
    asking = _DryRun(rebalancer, scheduler, limits, now)
    for each in merge_entries(wanted, ()):
        yield asking.answer(each.workload, find(each.workload))


def write_answer(
    rebalancer: WorkloadRebalancer, entries: Iterable[ObservedWorkload], *, now: float
) -> RebalancerStatus:
    """Write the status. The last entry that it has room for says how many others there are."""
    every = tuple(entries)
    shown = every[: _count_fitting(every, MOST_BYTES - len(msgspec.json.encode(rebalancer.spec)))]
    if len(shown) < len(every):
        more = _MORE.format(count=len(every) - len(shown))
        shown = (*shown[:-1], replace(shown[-1], message=cut(f"{more} {shown[-1].message or ''}")))
    finish = find_finish(RebalancerStatus(), shown, now=now)
    return RebalancerStatus(shown, rebalancer.metadata.generation, finish)


def _count_fitting(entries: Iterable[ObservedWorkload], room: int) -> int:
    """Count the entries that fit, at least one and at most as many as the API server takes."""
    sizes = accumulate(len(msgspec.json.encode(each)) + 1 for each in entries)
    return min(_MOST_ENTRIES, max(1, sum(size <= room for size in sizes)))


class _DryRun:
    """What would come of one rebalancer, workload by workload."""

    def __init__(
        self, rebalancer: WorkloadRebalancer, scheduler: BindingScheduler, limits: Limits, now: float
    ) -> None:
        self._rebalancer = rebalancer
        self._scheduler = scheduler
        self._limits = limits
        self._now = now

    def answer(self, workload: RebalancedWorkload, binding: ResourceBinding | None) -> ObservedWorkload:
        if binding is None:
            return _refuse(workload, BINDING_NOT_FOUND, _MISSING)
        try:
            check_times(binding)
            decision, decided = self._decide(workload, binding)
        except ObjectError as error:
            return _refuse(workload, UNREADABLE, str(error))
        if decided and decision.reason is Reason.SUCCESS:
            return _accept(workload, binding, decision)
        why = _explain(binding, decision)
        reason = NOT_SCHEDULED if decision.reason is Reason.SUCCESS else str(decision.reason)
        return replace(_refuse(workload, reason, why), origin=_list(binding))

    def _decide(self, workload: RebalancedWorkload, binding: ResourceBinding) -> tuple[Decision, bool]:
        """Decide as with the trigger; tell whether the scheduler would carry the trigger out."""
        key, now = binding_key(workload), self._now
        at = write_time(choose_trigger(binding, created=now // 1, now=now))
        triggered = with_trigger(binding, at, choose_handover(self._rebalancer, binding, self._limits))
        decision, _ = self._scheduler.decide_triggered(key, triggered, now=now)
        is_carried_out = is_scheduled_by_us(binding) and decision.cause == Cause.REQUESTED
        if is_carried_out and decision.reason is Reason.SUCCESS:
            self._scheduler.reserve(key, triggered, decision, now=now)
        return decision, is_carried_out


def _accept(workload: RebalancedWorkload, binding: ResourceBinding, decision: Decision) -> ObservedWorkload:
    origin, to = _list(binding), decision.clusters
    before, after = write_replicas(origin), write_replicas(to)
    moved = count_moved(origin, to)
    count = f"{moved} replica{'' if moved == 1 else 's'}" if moved else "it"
    has_moved = {each.name: each.replicas for each in origin} != {each.name: each.replicas for each in to}
    text = _MOVES.format(count=count, origin=before, to=after) if has_moved else _STAYS.format(clusters=after)
    return ObservedWorkload(
        workload, RebalanceResult.SUCCESSFUL, reason=DRY_RUN, message=cut(text), origin=origin, to=to
    )


def _refuse(workload: RebalancedWorkload, reason: str, message: str) -> ObservedWorkload:
    return ObservedWorkload(workload, RebalanceResult.FAILED, reason=reason, message=cut(message))


def _explain(binding: ResourceBinding, decision: Decision) -> str:
    """Say why nobody would carry out the request."""
    scheduler = binding.spec.scheduler_name or DEFAULT_SCHEDULER
    if scheduler != DEFAULT_SCHEDULER:
        return f"The scheduler {scheduler} would decide."
    if not is_scheduled_by_us(binding):
        return "No policy has claimed the binding, so that it is not scheduled."
    return decision.message


def _list(binding: ResourceBinding) -> tuple[TargetCluster, ...]:
    return binding.spec.clusters or ()
