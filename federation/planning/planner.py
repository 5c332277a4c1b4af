"""Makes the plan of a hub: rehearses what its controllers would do, and says why the rest stays."""

from collections.abc import Iterator, Mapping

from federation.api import DEFAULT_SCHEDULER, ResourceBinding
from federation.failover.eviction_tasks import concerns
from federation.objects.names import Key
from federation.planning.evictions import assess_evictions, find_release, list_concerned, list_evictions
from federation.planning.failover.pending_stage import give_pending, list_pending_waits
from federation.planning.failover.stage import fail_over, list_failover_waits
from federation.planning.hub_objects import HubObjects, HubSnapshot
from federation.planning.moving_stages import (
    decide_binding_failback,
    end_evictions,
    end_handovers,
    evict,
    fail_back,
    rebalance,
    review_binding_handover,
)
from federation.planning.placing_stages import detect, schedule, taint_members
from federation.planning.plan import Action, BindingForecast, HubPlan, PlannedWait, WaitsFor
from federation.planning.rehearsal import PlanRules, Rehearsal, Stage, list_clusters, run_stages
from federation.propagation.binding import find_misuse, template_of
from federation.propagation.schedule_result import is_scheduled_by_us
from federation.rebalancing import handover
from federation.rebalancing.failback import NoAction, TriggerFailback, wants_failback
from federation.scheduling import Reason, name_of
from federation.scheduling.cause import SkipReason
from reberth.values.timestamp import write_time

# The scheduler sees the bindings that there are before the detector makes new ones.
STAGES: Mapping[str, Stage] = {
    "members": taint_members,
    "scheduler": schedule,
    "detector": detect,
    "tainting": evict,
    "graceful": end_evictions,
    "handovers": end_handovers,
    "rebalancer": rebalance,
    "failback": fail_back,
    "pending_replicas": give_pending,
    "application_failover": fail_over,
}
_NOT_OURS = "NotScheduled"
_DELETED = "its template does not exist any more"
_DELETES = "{name}: the time letGoAfter is over, and its copy is deleted with the Cluster"
_WILL_DELETE = "its copy in {name} is deleted with the Cluster then, even if it has no other cluster"
_LOST = "{members} cannot be reached: no new copy is made before it is known that the old one is gone"


def make_plan(snapshot: HubSnapshot, rules: PlanRules, *, now: float) -> HubPlan:
    """Tell what the controllers would do with the hub as it is."""
    hub = HubObjects(snapshot)
    before = dict(hub.bindings)
    rehearsal = Rehearsal(hub, rules, now=now)
    run_stages(rehearsal, [stage for name, stage in STAGES.items() if _runs(name, hub, rules)])
    _let_go(rehearsal)
    return HubPlan(
        kind="Plan",
        now=write_time(now),
        steps=tuple(rehearsal.steps),
        bindings=_forecast_all(rehearsal, before),
        rebalancers={
            name: one.status.observed_workloads or () for name, one in sorted(hub.rebalancers.items())
        },
        warnings=tuple(rehearsal.warnings),
    )


def _let_go(rehearsal: Rehearsal) -> None:
    """Tell which workloads lose their copies in deleted Clusters now, with or without another cluster."""
    for _, binding in rehearsal.hub.list_bindings():
        with rehearsal.contained(name_of(binding)):
            for name, release in _list_releases(rehearsal, binding):
                if release <= rehearsal.now:
                    leaving = tuple(each for each in list_clusters(binding) if each.name == name)
                    rehearsal.tell(
                        Action.LET_GO, name_of(binding), _DELETES.format(name=name), origin=leaving
                    )


def _list_releases(rehearsal: Rehearsal, binding: ResourceBinding) -> Iterator[tuple[str, float]]:
    """Yield the deleted Clusters in which a workload has copies, and when those go."""
    if "members" not in rehearsal.rules.controllers:
        return
    for name in sorted(list_concerned(binding)):
        cluster = rehearsal.hub.find_cluster(name)
        if cluster and cluster.metadata.deletion_timestamp is not None and concerns(binding, name):
            last_turn = rehearsal.now if name in rehearsal.evicted_from else 0.0
            after = rehearsal.rules.let_go_after
            yield name, find_release(cluster, let_go_after=after, last_turn=last_turn)


def _runs(name: str, hub: HubObjects, rules: PlanRules) -> bool:
    """Without any policy the input is not the whole hub: bindings are then taken as they are."""
    return name in rules.controllers and (name != "detector" or hub.has_policies)


def _forecast_all(rehearsal: Rehearsal, before: Mapping[Key, ResourceBinding]) -> dict[str, BindingForecast]:
    after = rehearsal.hub.bindings
    new = {key: _forecast(rehearsal, key, binding, before.get(key)) for key, binding in after.items()}
    gone = {key: _forecast_end(binding) for key, binding in before.items() if key not in after}
    return {"/".join(filter(None, key[2:])): each for key, each in sorted((new | gone).items())}


def _forecast(
    rehearsal: Rehearsal, key: Key, binding: ResourceBinding, before: ResourceBinding | None
) -> BindingForecast:
    reason, message = _explain(rehearsal, key, binding)
    return BindingForecast(
        workload=str(template_of(binding)),
        origin=None if before is None else list_clusters(before),
        to=list_clusters(binding),
        affinity_name=binding.status.observed_affinity,
        reason=reason,
        message=message,
        waits=tuple(_list_waits(rehearsal, key, binding)),
    )


