"""The random choices of a case: all draws come from one stream, so that a seed always gives the same case.

A version that lacks a feature takes no draw less: so its clusters are those of the others, without it.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from reberth.cluster.pods.requests import NEWEST, Version

T = TypeVar("T")
Object = dict[str, Any]
_INTENSITIES = {0.0: 4, 0.6: 4, 1.0: 4, 1.6: 2}


class Dice(random.Random):
    """A stream of draws. A feature is absent, rare, usual or frequent in a whole case: so cases differ."""

    def __init__(self, seed: int, *, version: Version = NEWEST) -> None:
        super().__init__(seed)
        self.version = version
        self._intensities: dict[str, float] = {}

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def often(self, feature: str, probability: float) -> bool:
        """Draw with the probability that this feature has in this case."""
        if feature not in self._intensities:
            self._intensities[feature] = self.weighed(_INTENSITIES)
        return self.chance(min(0.95, probability * self._intensities[feature]))

    def weighed(self, weights: Mapping[T, float]) -> T:
        return self.choices(list(weights), list(weights.values()))[0]

    def some(self, values: Sequence[T], probability: float) -> list[T]:
        """Take each value with this probability."""
        return [value for value in values if self.chance(probability)]

    def several(self, values: Sequence[T], least: int, most: int) -> list[T]:
        return self.sample(values, min(len(values), self.randint(least, most)))
