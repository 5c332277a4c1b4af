"""Filter plugins: which clusters are feasible, and for each other one the reason of every plugin.

The reasons are those of Karmada's conditions and Events. A cluster that already has the workload is not
rejected for its deletion, a missing API or a taint; in a fresh scheduling it is. What drives workloads out
is an eviction task: tasks are made at a rate. A cluster that the workload is about to leave gets no more
replicas. A cluster in which the workload failed is rejected until its block ends, in a fresh scheduling, too;
but not if the workload is there again: a block keeps it from coming, and drives nothing out.
"""

from collections import Counter
from collections.abc import Callable, Iterable

import msgspec

from federation.api import ClusterToleration, SpreadField
from federation.api.clusters import NO_EXECUTE
from federation.scheduling.affinity import AffinityGroup
from federation.scheduling.demand import BindingDemand
from federation.scheduling.fleet import Fleet, Member
from federation.scheduling.outcome import Reason, SchedulingRefusal
from reberth.records import Taint
from reberth.selectors import find_untolerated

Reasons = dict[str, str]

API_ENABLEMENT = "APIEnablement"
TAINT_TOLERATION = "TaintToleration"
CLUSTER_AFFINITY = "ClusterAffinity"
SPREAD_CONSTRAINT = "SpreadConstraint"
CLUSTER_EVICTION = "ClusterEviction"
EVICTION_HISTORY = "EvictionHistory"
TERMINATION = "ClusterTermination"

_PROPERTIES = {SpreadField.PROVIDER: "provider", SpreadField.REGION: "region", SpreadField.ZONE: "zones"}
_PARDONED = {TERMINATION, API_ENABLEMENT, TAINT_TOLERATION}
_EVICTING = "cluster(s) is in the process of eviction"
_BLOCKED = "cluster(s) is blocked after an eviction"


class Terms(msgspec.Struct, frozen=True):
    """The parts of a demand that many bindings share: the results of filters are cached by them."""

    api: tuple[str, str]
    tolerations: tuple[ClusterToleration, ...]
    group: AffinityGroup
    spread: frozenset[SpreadField | None]


def find_reasons(demand: BindingDemand, group: AffinityGroup, fleet: Fleet) -> list[Reasons]:
    """Return for each cluster the reasons against it, by plugin."""
    terms = Terms(demand.api, demand.tolerations, group, frozenset(demand.spread))
    reasons = list(fleet.column(_refuse, terms))
    for name in () if demand.fresh else demand.targets:
        _change(reasons, fleet.places.get(name), _pardon)
    for name in demand.evicting:
        _change(reasons, fleet.places.get(name), _add_eviction)
    for name in demand.blocked.keys() - (demand.targets.keys() - demand.evicting):
        _change(reasons, fleet.places.get(name), _add_block)
    return reasons


def list_leaving(demand: BindingDemand, fleet: Fleet) -> frozenset[str]:
    """List the clusters of a workload that it will be driven out of: they keep what they have at most."""
    there = (fleet.places[name] for name in demand.targets if name in fleet.places)
    members = [fleet.members[place] for place in there]
    return frozenset(
        each.name for each in members if each.is_leaving or _find_evicting(each, demand.tolerations)
    )


def find_tiers(group: AffinityGroup, fleet: Fleet) -> tuple[int | None, ...]:
    """Return for each cluster the first tier of the group that it belongs to."""
    return fleet.column(_find_tier, group)


def summarize(reasons: Iterable[Reasons]) -> SchedulingRefusal:
    """Summarize why no cluster is feasible: each is counted once, under the first plugin that rejects it."""
    counts = Counter(next(iter(each.values())) for each in reasons)
    texts = ", ".join(sorted(f"{count} {text}" for text, count in counts.items()))
    message = f"0/{counts.total()} clusters are available: {texts or 'no cluster exists'}."
    return SchedulingRefusal(Reason.NO_CLUSTER_FIT, message)


def _refuse(member: Member, terms: Terms) -> Reasons:
    texts = {plugin: plugin_refuses(member, terms) for plugin, plugin_refuses in _PLUGINS.items()}
    return {plugin: text for plugin, text in texts.items() if text}


def _refuse_leaving(member: Member, _terms: Terms) -> str:
    return "cluster(s) is being deleted" if member.is_leaving else ""


def _refuse_without_api(member: Member, terms: Terms) -> str:
    return "" if terms.api in member.apis else "cluster(s) did not have the API resource"


def _refuse_tainted(member: Member, terms: Terms) -> str:
    """A NoExecute taint that is tolerated only for a time rejects, too: the workload would be evicted."""
    taint = find_untolerated(member.taints, terms.tolerations) or _find_evicting(member, terms.tolerations)
    return f"cluster(s) had untolerated taint {{{_write(taint)}}}" if taint else ""


def _find_evicting(member: Member, tolerations: Iterable[ClusterToleration]) -> Taint | None:
    """Return a taint that drives workloads out, now or later."""
    lasting = tuple(each for each in tolerations if each.toleration_seconds is None)
    return find_untolerated((each for each in member.taints if each.effect == NO_EXECUTE), lasting)


def _refuse_outside(member: Member, terms: Terms) -> str:
    if _find_tier(member, terms.group) is not None:
        return ""
    return "cluster(s) did not match the placement cluster affinity constraint"


def _refuse_without_property(member: Member, terms: Terms) -> str:
    for field, name in _PROPERTIES.items():
        if field in terms.spread and not member.fields(field):
            return f"cluster(s) did not have {name} property"
    return ""


_PLUGINS: dict[str, Callable[[Member, Terms], str]] = {
    TERMINATION: _refuse_leaving,
    API_ENABLEMENT: _refuse_without_api,
    TAINT_TOLERATION: _refuse_tainted,
    CLUSTER_AFFINITY: _refuse_outside,
    SPREAD_CONSTRAINT: _refuse_without_property,
}


def _find_tier(member: Member, group: AffinityGroup) -> int | None:
    return next((tier for tier, affinity in enumerate(group.tiers) if affinity.matches(member)), None)


def _change(reasons: list[Reasons], place: int | None, change: Callable[[Reasons], Reasons]) -> None:
    if place is not None:
        reasons[place] = change(reasons[place])


def _pardon(reasons: Reasons) -> Reasons:
    return {plugin: text for plugin, text in reasons.items() if plugin not in _PARDONED}


def _add_eviction(reasons: Reasons) -> Reasons:
    return {**reasons, CLUSTER_EVICTION: _EVICTING}


def _add_block(reasons: Reasons) -> Reasons:
    return {**reasons, EVICTION_HISTORY: _BLOCKED}


def _write(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
