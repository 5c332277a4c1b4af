"""The settings of the disruption budget: how many disruptions are allowed in which period."""

import re
from typing import Self

import msgspec

from reberth.values.duration import Duration, TextValue

_RATE = re.compile(r"([0-9]{1,6}) per (\S+)")


class Rate(TextValue, tuple[int, float]):
    """At most `limit` disruptions in any period of this many seconds."""

    __slots__ = ()
    expected = "a rate such as 10 per 10m"

    @classmethod
    def from_text(cls, text: str) -> Self | None:
        found = _RATE.fullmatch(text)
        period = Duration.from_text(found[2]) if found else None
        return cls((int(found[1]), float(period))) if found and period else None

    @property
    def limit(self) -> int:
        return self[0]

    @property
    def period(self) -> float:
        return self[1]

    def __str__(self) -> str:
        return f"{self.limit} per {self.period:g}s"


class DisruptionLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The rates for the cluster, for each namespace and for each workload; all of them must be kept."""

    cluster: tuple[Rate, ...] = (Rate((10, 600.0)),)
    """Disruptions in the whole cluster; if there are several rates, all of them apply."""
    namespace: tuple[Rate, ...] = ()
    """Disruptions in each namespace."""
    workload: tuple[Rate, ...] = ()
    """Disruptions of each workload."""
    clock_skew: Duration = Duration(5)
    """How much the clocks of two leaders may differ: every period is extended by it."""
