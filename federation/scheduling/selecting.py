"""Which of the candidates are taken, where a placement bounds their number or spreads over regions."""

from collections.abc import Sequence

from federation.api import SpreadField
from federation.scheduling.demand import Bounds, Demand, Strategy
from federation.scheduling.outcome import Reason, Refusal
from federation.scheduling.ranking import Candidate
from federation.scheduling.selection import select_regions


def select(ranked: Sequence[Candidate], demand: Demand) -> Sequence[Candidate] | Refusal:
    """Take the candidates that the spread constraints allow; fixed weights name their clusters themselves."""
    if not demand.spread or demand.strategy is Strategy.STATIC_WEIGHT:
        return ranked
    if SpreadField.REGION in demand.spread:
        return select_regions(ranked, demand)
    if SpreadField.CLUSTER in demand.spread:
        return _select_clusters(ranked, demand, demand.spread[SpreadField.CLUSTER])
    return Refusal(Reason.SCHEDULER_ERROR, "just support cluster and region spread constraint")


def _select_clusters(
    ranked: Sequence[Candidate], demand: Demand, bounds: Bounds
) -> Sequence[Candidate] | Refusal:
    if len(ranked) < bounds.least:
        message = "the number of feasible clusters is less than spreadConstraint.MinGroups"
        return Refusal(Reason.SCHEDULER_ERROR, message)
    count = len(ranked) if bounds.most is None else min(len(ranked), bounds.most)
    if not demand.divides_by_room:
        return ranked[:count]
    return _make_room(list(ranked[:count]), list(ranked[count:]), demand.replicas)


def _make_room(taken: list[Candidate], others: list[Candidate], replicas: int) -> list[Candidate] | Refusal:
    """While there is too little room, let the last give way to the roomiest other, then the one before."""
    for place in reversed(range(len(taken))):
        if _count_room(taken) >= replicas or not others:
            break
        richest = max(range(len(others)), key=lambda index: others[index].room)
        if others[richest].room > taken[place].room:
            taken[place], others[richest] = others[richest], taken[place]
    if _count_room(taken) >= replicas:
        return taken
    message = f"no enough resource when selecting {len(taken)} clusters"
    return Refusal(Reason.SCHEDULER_ERROR, message)


def _count_room(candidates: Sequence[Candidate]) -> int:
    return sum(each.room for each in candidates)
