"""Sixty nodes out of balance, drawn from one number and brought to life: a tenth is hot, a fifth cold."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from bench.placed_fleet import PlacedFleet

_SIZES = (100, 200, 300, 400)  # thousandths of a cpu; each takes its share of memory too
_MEMORY_OF_A_THOUSANDTH = 4  # Mi: a node offers 64 Gi beside its 16 cpu
_HOT, _COLD = 0.1, 0.2
# Pods on a hot and on a cold node, relative to all other nodes.
_MORE, _LESS = 2.2, 0.25


@dataclass(frozen=True, kw_only=True)
class Fleet(PlacedFleet):
    """So many nodes and pods."""

    pods: int

    cpu: ClassVar[str] = "16"
    memory: ClassVar[str] = "64Gi"

    def draw(self, dice: Random) -> list[str]:
        names = dice.sample(self.names, len(self.names))
        hot, cold = round(_HOT * self.nodes), round(_COLD * self.nodes)
        weights = [_MORE] * hot + [_LESS] * cold + [1.0] * (self.nodes - hot - cold)
        whole = sum(weights)
        found = [
            name
            for name, part in zip(names, weights, strict=True)
            for _ in range(round(self.pods * part / whole))
        ]
        found += dice.choices(names[hot + cold :], k=max(0, self.pods - len(found)))
        dice.shuffle(found)
        return found[: self.pods]

    def ask(self, app: int) -> Mapping[str, Any]:
        size = _SIZES[app % len(_SIZES)]
        return {"cpu": f"{size}m", "memory": f"{size * _MEMORY_OF_A_THOUSANDTH}Mi"}
