"""Why a binding is scheduled at all. Most of the time nothing has changed, and it stays where it is."""

from enum import StrEnum

import msgspec

from federation.api import APPLIED_PLACEMENT, ClusterAffinityTerm, Placement, ResourceBinding
from federation.scheduling.demand import BindingDemand, Strategy
from federation.scheduling.filters import find_tiers
from federation.scheduling.fleet import Fleet
from federation.scheduling.unreported_clusters import has_reported
from reberth.values.text_limits import read_json


class Cause(StrEnum):
    """Why a scheduling is necessary; the first cause that applies."""

    REQUESTED = "a fresh scheduling was requested"
    NEW = "no placement has been applied to it yet"
    PLACEMENT = "its placement has changed"
    REPLICAS = "the replicas of its clusters do not add up to spec.replicas"
    ALWAYS = "a workload that is not divided is rescheduled every time"
    EVICTED = "it is being evicted from one of its clusters"
    VANISHED = "one of its clusters does not exist any more"
    UNMATCHED = "one of its clusters does not match its placement any more"
    CLUSTER_REPORTED = "a cluster has reported its API resources since it was scheduled"


class SkipReason(StrEnum):
    """Why a scheduling is not necessary."""

    SUSPENDED = "Scheduling is suspended."
    FOLLOWS = "It follows the bindings that require it."
    UNCHANGED = "Placement, replicas and clusters have not changed since it was scheduled."


def find_cause(binding: ResourceBinding, demand: BindingDemand, fleet: Fleet) -> Cause | SkipReason:
    """Return why the binding has to be scheduled, or why it has not."""
    spec = binding.spec
    if spec.suspension and spec.suspension.scheduling:
        return SkipReason.SUSPENDED
    if spec.placement is None and spec.required_by:
        return SkipReason.FOLLOWS
    return _find_change(binding, demand, fleet) or SkipReason.UNCHANGED


def _find_change(binding: ResourceBinding, demand: BindingDemand, fleet: Fleet) -> Cause | None:
    causes = {
        Cause.REQUESTED: demand.fresh,
        Cause.NEW: APPLIED_PLACEMENT not in (binding.metadata.annotations or {}),
        Cause.PLACEMENT: has_new_placement(binding),
        Cause.ALWAYS: demand.strategy is Strategy.DUPLICATED or not demand.is_workload,
        Cause.REPLICAS: sum(demand.targets.values()) != demand.replicas,
        Cause.EVICTED: not demand.evicting.isdisjoint(demand.targets),
        Cause.VANISHED: any(name not in fleet.places for name in demand.targets),
        Cause.UNMATCHED: _is_unmatched(demand, fleet),
        Cause.CLUSTER_REPORTED: has_reported(binding, fleet),
    }
    return next((cause for cause, holds in causes.items() if holds), None)


def _is_unmatched(demand: BindingDemand, fleet: Fleet) -> bool:
    """Tell whether one of its clusters has left the group in use, by its labels for example."""
    in_use = next((group for group in demand.groups if group.name == demand.observed), None)
    if in_use is None:
        return False
    tiers = find_tiers(in_use, fleet)
    places = (fleet.places.get(name) for name in demand.targets)
    return any(place is not None and tiers[place] is None for place in places)


def has_new_placement(binding: ResourceBinding) -> bool:
    """Compare with the placement that was applied last; of its groups only the one in use counts."""
    new, old = binding.spec.placement or Placement(), _read_applied(binding)
    if old is None:
        return True
    if new == old:
        return False
    if _without_groups(new) != _without_groups(old):
        return True
    name = binding.status.observed_affinity
    term = _find_term(new, name)
    return not name or term is None or term != _find_term(old, name)


def _read_applied(binding: ResourceBinding) -> Placement | None:
    return read_json((binding.metadata.annotations or {}).get(APPLIED_PLACEMENT), Placement)


def _without_groups(placement: Placement) -> Placement:
    return msgspec.structs.replace(placement, cluster_affinities=None, workload_affinity=None)


def _find_term(placement: Placement, name: str) -> ClusterAffinityTerm | None:
    return next((term for term in placement.cluster_affinities or () if term.affinity_name == name), None)
