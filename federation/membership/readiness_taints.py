"""Which taints a member gets for not being Ready, and when a member that is lost drives out what it has.

A member that is not Ready is given nothing new; what runs there stays. Only who wishes it has workloads leave
a member that has not been reached for some time.
"""

import msgspec

from federation.api import NOT_READY, Cluster
from federation.api.clusters import NO_EXECUTE
from federation.membership.cluster_status import NOT_REACHABLE, READY
from federation.objects.conditions import find_condition
from federation.objects.template import Object
from reberth.records import Condition, Taint
from reberth.values.timestamp import parse_time, write_time

NO_SCHEDULE = "NoSchedule"


def find_loss(conditions: tuple[Condition, ...] | None, lost_after: float | None) -> float | None:
    """Give the moment from which a member counts as lost; None for one that answers, or where none does."""
    ready = find_condition(conditions, READY)
    if lost_after is None or ready is None or ready.status == "True" or ready.reason != NOT_REACHABLE:
        return None
    return parse_time(ready.last_transition_time) + lost_after if ready.last_transition_time else None


def list_taints(cluster: Cluster, *, lost_after: float | None, now: float) -> list[Taint]:
    """Give the taints that a member is to have from us."""
    ready = find_condition(cluster.status.conditions, READY)
    if ready is None or ready.status == "True":
        return []
    taints = [Taint(NOT_READY, NO_SCHEDULE)]
    loss = find_loss(cluster.status.conditions, lost_after)
    if loss is not None and now >= loss:
        taints.append(Taint(NOT_READY, NO_EXECUTE, time_added=write_time(loss)))
    return taints


def change_taints(cluster: Cluster, *, lost_after: float | None, now: float) -> Object | None:
    """Give the merge patch that has a member bear the taints that are due; None where it does.

    What others have set is theirs: with another key, or to drive out where that is nothing that we do.
    """
    due = list_taints(cluster, lost_after=lost_after, now=now)
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
