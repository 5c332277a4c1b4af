"""Plan memory: what one plan passes on to the next.

It may be lost. Then nodes count as over-utilised, and taints and mismatches as new, from the next cycle on,
and earlier moves are known from the eviction histories alone.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from types import MappingProxyType

import msgspec

from reberth.cluster.rows import PodRow
from reberth.memory.replacements import is_since
from rescheduler.model.refusal_memory import RefusalMemory

# Each takes up to 0.8 kB, with 64 destinations. With the default rates 2,880 moves are made in 48 hours.
MOST_REMEMBERED = 20_000

_ALWAYS = 0.0
_NOTHING: Mapping[str, float] = MappingProxyType({})


class RememberedMove(msgspec.Struct, frozen=True, rename="camel"):
    """A move of an earlier plan.

    The replacement stays on its destination until `paid_back`. No pod of the controller is moved to the
    source node until `forgotten`.
    """

    controller: str
    left: str
    destinations: tuple[str, ...]
    since: float
    paid_back: float
    forgotten: float


class PlanMemory(msgspec.Struct, frozen=True, rename="camel", dict=True):
    """How long nodes have been over-utilised and tainted, what was moved, refused, and forecast in vain."""

    hot_since: dict[str, float] = {}  # by node
    tainted_since: dict[str, dict[str, float]] = {}  # by node and taint
    mismatched_since: dict[str, dict[str, float]] = {}  # by node and controller
    moved: tuple[RememberedMove, ...] = ()
    looked_at: frozenset[str] = (
        frozenset()
    )  # in vain, by a plan that could not look at all: others come first
    refusals: RefusalMemory = RefusalMemory()

    def expire(self, now: float) -> "PlanMemory":
        """Forget the moves whose time is over, and the oldest ones if there are too many."""
        moved = tuple(each for each in self.moved if each.forgotten > now)[-MOST_REMEMBERED:]
        return msgspec.structs.replace(self, moved=moved)

    def remember(self, moves: Iterable[RememberedMove]) -> "PlanMemory":
        return msgspec.structs.replace(self, moved=(*self.moved, *moves))

    def moves_of(self, controller: str) -> tuple[RememberedMove, ...]:
        """Give the moves of a controller's pods."""
        return self._by_controller.get(controller, ())

    def find_rest(self, row: PodRow) -> float | None:
        """Tell until when a pod stays that a plan has placed where it is."""
        controller = row.template.controller
        if controller is None:
            return None
        ends = (each.paid_back for each in self.moves_of(controller.uid) if _has_placed(each, row))
        return max(ends, default=None)

    @cached_property
    def _by_controller(self) -> dict[str, tuple[RememberedMove, ...]]:
        found: defaultdict[str, list[RememberedMove]] = defaultdict(list)
        for each in self.moved:
            found[each.controller].append(each)
        return {controller: tuple(moves) for controller, moves in found.items()}


def find_beginnings(
    names: Iterable[str], before: Mapping[str, float] | None, *, now: float
) -> dict[str, float]:
    """Tell since when each of these has been as it is now: as remembered before, or only now.

    Without a memory it has always been so.
    """
    known, first = (_NOTHING, _ALWAYS) if before is None else (before, now)
    return {name: min(known.get(name, first), now) for name in names}


def _has_placed(moved: RememberedMove, row: PodRow) -> bool:
    return row.node in moved.destinations and is_since(row.created, moved.since)
