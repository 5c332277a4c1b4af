"""The stages by which workloads get their clusters: taints, bindings, and the scheduler."""

from federation.api import Cluster, ResourceBinding
from federation.failover.toleration import write_taint
from federation.membership.loss_brake import NO_BRAKE, find_brake
from federation.membership.lost_members import change_taints
from federation.objects.names import Key
from federation.planning.binding_changes import (
    BindingStep,
    ChangeBinding,
    CreateBinding,
    DeleteBinding,
    decide_binding,
)
from federation.planning.plan import Action
from federation.planning.rehearsal import Rehearsal, list_clusters
from federation.propagation.binding import key_of_binding, template_of
from federation.propagation.schedule_result import change_schedule_status, is_scheduled_by_us
from federation.scheduling import Decision, name_of

_BOUND, _UNBOUND = "a policy selects it", "its template does not exist any more"
_UPDATED = "its policy or its template has changed"


def taint_members(rehearsal: Rehearsal) -> bool:
    """Set and remove the taints of members that are not Ready."""
    rules, hub, now = rehearsal.rules, rehearsal.hub, rehearsal.now
    brake, clusters = NO_BRAKE, list(hub.cluster_rows)
    if rules.lost_after is not None:
        fraction, longest = rules.brake_fraction, rules.brake_longest
        clusters = [each for each in clusters if _tells_times(rehearsal, each)]
        brake = find_brake(clusters, fraction=fraction, longest=longest, now=now)
    is_changed = False
    for cluster in clusters:
        change = change_taints(cluster, lost_after=rules.lost_after, now=now, brake=brake)
        if change:
            name = cluster.metadata.name
            written = hub.patch_cluster(name, change)
            rehearsal.causes.on_change(written)
            there = ", ".join(map(write_taint, written.spec.taints or ())) or "none any more"
            rehearsal.tell(Action.TAINT, name, f"its taints: {there}")
            is_changed = True
    return is_changed


def _tells_times(rehearsal: Rehearsal, cluster: Cluster) -> bool:
    """Tell whether the times of a member can be read: one that cannot be keeps no other one from a plan."""
    with rehearsal.contained(f"Cluster {cluster.metadata.name}"):
        find_brake((cluster,), fraction=1.0, longest=0.0, now=rehearsal.now)
        return True
    return False


def detect(rehearsal: Rehearsal) -> bool:
    """Create, change and delete bindings, as policies and templates demand."""
    is_changed = False
    for key in _list_template_keys(rehearsal):
        with rehearsal.contained(str(key)):
            is_changed = _detect(rehearsal, key) or is_changed
    return is_changed


def _list_template_keys(rehearsal: Rehearsal) -> list[Key]:
    hub = rehearsal.hub
    of_bindings = map(template_of, hub.bindings.values())
    gone = {key for key in of_bindings if (key.api_version, key.kind) in hub.complete}
    return sorted(gone | hub.templates.keys())


def _detect(rehearsal: Rehearsal, key: Key) -> bool:
    hub, target = rehearsal.hub, key_of_binding(key)
    step = decide_binding(key, hub.templates.get(key), hub.bindings.get(target), hub.find_policies, hub.rules)
    if step.claim:
        hub.patch_template(key, step.claim)
    return _carry_out(rehearsal, target, step) or bool(step.claim)


def _carry_out(rehearsal: Rehearsal, target: Key, step: BindingStep) -> bool:
    hub, now = rehearsal.hub, rehearsal.now
    match step.binding:
        case DeleteBinding(binding):
            del hub.bindings[target]
            rehearsal.scheduler.observe(target, None, now=now)
            rehearsal.tell(Action.UNBIND, name_of(binding), _UNBOUND, origin=list_clusters(binding))
        case ChangeBinding(binding, patch):
            rehearsal.tell(Action.UPDATE, name_of(hub.patch_binding(target, patch)), _UPDATED)
        case CreateBinding(wanted):
            body = wanted
            if "scheduler" in rehearsal.rules.controllers:
                body = rehearsal.scheduler.place_new(target, wanted, now=now)
            created = hub.create_binding(target, body)
            rehearsal.tell(Action.BIND, name_of(created), _BOUND, to=list_clusters(created))
        case _:
            return False
    return True


def schedule(rehearsal: Rehearsal) -> bool:
    """Decide about every binding, and write the decision and its status."""
    is_changed = False
    for key, binding in rehearsal.hub.list_bindings():
        rehearsal.scheduler.observe(key, binding, now=rehearsal.now)
        if is_scheduled_by_us(binding):
            with rehearsal.contained(name_of(binding)):
                is_changed = _schedule(rehearsal, key, binding) or is_changed
    return is_changed


def _schedule(rehearsal: Rehearsal, key: Key, binding: ResourceBinding) -> bool:
    scheduler, hub, now = rehearsal.scheduler, rehearsal.hub, rehearsal.now
    decision, is_unreported = scheduler.decide_known(key, binding, now=now)
    rehearsal.decisions[key] = decision
    change, written = scheduler.change(binding, decision), binding
    if change is not None:
        scheduler.reserve(key, binding, decision, now=now)
        written = hub.patch_binding(key, change)
        _tell_decision(rehearsal, binding, written, decision)
    was_changed = change is not None or is_unreported
    status = change_schedule_status(written, decision, was_changed=was_changed, now=now)
    if status is not None:
        hub.patch_binding(key, status)
    return change is not None or status is not None


def _tell_decision(
    rehearsal: Rehearsal, before: ResourceBinding, after: ResourceBinding, decision: Decision
) -> None:
    """Copies in a cluster that is being deleted are evicted with the decision."""
    had = before.spec.graceful_eviction_tasks or ()
    for task in after.spec.graceful_eviction_tasks or ():
        if task not in had:
            leaving = tuple(each for each in list_clusters(before) if each.name == task.from_cluster)
            rehearsal.tell(Action.EVICT, name_of(after), task.message, origin=leaving)
    if list_clusters(before) != list_clusters(after):
        rehearsal.tell_move(_name_change(before, after), before, after, decision.cause)


def _name_change(before: ResourceBinding, after: ResourceBinding) -> Action:
    """A workload moves where one cluster loses and another one gains replicas."""
    had = {each.name: each.replicas for each in list_clusters(before)}
    has = {each.name: each.replicas for each in list_clusters(after)}
    if not had:
        return Action.SCHEDULE
    gains = any(count > had.get(name, -1) for name, count in has.items())
    loses = any(count > has.get(name, -1) for name, count in had.items())
    if gains and loses:
        return Action.MOVE
    return Action.GROW if gains else Action.SHRINK
