"""The stage in which replicas that get no node in their cluster are given to others."""

from collections.abc import Iterator

from federation.api import ResourceBinding
from federation.objects.names import Key
from federation.planning.failover.pending_replicas import Gift, NoGift, find_gift, list_stuck, write_gift
from federation.planning.plan import Action, PlannedWait, WaitsFor
from federation.planning.rehearsal import Rehearsal
from federation.scheduling import name_of

_NAME = "pending_replicas"


def give_pending(rehearsal: Rehearsal) -> bool:
    is_changed = False
    for key, binding in rehearsal.hub.list_bindings():
        with rehearsal.contained(name_of(binding)):
            is_changed = _give(rehearsal, key, binding) or is_changed
    return is_changed


def find_planned_gift(rehearsal: Rehearsal, key: Key, binding: ResourceBinding) -> Gift | NoGift | None:
    """Return what would be given; None also if nobody gives anything."""
    rules, hub = rehearsal.rules.pending, rehearsal.hub
    if rules is None or _NAME not in rehearsal.rules.controllers:
        return None
    stuck = list_stuck(binding, hub.works_of(key), hub.find_cluster, rules=rules, now=rehearsal.now)
    return find_gift(key, binding, stuck, rehearsal.scheduler, rules=rules, now=rehearsal.now)


def list_pending_waits(rehearsal: Rehearsal, key: Key, binding: ResourceBinding) -> Iterator[PlannedWait]:
    found = find_planned_gift(rehearsal, key, binding)
    if isinstance(found, NoGift):
        yield PlannedWait(WaitsFor.ROOM, found.message)


def _give(rehearsal: Rehearsal, key: Key, binding: ResourceBinding) -> bool:
    found, rules, now = find_planned_gift(rehearsal, key, binding), rehearsal.rules.pending, rehearsal.now
    if rules is None or not isinstance(found, Gift):
        return False
    change = rehearsal.scheduler.change(found.reduced, found.decision)
    if change is None:
        return False
    rehearsal.scheduler.reserve(key, found.reduced, found.decision, now=now)
    written = rehearsal.hub.patch_binding(key, write_gift(binding, found, change, rules, now=now))
    where = ", ".join(f"{count} in {name}" for name, count in found.taken.items())
    rehearsal.tell_move(Action.GIVE, binding, written, f"replicas without a node: {where}")
    return True
