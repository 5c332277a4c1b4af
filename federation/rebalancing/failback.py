"""Failback: a workload that had to leave its preferred cluster group returns when that has room again.

It is opt-in, in the policy. All replicas must have had room in an earlier group without a break for the
stabilization time. Since when is kept in the status of the binding, so that a restart does not start it anew.
A workload that had to go back, because its new copies were not ready in time, waits twice as long.
The number of workloads that return at the same time is limited.
"""

from typing import NamedTuple

from msgspec.structs import replace

from federation.api import FailbackStatus, ResourceBinding
from federation.rebalancing.handover import kept_replicas, last_return, set_timeout
from federation.rebalancing.triggers import choose_trigger, is_pending, last_scheduled
from federation.scheduling import Decision, Fleet, Reason, decide
from reberth.values.timestamp import parse_time, write_time

_MOST_DOUBLINGS = 8


class RecordGroup(NamedTuple):
    """Record the group that could take the workload back, or that there is none, in the status."""

    failback: FailbackStatus | None


class TriggerFailback(NamedTuple):
    """Request a fresh scheduling."""

    to: str


class NoAction(NamedTuple):
    """Do nothing, and look again after these seconds if any."""

    seconds: float | None = None


def wants_failback(binding: ResourceBinding) -> bool:
    placement, failover = binding.spec.placement, binding.spec.failover
    groups = placement.cluster_affinities if placement else None
    return failover is not None and failover.failback is not None and len(groups or ()) > 1


def is_returning(binding: ResourceBinding) -> bool:
    """Tell whether a workload is returning: requested, or with old copies that still exist."""
    return wants_failback(binding) and (is_pending(binding) or bool(kept_replicas(binding)))


def decide_failback(
    binding: ResourceBinding, fleet: Fleet, *, now: float
) -> RecordGroup | TriggerFailback | NoAction:
    """Decide the next step of one workload with failback."""
    said = binding.spec.failover.failback if binding.spec.failover else None
    if said is None or is_returning(binding) or binding.metadata.deletion_timestamp is not None:
        return NoAction()
    home, noted = find_home(binding, fleet, now=now), binding.status.failback
    if home is None:
        return NoAction() if noted is None else RecordGroup(None)
    if noted is None or noted.affinity_name != home:
        return RecordGroup(FailbackStatus(home, write_time(now)))
    rest = _count_from(binding, noted) + _stabilization(binding, said.stabilization_seconds) - now
    return TriggerFailback(home) if rest <= 0 else NoAction(rest)


def request_return(binding: ResourceBinding, *, timeout: float, now: float) -> tuple[float, int]:
    """Return the time of the request, and how long the new copies have to get ready."""
    return choose_trigger(binding, created=now // 1, now=now), set_timeout(binding, timeout)


def _count_from(binding: ResourceBinding, noted: FailbackStatus) -> float:
    """The time counts from when there was room, but not before the last failback that failed."""
    return max(parse_time(noted.since), last_return(binding) or 0.0)


def _stabilization(binding: ResourceBinding, seconds: float) -> float:
    """Each time that the workload had to return, it waits twice as long before the next try."""
    returns = (binding.spec.handover.returns if binding.spec.handover else None) or 0
    return max(seconds, 1.0) * 2 ** min(returns, _MOST_DOUBLINGS) if returns else seconds


def find_home(binding: ResourceBinding, fleet: Fleet, *, now: float) -> str | None:
    """Return the earlier group that would take all replicas now."""
    last = last_scheduled(binding)
    names = _list_groups(binding)
    if last is None or binding.status.observed_affinity not in names[1:]:
        return None
    triggered = replace(binding.spec, reschedule_triggered_at=write_time(last + 1))
    decision = decide(replace(binding, spec=triggered), fleet, now=now)
    if decision.reason is not Reason.SUCCESS or not _fits(decision, binding):
        return None
    is_earlier = names.index(decision.affinity_name) < names.index(binding.status.observed_affinity)
    return decision.affinity_name if is_earlier else None


def _list_groups(binding: ResourceBinding) -> list[str]:
    placement = binding.spec.placement
    return [term.affinity_name for term in (placement.cluster_affinities if placement else None) or ()]


def _fits(decision: Decision, binding: ResourceBinding) -> bool:
    """Tell whether every replica has room. Duplicated and static weights do not check that themselves."""
    had = {each.name: each.replicas for each in binding.spec.clusters or ()}
    return all(
        decision.verdicts[each.name].available + had.get(each.name, 0) >= each.replicas
        for each in decision.clusters
    )
