"""The brake of application failover: when most workloads fail at once, moving them helps none of them.

The cause is then what they share: a registry, a bad image, the network. If it is a cluster that they share,
moving away from it does help.
"""

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from federation.objects.names import Key


class StormRules(NamedTuple):
    """From how many failing workloads on, and from which fraction of all, nothing moves."""

    fraction: float = 0.55
    least: int = 10
    one_cluster: float = 0.8
    """The fraction of what fails that makes it the failure of a cluster."""


class StormBrake:
    """Where each workload with application failover fails."""

    def __init__(self, rules: StormRules) -> None:
        self._rules = rules
        self._failing_in: dict[Key, frozenset[str]] = {}
        self._by_cluster: Counter[str] = Counter()
        self._failing = 0

    @property
    def is_on(self) -> bool:
        rules, known = self._rules, len(self._failing_in)
        return self._failing >= rules.least and self._failing > rules.fraction * known

    @property
    def failing(self) -> int:
        return self._failing

    @property
    def known(self) -> int:
        return len(self._failing_in)

    def observe(self, key: Key, clusters: Collection[str] | None) -> None:
        """Note in which clusters a workload fails; None if it is gone, or does not fail over."""
        before = self._failing_in.pop(key, frozenset())
        self._count(before, -1)
        if clusters is not None:
            self._failing_in[key] = frozenset(clusters)
            self._count(clusters, 1)

    def holds(self, clusters: Collection[str]) -> bool:
        """Tell whether a workload that fails in these clusters has to stay."""
        if not self.is_on:
            return False
        least = self._rules.one_cluster * self._failing
        return all(self._by_cluster[name] <= least for name in clusters)

    def _count(self, clusters: Collection[str], step: int) -> None:
        if clusters:
            self._failing += step
        for name in clusters:
            self._by_cluster[name] += step
            if not self._by_cluster[name]:
                del self._by_cluster[name]
