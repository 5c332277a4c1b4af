"""Five thousand nodes of which a fifth is full and the others are new: the fewest pods with so many moves.

It is what a cluster looks like after it was scaled up. Each full node has to give away half of its pods, and
the workloads of its pods are drawn: moves that begin at the same time share neither nodes nor workloads.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from bench.placed_fleet import PlacedFleet

LOW, HIGH = 20, 50
"""The thresholds in per cent: a full node gives away half of its pods, an empty one takes two."""
_ON_A_FULL_NODE = 8
_POD: Mapping[str, Any] = {"cpu": "1", "memory": "4Gi"}
_FULL = 0.2


@dataclass(frozen=True, kw_only=True)
class Fleet(PlacedFleet):
    """So many nodes, a fifth of them full."""

    cpu: ClassVar[str] = "8"
    memory: ClassVar[str] = "32Gi"

    @property
    def moves(self) -> int:
        """How many moves there are until no node is above the threshold."""
        return len(self.places) // 2

    def draw(self, dice: Random) -> list[str]:
        full = dice.sample(self.names, round(_FULL * self.nodes))
        found = [name for name in full for _ in range(_ON_A_FULL_NODE)]
        dice.shuffle(found)
        return found

    def ask(self, app: int) -> Mapping[str, Any]:
        del app
        return _POD
