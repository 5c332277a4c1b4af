"""Taints of a member that is not Ready, and when a lost member evicts its workloads.

A member that is not Ready gets no new workloads; those that run there stay. Evicting workloads from a member
that has been unreachable for some time is opt-in (taintLostMembersAfter).
"""

import msgspec

from federation.api import NOT_READY, Cluster
from federation.api.clusters import NO_EXECUTE
from federation.membership.cluster_status import NOT_REACHABLE, READY
from federation.membership.loss_brake import NO_BRAKE, LossBrake
from federation.objects.conditions import find_condition
from federation.objects.template import Object
from reberth.records import Condition, Taint
from reberth.values.timestamp import parse_time, write_time

NO_SCHEDULE = "NoSchedule"


def find_loss(
    conditions: tuple[Condition, ...] | None, lost_after: float | None, brake: LossBrake = NO_BRAKE
) -> float | None:
    """Return when a member counts as lost; None for one that answers, or if the option is off."""
    ready = find_condition(conditions, READY)
    if lost_after is None or ready is None or ready.status == "True" or ready.reason != NOT_REACHABLE:
        return None
    if not ready.last_transition_time:
        return None
    return max(parse_time(ready.last_transition_time), brake.counted_from) + lost_after


def list_taints(
    cluster: Cluster, *, lost_after: float | None, now: float, brake: LossBrake = NO_BRAKE
) -> list[Taint]:
    """List the taints that the federation sets on a member."""
    ready = find_condition(cluster.status.conditions, READY)
    if ready is None or ready.status == "True":
        return []
    taints = [Taint(NOT_READY, NO_SCHEDULE)]
    loss = find_loss(cluster.status.conditions, lost_after, brake)
    if loss is not None and now >= loss:
        taints.append(Taint(NOT_READY, NO_EXECUTE, time_added=write_time(loss)))
    return taints


def change_taints(
    cluster: Cluster, *, lost_after: float | None, now: float, brake: LossBrake = NO_BRAKE
) -> Object | None:
    """Return the merge patch that sets the taints of a member; None if it has them.

    Taints of others are kept: those with another key, and NoExecute ones if the option is off. While the
    brake is on, the NoExecute taints that stand for a loss are taken away.
    """
    due = list_taints(cluster, lost_after=lost_after, now=now, brake=brake)
    ours = {NO_SCHEDULE} if lost_after is None else {NO_SCHEDULE, NO_EXECUTE}
    has = cluster.spec.taints or ()
    wanted = {each.effect: each for each in due}
    kept = [each for each in has if each.key != NOT_READY or each.effect not in ours or each.effect in wanted]
    there = {each.effect for each in kept if each.key == NOT_READY}
    new = [*kept, *(each for each in due if each.effect not in there)]
    if new == list(has):
        return None
    return {
        "metadata": {"resourceVersion": cluster.metadata.resource_version},
        "spec": {"taints": [msgspec.to_builtins(each) for each in new]},
    }
