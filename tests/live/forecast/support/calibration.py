"""Check that forecast chances come true: of pods given a chance of 30 %, 30 in 100 must land there.

Predictions are put into ten buckets by their chance. In each, what happened must lie inside the 99 % interval
of a binomial distribution around what was predicted.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

BUCKETS = 10
_TAIL = 0.005


@dataclass
class Bucket:
    predictions: int = 0
    expected: float = 0.0
    happened: int = 0

    def add(self, chance: float, *, happened: bool) -> None:
        self.predictions += 1
        self.expected += chance
        self.happened += happened

    @property
    def is_plausible(self) -> bool:
        chance = self.expected / self.predictions if self.predictions else 0.0
        at_most = sum(_binomial(self.predictions, count, chance) for count in range(self.happened + 1))
        at_least = 1.0 - at_most + _binomial(self.predictions, self.happened, chance)
        return at_most > _TAIL and at_least > _TAIL

    def __str__(self) -> str:
        share, predicted = (part / max(self.predictions, 1) for part in (self.happened, self.expected))
        verdict = "" if self.is_plausible else "  IMPLAUSIBLE"
        return f"{self.predictions:6} predictions of {predicted:6.1%}: {share:6.1%} happened{verdict}"


@dataclass
class Calibration:
    """All predictions of some starts. Those that are certain say nothing of chances, and must simply hold."""

    buckets: list[Bucket] = field(default_factory=lambda: [Bucket() for _ in range(BUCKETS)])
    impossible: list[str] = field(default_factory=list)

    def add(self, chances: dict[str, float], nodes: Iterable[str], landed_on: str) -> None:
        if not chances.get(landed_on):
            self.impossible.append(landed_on)
        for node in nodes:
            chance = chances.get(node, 0.0)
            if 0.0 < chance < 1.0:
                self.buckets[int(chance * BUCKETS)].add(chance, happened=node == landed_on)

    def __str__(self) -> str:
        return "\n".join(map(str, self.buckets))


def _binomial(count: int, happened: int, chance: float) -> float:
    """Give the chance that so many of so many happen."""
    if chance in {0.0, 1.0}:
        return float(happened == count * chance)
    log = math.lgamma(count + 1) - math.lgamma(happened + 1) - math.lgamma(count - happened + 1)
    return math.exp(log + happened * math.log(chance) + (count - happened) * math.log1p(-chance))
