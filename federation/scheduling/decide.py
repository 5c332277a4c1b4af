"""The scheduling of one binding: filter, score, select and assign, one cluster group after the other.

A decision is a function of the binding, the clusters and the time. The group in use is tried first. If it no
longer works, all groups are tried from the first one on: a workload returns to a preferred group before it
moves on to the next.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import inf

import msgspec
from msgspec.structs import replace

from federation.api import ResourceBinding, TargetCluster
from federation.scheduling.affinity import AffinityGroup
from federation.scheduling.cause import Cause, SkipReason, find_cause
from federation.scheduling.demand import BindingDemand, read_binding_demand
from federation.scheduling.filters import Reasons, find_reasons, find_tiers, list_leaving, summarize
from federation.scheduling.fleet import Fleet
from federation.scheduling.outcome import (
    ClusterVerdict,
    Decision,
    Failure,
    Reason,
    SchedulingRefusal,
    Step,
    Timed,
    choose_refusal,
    describe_success,
    untimed,
)
from federation.scheduling.ranking import Candidate, rank_candidates, score_cluster
from federation.scheduling.replica_division import assign
from federation.scheduling.selection import select_clusters
from federation.scheduling.unreported_clusters import list_unreported


class Attempt(msgspec.Struct, frozen=True):
    """One group that was tried: the verdict on each cluster, and the result or the refusal."""

    group: AffinityGroup
    verdicts: dict[str, ClusterVerdict]
    clusters: tuple[TargetCluster, ...] = ()
    refusal: SchedulingRefusal | None = None


def decide(binding: ResourceBinding, fleet: Fleet, *, now: float, timed: Timed = untimed) -> Decision:
    """Schedule the binding. Raises ObjectError if the binding has a field that cannot be read."""
    demand = read_binding_demand(binding, now=now)
    decision = _decide(binding, demand, fleet, now=now, timed=timed)
    return replace(decision, look_at=_find_next_end(demand)) if demand.blocked else decision


def _find_next_end(demand: BindingDemand) -> float | None:
    return min((end for end in demand.blocked.values() if end < inf), default=None)


def _decide(
    binding: ResourceBinding, demand: BindingDemand, fleet: Fleet, *, now: float, timed: Timed
) -> Decision:
    cause = find_cause(binding, demand, fleet)
    if isinstance(cause, SkipReason):
        return _keep_clusters(demand, cause, fleet)
    if cause is not Cause.CLUSTER_REPORTED:
        return _schedule(demand, cause, fleet, now=now, timed=timed)
    fresh = _schedule(replace(demand, fresh=True), cause, fleet, now=now, timed=timed)
    return fresh if fresh.reason is Reason.SUCCESS else _keep_clusters(demand, SkipReason.UNCHANGED, fleet)


def _schedule(demand: BindingDemand, cause: Cause, fleet: Fleet, *, now: float, timed: Timed) -> Decision:
    """Try one group after the other."""
    failed: list[Attempt] = []
    for group in _walk(demand):
        attempt = _try(group, demand, fleet, timed)
        if attempt.refusal is None:
            done = _succeed(demand, attempt, failed)
            unreported = _list_unreported(demand, (*failed, attempt), fleet)
            return replace(
                done, cause=cause, scheduled_at=max(now, demand.requested_at), unreported=unreported
            )
        failed.append(attempt)
    return replace(_fail(demand, failed), cause=cause)


def _list_unreported(demand: BindingDemand, tried: Iterable[Attempt], fleet: Fleet) -> tuple[str, ...] | None:
    """Only a first or a fresh scheduling would use clusters that have not reported yet."""
    if demand.targets and not demand.fresh:
        return None
    return list_unreported((attempt.verdicts for attempt in tried), fleet)


def _walk(demand: BindingDemand) -> Iterator[AffinityGroup]:
    """Yield the group in use, then all others from the first on; a fresh scheduling has none in use."""
    in_use = [group for group in demand.groups if group.name == demand.observed and not demand.fresh]
    yield from in_use
    yield from (group for group in demand.groups if group not in in_use)


def _try(group: AffinityGroup, demand: BindingDemand, fleet: Fleet, timed: Timed) -> Attempt:
    with timed(Step.FILTER):
        reasons = find_reasons(demand, group, fleet)
    with timed(Step.SCORE):
        verdicts = _judge_clusters(reasons, demand, fleet)
    tiers, leaving = find_tiers(group, fleet), _list_leaving(demand, fleet)
    passed = [
        Candidate(
            member,
            tier,
            sum(verdict.scores.values()),
            verdict.available,
            demand.targets.get(member.name, 0),
            member.name in leaving,
        )
        for member, tier, verdict in zip(fleet.members, tiers, verdicts.values(), strict=True)
        if verdict.passed and tier is not None
    ]
    placed = _place(passed, demand, timed) if passed else summarize(reasons)
    if isinstance(placed, SchedulingRefusal):
        return Attempt(group, verdicts, refusal=placed)
    return Attempt(group, verdicts, placed)


def _judge_clusters(
    reasons: Iterable[Reasons], demand: BindingDemand, fleet: Fleet
) -> dict[str, ClusterVerdict]:
    # Without replicas the room does not matter.
    rooms = fleet.estimate(demand.request) if demand.replicas else (0,) * len(fleet.members)
    leaving = _list_leaving(demand, fleet)
    return {
        member.name: ClusterVerdict(
            not against,
            against,
            {} if against else score_cluster(demand, member.name),
            0 if member.name in leaving else room,
        )
        for member, against, room in zip(fleet.members, reasons, rooms, strict=True)
    }


def _list_leaving(demand: BindingDemand, fleet: Fleet) -> frozenset[str]:
    """In a fresh scheduling the filters reject these clusters."""
    return frozenset() if demand.fresh else list_leaving(demand, fleet)


def _place(
    passed: Sequence[Candidate], demand: BindingDemand, timed: Timed
) -> tuple[TargetCluster, ...] | SchedulingRefusal:
    with timed(Step.SELECT):
        selected = select_clusters(rank_candidates(passed), demand)
    if isinstance(selected, SchedulingRefusal):
        return selected
    with timed(Step.ASSIGN):
        return assign(selected, demand)


def _succeed(demand: BindingDemand, attempt: Attempt, failed: Iterable[Attempt]) -> Decision:
    return Decision(
        clusters=attempt.clusters,
        affinity_name=attempt.group.name,
        reason=Reason.SUCCESS,
        message=describe_success(attempt.clusters, is_namespaced=demand.is_namespaced),
        verdicts=attempt.verdicts,
        failures=_list_failures(demand, failed),
    )


def _fail(demand: BindingDemand, failed: Sequence[Attempt]) -> Decision:
    refusal, retry = choose_refusal([each.refusal for each in failed if each.refusal])
    return Decision(
        clusters=_keep(demand),
        affinity_name=demand.observed,
        reason=refusal.reason,
        message=refusal.message,
        steady=refusal.steady,
        verdicts=failed[0].verdicts,
        failures=_list_failures(demand, failed),
        retry=retry,
    )


def _keep_clusters(demand: BindingDemand, reason: SkipReason, fleet: Fleet) -> Decision:
    group = next(_walk(demand))
    return Decision(
        clusters=_keep(demand),
        affinity_name=demand.observed,
        reason=Reason.SUCCESS,
        message=reason,
        verdicts=_judge_clusters(find_reasons(demand, group, fleet), demand, fleet),
    )


def _keep(demand: BindingDemand) -> tuple[TargetCluster, ...]:
    return tuple(TargetCluster(name, demand.targets[name]) for name in sorted(demand.targets))


def _list_failures(demand: BindingDemand, failed: Iterable[Attempt]) -> tuple[Failure, ...]:
    """Write the Event of each named group that failed; without groups the condition's message is enough."""
    return tuple(
        Failure(
            each.group.name,
            f"failed to schedule {demand.kind}({demand.name}) "
            f"with clusterAffiliates index({each.group.index}): {each.refusal.message}",
        )
        for each in failed
        if each.group.name and each.refusal
    )
