"""The clusters that passed the filters, the most welcome first."""

from collections.abc import Iterable

import msgspec

from federation.scheduling.fleet import Member


class Candidate(msgspec.Struct, frozen=True, eq=False):
    """A cluster in question: what it scores, how many more replicas fit, and how many it was given before."""

    member: Member
    tier: int
    score: int
    available: int
    assigned: int

    @property
    def name(self) -> str:
        return self.member.name

    @property
    def room(self) -> int:
        """How many replicas it could hold, those included that it has."""
        return self.available + self.assigned


def rank(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Sort: the earlier tier, the higher score, more room, and at last the name."""
    return sorted(candidates, key=lambda each: (each.tier, -each.score, -each.room, each.name))
