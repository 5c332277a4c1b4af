"""How many replicas each of the selected clusters gets.

A cluster that the workload is about to leave gets no more replicas than it has; where each cluster has all
of them, it follows the others. When replicas are divided by available room, an ordinary assignment keeps as
many as possible where they are: missing replicas are added where there is room, surplus ones are removed in
proportion. A fresh scheduling divides all of them anew.
"""

from collections.abc import Iterable, Sequence

from federation.api import TargetCluster
from federation.scheduling.demand import BindingDemand, Strategy
from federation.scheduling.outcome import Reason, SchedulingRefusal
from federation.scheduling.ranking import Candidate
from federation.scheduling.rounding import divide

_SHORTAGE = "Clusters available replicas are not enough to schedule"

Shares = dict[str, int]
Weighed = list[tuple[Candidate, int]]


def assign(
    selected: Sequence[Candidate], demand: BindingDemand
) -> tuple[TargetCluster, ...] | SchedulingRefusal:
    """Assign the replicas; a cluster that gets none is dropped, unless there are no replicas at all."""
    if demand.replicas == 0:
        return _list(dict.fromkeys(_place_empty(selected, demand), 0))
    shares = _share(selected, demand)
    if isinstance(shares, SchedulingRefusal):
        return shares
    return _list({name: replicas for name, replicas in shares.items() if replicas})


def _place_empty(selected: Sequence[Candidate], demand: BindingDemand) -> list[str]:
    """A workload scaled to 0 keeps its clusters, so that it can scale up there again."""
    names = [each.name for each in selected]
    stays = demand.is_workload and demand.strategy is not Strategy.DUPLICATED
    return ([name for name in names if name in demand.targets] if stays else []) or names


def _share(selected: Sequence[Candidate], demand: BindingDemand) -> Shares | SchedulingRefusal:
    if demand.strategy is Strategy.DUPLICATED:
        return {each.name: demand.replicas for each in selected}
    if demand.strategy is Strategy.STATIC_WEIGHT:
        return _share_by_weight(selected, demand)
    return _share_anew(selected, demand) if demand.fresh else _share_steadily(selected, demand)


def _weigh(selected: Sequence[Candidate], demand: BindingDemand) -> Shares:
    """Give each cluster its largest weight; if no cluster has a weight, all weigh the same."""
    weights = {
        each.name: max((weight for group, weight in demand.weights if group.matches(each.member)), default=0)
        for each in selected
    }
    named = {name: weight for name, weight in weights.items() if weight > 0}
    return named or dict.fromkeys(weights, 1)


def _share_by_weight(selected: Sequence[Candidate], demand: BindingDemand) -> Shares | SchedulingRefusal:
    """Divide by fixed weights; what a cluster that the workload leaves may not get goes to the others."""
    weights, kept = _weigh(selected, demand), Shares()
    limits = {each.name: each.assigned for each in selected if each.is_leaving}
    while weights:
        left = demand.replicas - sum(kept.values())
        shares = divide(left, weights, last_name_first=demand.last_name_first)
        full = {name for name, most in limits.items() if shares.get(name, 0) > most}
        if not full:
            return kept | shares
        kept |= {name: limits[name] for name in full}
        weights = {name: weight for name, weight in weights.items() if name not in full}
    return SchedulingRefusal(Reason.UNSCHEDULABLE, _explain_shortage(sum(kept.values()), demand), _SHORTAGE)


def _share_anew(selected: Sequence[Candidate], demand: BindingDemand) -> Shares | SchedulingRefusal:
    return _share_by_room([(each, each.room) for each in selected], demand.replicas, demand)


def _share_steadily(selected: Sequence[Candidate], demand: BindingDemand) -> Shares | SchedulingRefusal:
    kept = {each.name: each.assigned for each in selected if each.assigned}
    missing = demand.replicas - sum(kept.values())
    if missing == 0:
        return kept
    if missing < 0:
        return _share_by_room([(each, each.assigned) for each in selected], demand.replicas, demand)
    added = _share_by_room([(each, each.available) for each in selected], missing, demand, prior=kept)
    if isinstance(added, SchedulingRefusal):
        return added
    return {name: kept.get(name, 0) + added.get(name, 0) for name in kept | added}


def _share_by_room(
    weighed: Weighed, replicas: int, demand: BindingDemand, *, prior: Iterable[str] = ()
) -> Shares | SchedulingRefusal:
    """Divide tier by tier: the next tier gets the replicas for which the tiers before it have no room."""
    room = sum(weight for _, weight in weighed)
    if room < replicas:
        return SchedulingRefusal(Reason.UNSCHEDULABLE, _explain_shortage(room, demand), _SHORTAGE)
    shares: Shares = {}
    for tier in sorted({each.tier for each, _ in weighed}):
        of_tier = [(each, weight) for each, weight in weighed if each.tier == tier]
        taken = min(replicas - sum(shares.values()), sum(weight for _, weight in of_tier))
        if demand.strategy is Strategy.AGGREGATED:
            of_tier = _cut(of_tier, taken, set(prior))
        votes = {each.name: weight for each, weight in of_tier}
        shares |= divide(taken, votes, last_name_first=demand.last_name_first)
    return shares


def _cut(weighed: Weighed, replicas: int, prior: set[str]) -> Weighed:
    """Take as few clusters as possible: first those with replicas, then those with the most room."""
    weighed = sorted(weighed, key=lambda pair: (pair[0].name not in prior, -pair[1]))
    count, room = 0, 0
    while room < replicas:
        room += weighed[count][1]
        count += 1
    return weighed[:count]


def _explain_shortage(room: int, demand: BindingDemand) -> str:
    if any(len(group.tiers) > 1 for group in demand.groups):
        return _SHORTAGE
    return f"Clusters available replicas {room} are not enough to schedule."


def _list(shares: Shares) -> tuple[TargetCluster, ...]:
    return tuple(TargetCluster(name, shares[name]) for name in sorted(shares))
