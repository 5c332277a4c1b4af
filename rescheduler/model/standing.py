"""What is known of whether a workload's moves are refused, and how many may still be tried."""

import math
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from reberth.memory.backoff import instant
from reberth.memory.refusals import list_living
from reberth.records import EvictionHistory, RememberedRefusal


class Standing(Enum):
    """What is known of a workload's moves."""

    PROVEN = "its last eviction was granted"
    UNKNOWN = "nothing is known of it"
    REFUSED = "its last move was refused"


class TriesLeft(NamedTuple):
    """For which workloads a plan has tries left: unknown ones, those refused before, and proven ones."""

    unknown: bool = True
    repeated: bool = True
    trusts_proven: bool = True

    def has_for(self, standing: Standing) -> bool:
        if standing is Standing.REFUSED:
            return self.repeated
        return self.unknown or (standing is Standing.PROVEN and self.trusts_proven)


def judge_standing(
    history: EvictionHistory | None,
    known: Iterable[RememberedRefusal],
    now: float,
    *,
    granted: float = -math.inf,
) -> Standing:
    """Tell what the history, other refusals that are known, and a grant say of a workload's moves.

    A history names an eviction only when the move is closed; `granted` is the time of the last one that this
    process knows of.
    """
    status = history.status if history else None
    refused = (status.refused or ()) if status else ()
    past = (status.past or ()) if status else ()
    granted = max([granted, *(instant(move.evicted_at) for move in past)])
    # What was said of another pod or node is still remembered then, but says less of the workload.
    if any(instant(one.refused_at) > granted for one in list_living([*refused, *known], now)):
        return Standing.REFUSED
    return Standing.PROVEN if granted > -math.inf else Standing.UNKNOWN
