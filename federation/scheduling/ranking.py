"""The clusters that passed the filters: their scores, and their order, the best first.

Each scoring plugin gives 0 to 100, and the sum counts.
"""

from collections.abc import Iterable

import msgspec

from federation.scheduling.demand import BindingDemand
from federation.scheduling.fleet import Member

CLUSTER_LOCALITY = "ClusterLocality"

_HERE = {CLUSTER_LOCALITY: 100}
_ELSEWHERE = {CLUSTER_LOCALITY: 0}


class Candidate(msgspec.Struct, frozen=True, eq=False):
    """A feasible cluster: its score, how many more replicas fit, and how many it has already.

    One that the workload `is_leaving` gets no more of them.
    """

    member: Member
    tier: int
    score: int
    available: int
    assigned: int
    is_leaving: bool = False

    @property
    def name(self) -> str:
        return self.member.name

    @property
    def room(self) -> int:
        """How many replicas it can hold, including those that it has."""
        return self.available + self.assigned


def rank_candidates(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Sort by tier, then by higher score, more room, and name."""
    return sorted(candidates, key=lambda each: (each.tier, -each.score, -each.room, each.name))


def score_cluster(demand: BindingDemand, name: str) -> dict[str, int]:
    """Favour clusters that have a copy, even one without replicas; a fresh scheduling favours none."""
    is_here = name in demand.targets and not demand.fresh
    return _HERE if is_here else _ELSEWHERE
