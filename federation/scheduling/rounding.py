"""Dividing replicas by weights: the Webster method, also called Sainte-Laguë, in the words of elections.

Each seat goes to the party with the highest quotient votes / (2n + 1), where n is the number of its seats. A
tie goes to the party with fewer seats, then by name. The result is as close to the proportion of the votes as
whole numbers allow, and one more seat in total never takes a seat from a party: scaling up moves nothing.
"""

from collections.abc import Mapping
from heapq import heapify, heapreplace

from federation.api.digests import fnv_1a


def divide(seats: int, votes: Mapping[str, int], *, last_name_first: bool = False) -> dict[str, int]:
    """Divide the seats by the votes; ties go to the first name of the alphabet, or to the last."""
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
    """Tell whether ties go to the last name: by the parity of a hash, so that not all favour one cluster."""
    return bool(uid) and fnv_1a(uid) % 2 == 1


def _give_sure(seats: int, votes: Mapping[str, int]) -> dict[str, int]:
    """Give at once the seats that are certain, so that a thousand replicas do not take a thousand rounds.

    A seat is certain if its quotient lies above a bar that is high enough to leave, for each party, a seat
    to be decided by the exact method.
    """
    total, sure = sum(votes.values()), max(0, 2 * seats - 3 * len(votes))
    return {name: -(-count * sure // total) // 2 if total else 0 for name, count in votes.items()}
