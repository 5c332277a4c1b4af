"""Dividing a whole number by weights: the method of Webster, also called Sainte-Laguë.

Seat after seat goes to whoever has the most votes for each of 2n+1, n being the seats that he has. A tie
goes to who has fewer seats, then by name. Two weights of which one is twice the other get seats in that
proportion as nearly as whole numbers allow, and one seat more for all takes no seat from anyone.
"""

from collections.abc import Mapping
from heapq import heapify, heapreplace

from federation.api.digests import fnv_1a


def divide(seats: int, votes: Mapping[str, int], *, last_name_first: bool = False) -> dict[str, int]:
    """Divide the seats by the votes; names win ties from the alphabet's beginning, or from its end."""
    names = sorted(votes, reverse=last_name_first)
    result = _give_sure(seats, votes)
    queue = [(-votes[name] / (2 * result[name] + 1), result[name], rank) for rank, name in enumerate(names)]
    heapify(queue)
    for _ in range(seats - sum(result.values()) if queue else 0):
        _, had, rank = queue[0]
        result[names[rank]] = had + 1
        heapreplace(queue, (-votes[names[rank]] / (2 * had + 3), had + 1, rank))
    return result


def prefers_last_name(uid: str) -> bool:
    """Tell which end of the alphabet wins ties: by the parity of FNV-1a, so that not all favour one."""
    return bool(uid) and fnv_1a(uid) % 2 == 1


def _give_sure(seats: int, votes: Mapping[str, int]) -> dict[str, int]:
    """Give at once the seats that are certain, so that a thousand replicas take no thousand turns.

    They are those whose quotient lies above a bar so high that, for each party, a seat is left over for
    the ties around the bar.
    """
    total, sure = sum(votes.values()), max(0, 2 * seats - 3 * len(votes))
    return {name: -(-count * sure // total) // 2 if total else 0 for name, count in votes.items()}