def _forecast_end(binding: ResourceBinding) -> BindingForecast:
    workload, affinity = str(template_of(binding)), binding.status.observed_affinity
    return BindingForecast(workload, list_clusters(binding), None, affinity, "", _DELETED)


def _explain(rehearsal: Rehearsal, key: Key, binding: ResourceBinding) -> tuple[str, str]:
    """Return the reason and the message of its last decision, or why nobody decides."""
    if misuse := find_misuse(binding):
        return _NOT_OURS, f"nothing is propagated by it: {misuse}"
    decision = rehearsal.decisions.get(key)
    if decision is not None and is_scheduled_by_us(binding):
        is_decided = decision.cause or decision.message == SkipReason.UNCHANGED
        return str(decision.reason) if is_decided else _NOT_OURS, decision.message
    scheduler = binding.spec.scheduler_name or DEFAULT_SCHEDULER
    if scheduler != DEFAULT_SCHEDULER:
        return _NOT_OURS, f"the scheduler {scheduler} decides about it"
    if binding.metadata.deletion_timestamp is not None:
        return _NOT_OURS, "it is being deleted"
    return _NOT_OURS, "no policy has claimed it"


def _list_waits(rehearsal: Rehearsal, key: Key, binding: ResourceBinding) -> Iterator[PlannedWait]:
    """Yield what keeps a workload from going on."""
    if rehearsal.hub.find_binding(key) is None:
        return
    with rehearsal.contained(name_of(binding)):
        decision = rehearsal.decisions.get(key)
        if decision is not None and decision.reason is not Reason.SUCCESS:
            yield PlannedWait(WaitsFor.ROOM, f"{decision.reason}: {decision.message}")
        yield from _wait_for_tolerations(rehearsal, binding)
        if binding.spec.graceful_eviction_tasks:
            yield from _wait_for_evictions(rehearsal, key, binding)
        for name, release in _list_releases(rehearsal, binding):
            if release > rehearsal.now:
                text = _WILL_DELETE.format(name=name)
                yield PlannedWait(WaitsFor.EVICTION, text, write_time(release))
        yield from _wait_for_handover(rehearsal, binding)
        yield from list_pending_waits(rehearsal, key, binding)
        yield from list_failover_waits(rehearsal, key, binding)
        if wants_failback(binding):
            yield from _wait_for_failback(rehearsal, key, binding)


def _wait_for_tolerations(rehearsal: Rehearsal, binding: ResourceBinding) -> Iterator[PlannedWait]:
    if "tainting" not in rehearsal.rules.controllers:
        return
    for cause, task in list_evictions(binding, rehearsal.hub.find_cluster, rehearsal.causes):
        text = f"it leaves {task.from_cluster} then: {cause.message}"
        yield PlannedWait(WaitsFor.TOLERATION, text, write_time(cause.at))


def _wait_for_evictions(rehearsal: Rehearsal, key: Key, binding: ResourceBinding) -> Iterator[PlannedWait]:
    hub, patience = rehearsal.hub, rehearsal.rules.patience
    clusters = filter(None, map(hub.find_cluster, sorted(list_concerned(binding))))
    works, causes, now = hub.works_of(key), rehearsal.causes, rehearsal.now
    found = assess_evictions(binding, works, clusters, causes, patience=patience, now=now)
    if found.lost:
        yield PlannedWait(WaitsFor.MEMBER, _LOST.format(members=", ".join(found.lost)))
    there = {target.name for target in list_clusters(binding)}
    deleted = {name for name, _ in _list_releases(rehearsal, binding)}
    for task in found.kept:
        if task.from_cluster in there and task.from_cluster in deleted:
            continue
        if task.from_cluster in there:
            yield PlannedWait(
                WaitsFor.EVICTION, f"it stays in {task.from_cluster} until it has another cluster"
            )
        elif task.from_cluster not in found.lost:
            text = f"the old copy in {task.from_cluster} stays until the new ones are healthy"
            yield PlannedWait(WaitsFor.EVICTION, text, None if found.due is None else write_time(found.due))


def _wait_for_handover(rehearsal: Rehearsal, binding: ResourceBinding) -> Iterator[PlannedWait]:
    kept = ", ".join(sorted(handover.kept_replicas(binding)))
    match review_binding_handover(rehearsal, binding):
        case handover.Wait(seconds):
            text = f"the old replicas in {kept} stay until the new ones are ready"
            yield PlannedWait(WaitsFor.HANDOVER, text, write_time(rehearsal.now + seconds))
        case handover.Hold():
            text = f"the time of the handover is over, and it cannot return; {kept} keeps its replicas"
            yield PlannedWait(WaitsFor.HANDOVER, text)


def _wait_for_failback(rehearsal: Rehearsal, key: Key, binding: ResourceBinding) -> Iterator[PlannedWait]:
    noted = binding.status.failback
    match decide_binding_failback(rehearsal, key, binding):
        case NoAction(float() as seconds) if noted is not None:
            text = f"cluster group {noted.affinity_name} must have room for all replicas until then"
            yield PlannedWait(WaitsFor.STABILIZATION, text, write_time(rehearsal.now + seconds))
        case TriggerFailback(group):
            yield PlannedWait(
                WaitsFor.TURN, f"it returns to {group} when fewer other workloads are returning"
            )
