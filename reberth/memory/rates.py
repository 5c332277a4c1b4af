"""The settings of the disruption budget: how many disruptions are allowed in which period.

A rate may be a percentage of the pods of the cluster, of a namespace or of a workload. The ledger counts
disruptions and knows no pods: `resolve_limits` counts percentages out before it is asked.
"""

import re
from collections.abc import Callable
from typing import Self

import msgspec

from reberth.values.duration import Duration, TextValue
from reberth.values.pod_limit import PodLimit

_RATE = re.compile(r"(?:([0-9]{1,6})|([0-9].*)) per (\S+)")


class Rate(TextValue, tuple[int | PodLimit, float]):
    """At most `limit` disruptions in any period of this many seconds."""

    __slots__ = ()
    expected = "a rate such as 10 per 10m, 5% per 10m or 5% min 1 per 10m"

    @classmethod
    def from_text(cls, text: str) -> Self | None:
        found = _RATE.fullmatch(text)
        period = Duration.from_text(found[3]) if found else None
        if not found or not period:
            return None
        limit = int(found[1]) if found[1] else PodLimit.from_text(found[2])
        return None if limit is None else cls((limit, float(period)))

    @property
    def limit(self) -> int:
        """The number of disruptions. A percentage that was not counted out allows its minimum only."""
        return self[0].number if isinstance(self[0], PodLimit) else self[0]

    @property
    def period(self) -> float:
        return self[1]

    @property
    def is_percentage(self) -> bool:
        return isinstance(self[0], PodLimit)

    @property
    def text(self) -> str:
        """What is allowed in a period, as it is written in a file."""
        return self[0].text if isinstance(self[0], PodLimit) else str(self[0])

    @property
    def name(self) -> str:
        """The rate as it is written; it stays the same however many pods there are."""
        return f"{self.text} per {self.period:g}s"

    def among(self, count: Callable[[], int]) -> Self:
        """Count out a percentage; the pods are counted only for that."""
        limit, period = self
        return type(self)((limit.among(count), period)) if isinstance(limit, PodLimit) else self

    def __str__(self) -> str:
        return self.name + (self[0].counted_out if isinstance(self[0], PodLimit) else "")


class DisruptionLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The rates for the cluster, for each namespace and for each workload; all of them must be kept."""

    cluster: tuple[Rate, ...] = (Rate((10, 600.0)),)
    """Disruptions in the whole cluster, a number or a percentage of its pods; all of several rates apply."""
    namespace: tuple[Rate, ...] = ()
    """Disruptions in each namespace, a number or a percentage of its pods."""
    workload: tuple[Rate, ...] = ()
    """Disruptions of each workload, a number or a percentage of its pods, which is rounded down."""
    clock_skew: Duration = Duration(5)
    """How much the clocks of two leaders may differ: every period is extended by it."""


def resolve_limits(
    limits: DisruptionLimits,
    *,
    cluster: Callable[[], int],
    namespace: Callable[[], int],
    workload: Callable[[], int],
) -> DisruptionLimits:
    """Count out the percentages for one disruption; pods are counted only where a percentage asks for it."""
    pods = {"cluster": cluster, "namespace": namespace, "workload": workload}
    asked = {scope: getattr(limits, scope) for scope in pods}
    resolved = {
        scope: tuple(rate.among(pods[scope]) for rate in rates)
        for scope, rates in asked.items()
        if any(rate.is_percentage for rate in rates)
    }
    return msgspec.structs.replace(limits, **resolved) if resolved else limits
