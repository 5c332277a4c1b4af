"""Fast counters and histograms for every call, used in the event loop's thread only.

prometheus_client guards each metric by a lock and looks up labelled ones under another: to count a call in
half a dozen of them costs as much as to answer it. These are scraped together with its metrics, and look the
same.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

# The label values, in order.
_Values = tuple[str, ...]


class FastCounter:
    """A counter of events or amounts."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1) -> None:
        self.value += amount


class CounterVec(Collector):
    """A counter for each combination of labels."""

    def __init__(self, name: str, text: str, labels: Sequence[str], *, registry: CollectorRegistry) -> None:
        self._family = (name, text, tuple(labels))
        self.by_labels: defaultdict[_Values, FastCounter] = defaultdict(FastCounter)
        """For code that counts every call: no function call is needed to find the counter."""
        registry.register(self)

    def labels(self, *values: str) -> FastCounter:
        return self.by_labels[values]

    def collect(self) -> Iterable[CounterMetricFamily]:
        name, text, labels = self._family
        family = CounterMetricFamily(name, text, labels=labels)
        for values, count in self.by_labels.items():
            family.add_metric(values, count.value)
        return [family]

    describe = collect


class FastHistogram:
    """A histogram: how many observations are at most each bound, and their sum."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, amount: float) -> None:
        self._counts[bisect_left(self._bounds, amount)] += 1
        self._sum += amount

    def collect(self) -> tuple[list[tuple[str, float]], float]:
        bounds = [*map(floatToGoString, self._bounds), "+Inf"]
        return list(zip(bounds, accumulate(map(float, self._counts)), strict=True)), self._sum


class HistogramVec(Collector):
    """A histogram for each combination of labels."""

    def __init__(
        self,
        name: str,
        text: str,
        labels: Sequence[str],
        *,
        registry: CollectorRegistry,
        buckets: Sequence[float],
    ) -> None:
        self._family = (name, text, tuple(labels))
        self.by_labels: defaultdict[_Values, FastHistogram] = defaultdict(
            partial(FastHistogram, tuple(buckets))
        )
        """The children, as in CounterVec."""
        registry.register(self)

    def labels(self, *values: str) -> FastHistogram:
        return self.by_labels[values]

    def collect(self) -> Iterable[HistogramMetricFamily]:
        name, text, labels = self._family
        family = HistogramMetricFamily(name, text, labels=labels)
        for values, spread in self.by_labels.items():
            buckets, total = spread.collect()
            family.add_metric(values, buckets, total)
        return [family]

    describe = collect
