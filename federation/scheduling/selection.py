"""Which candidates are taken where spread constraints bound the number of clusters or regions.

A combination of regions is valid if it has enough regions and enough clusters. The valid one with the highest
sum of scores is best, and of it no more regions are taken than necessary.
"""

from collections.abc import Iterable, Sequence

import msgspec

from federation.api import SpreadField
from federation.scheduling.demand import BindingDemand, Bounds, Strategy
from federation.scheduling.outcome import Reason, SchedulingRefusal
from federation.scheduling.ranking import Candidate, rank_candidates

_UNIT = 1000  # so that the scores of the clusters, at most 100, only break ties


def select_clusters(
    ranked: Sequence[Candidate], demand: BindingDemand
) -> Sequence[Candidate] | SchedulingRefusal:
    """Select the candidates that the spread constraints allow; fixed weights are selection enough."""
    if not demand.spread or demand.strategy is Strategy.STATIC_WEIGHT:
        return ranked
    if SpreadField.REGION in demand.spread:
        return select_regions(ranked, demand)
    if SpreadField.CLUSTER in demand.spread:
        return _select_clusters(ranked, demand, demand.spread[SpreadField.CLUSTER])
    return SchedulingRefusal(Reason.SCHEDULER_ERROR, "just support cluster and region spread constraint")


def _select_clusters(
    ranked: Sequence[Candidate], demand: BindingDemand, bounds: Bounds
) -> Sequence[Candidate] | SchedulingRefusal:
    if len(ranked) < bounds.least:
        message = "the number of feasible clusters is less than spreadConstraint.MinGroups"
        return SchedulingRefusal(Reason.SCHEDULER_ERROR, message)
    count = len(ranked) if bounds.most is None else min(len(ranked), bounds.most)
    if not demand.divides_by_room:
        return ranked[:count]
    return _make_room(list(ranked[:count]), list(ranked[count:]), demand.replicas)


def _make_room(
    taken: list[Candidate], others: list[Candidate], replicas: int
) -> list[Candidate] | SchedulingRefusal:
    """While room is short, replace the last one by the other with the most room, then the one before it."""
    for place in reversed(range(len(taken))):
        if _count_room(taken) >= replicas or not others:
            break
        richest = max(range(len(others)), key=lambda index: others[index].room)
        if others[richest].room > taken[place].room:
            taken[place], others[richest] = others[richest], taken[place]
    if _count_room(taken) >= replicas:
        return taken
    message = f"no enough resource when selecting {len(taken)} clusters"
    return SchedulingRefusal(Reason.SCHEDULER_ERROR, message)


def _count_room(candidates: Sequence[Candidate]) -> int:
    return sum(each.room for each in candidates)


class Region(msgspec.Struct, frozen=True):
    """A region, the number of its feasible clusters, and its score."""

    name: str
    clusters: int
    score: int


Combination = tuple[int, ...]


class Path(msgspec.Struct, frozen=True):
    """A combination under construction, as positions in the list of regions."""

    score: int = 0
    clusters: int = 0
    places: Combination = ()

    def merit(self) -> tuple[int, int, Combination]:
        """Sort key: higher score, more clusters, found first."""
        return -self.score, -self.clusters, self.places


def select_regions(ranked: Sequence[Candidate], demand: BindingDemand) -> list[Candidate] | SchedulingRefusal:
    """Select the best cluster of each region, then the best others up to the maximum of clusters."""
    bounds, of_clusters = demand.spread[SpreadField.REGION], demand.spread.get(SpreadField.CLUSTER, Bounds())
    members = _group(ranked)
    if len(members) < bounds.least:
        message = "the number of feasible region is less than spreadConstraint.MinGroups"
        return SchedulingRefusal(Reason.SCHEDULER_ERROR, message)
    regions = [Region(name, len(each), score_region(each, demand)) for name, each in members.items()]
    chosen = combine(regions, _narrow(bounds, of_clusters), of_clusters.least)
    if not chosen:
        message = "the number of clusters is less than the cluster spreadConstraint.MinGroups"
        return SchedulingRefusal(Reason.SCHEDULER_ERROR, message)
    best = [members[region.name][0] for region in chosen]
    others = rank_candidates(each for region in chosen for each in members[region.name][1:])
    most = len(ranked) if of_clusters.most is None else of_clusters.most
    return best + others[: most - len(best)]


def score_region(ranked: Sequence[Candidate], demand: BindingDemand) -> int:
    """Score a region by the clusters or replicas that have room there; clusters' scores break ties."""
    if demand.strategy is Strategy.DUPLICATED:
        fitting = [each for each in ranked if each.room >= demand.replicas]
        return _UNIT * len(fitting) + _mean(fitting)
    of_clusters = demand.spread.get(SpreadField.CLUSTER, Bounds())
    least = demand.spread[SpreadField.REGION].least
    share = -(-demand.replicas // least)
    room, count = 0, 0
    for each in ranked:
        room, count = room + each.room, count + 1
        if room >= share and count >= max(least, of_clusters.least):
            break
    return _UNIT * min(share, room) + _mean(ranked[:count])


def combine(regions: Iterable[Region], bounds: Bounds, clusters: int) -> list[Region]:
    """Find the best combination of regions within the bounds, with at least this many clusters."""
    listed = sorted(regions, key=lambda each: (each.clusters, -each.score, each.name))
    sound = _find_sound(listed, bounds, clusters)
    if not sound:
        return []
    best = [listed[place] for place in min(sound, key=Path.merit).places]
    return _shorten(sorted(best, key=lambda each: (-each.score, each.name)), bounds, clusters)


def _find_sound(listed: Sequence[Region], bounds: Bounds, clusters: int) -> list[Path]:
    """Add regions one by one; of unfinished paths with the same needs keep only the best.

    That keeps the search polynomial: the number of combinations would double with each region.
    """
    most = len(listed) if bounds.most is None else bounds.most
    growing: dict[tuple[int, int], Path] = {(0, 0): Path()}
    sound = []
    for place, region in enumerate(listed):
        for path in list(growing.values()):
            longer = Path(path.score + region.score, path.clusters + region.clusters, (*path.places, place))
            if len(longer.places) >= bounds.least and longer.clusters >= clusters:
                sound.append(longer)
            elif len(longer.places) < most:
                _keep_better(growing, (len(longer.places), min(longer.clusters, clusters)), longer)
    return sound


def _keep_better(growing: dict[tuple[int, int], Path], needs: tuple[int, int], path: Path) -> None:
    growing[needs] = min(growing.get(needs, path), path, key=Path.merit)


def _shorten(best: list[Region], bounds: Bounds, clusters: int) -> list[Region]:
    """Drop the regions with the lowest scores as long as the rest is valid."""
    for count in range(bounds.least, len(best)):
        if sum(region.clusters for region in best[:count]) >= clusters:
            return best[:count]
    return best


def _narrow(bounds: Bounds, of_clusters: Bounds) -> Bounds:
    """There cannot be more regions than clusters."""
    limits = [most for most in (bounds.most, of_clusters.most) if most is not None]
    return Bounds(bounds.least, min(limits, default=None))


def _group(ranked: Sequence[Candidate]) -> dict[str, list[Candidate]]:
    members: dict[str, list[Candidate]] = {}
    for each in ranked:
        members.setdefault(each.member.region, []).append(each)
    return members


def _mean(candidates: Sequence[Candidate]) -> int:
    return sum(each.score for each in candidates) // len(candidates) if candidates else 0
