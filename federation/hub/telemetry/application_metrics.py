"""Metrics of application failover: what fails, what holds it, and what has moved."""

from collections import Counter as Counts

from prometheus_client import Counter, Gauge, Histogram

from federation.failover.application_failover import FailoverReason
from federation.objects.names import Key
from reberth.runtime.metrics import REGISTRY

BEGUN, WITHDRAWN, GIVEN_UP = "begun", "withdrawn", "givenUp"

WORKLOADS = Gauge(
    "reberth_federation_application_failover_workloads",
    "Workloads with application failover, by the reason of their condition Failover.",
    ("reason",),
    registry=REGISTRY,
)
FAILING = Gauge(
    "reberth_federation_application_failover_failing",
    "Workloads with application failover that fail in a cluster, with those that are given up.",
    registry=REGISTRY,
)
STORM = Gauge(
    "reberth_federation_application_failover_storm",
    "1 while so many workloads fail at once that none of them moves.",
    registry=REGISTRY,
)
FAILOVERS = Counter(
    "reberth_federation_application_failovers_total",
    "Application failovers: begun, withdrawn because the old copy was well again, or given up.",
    ("outcome",),
    registry=REGISTRY,
)
TIME_FAILING = Histogram(
    "reberth_federation_application_failover_failing_seconds",
    "Seconds for which a workload had failed in a cluster when it began to leave it.",
    registry=REGISTRY,
    buckets=(1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600),
)

PENDING = Gauge(
    "reberth_federation_pending_replicas",
    "Replicas that have had no node in their member for longer than the setting longerThan.",
    registry=REGISTRY,
)
PENDING_GIVEN = Counter(
    "reberth_federation_pending_replicas_given_total",
    "Replicas without a node that were given to other clusters.",
    registry=REGISTRY,
)

# All series start at 0: increase() does not see the first event of a series that appears with it.
for _reason in FailoverReason:
    WORKLOADS.labels(str(_reason))
for _outcome in (BEGUN, WITHDRAWN, GIVEN_UP):
    FAILOVERS.labels(_outcome)


class ReasonCounts:
    """The reason of each workload, and how many have each."""

    def __init__(self) -> None:
        self._by_key: dict[Key, FailoverReason] = {}
        self._counts: Counts[FailoverReason] = Counts()

    def note(self, key: Key, reason: FailoverReason) -> None:
        self.forget(key)
        self._by_key[key] = reason
        self._add(reason, 1)

    def forget(self, key: Key) -> None:
        before = self._by_key.pop(key, None)
        if before is not None:
            self._add(before, -1)

    def list_keys(self) -> list[Key]:
        return list(self._by_key)

    def having(self, *reasons: FailoverReason) -> list[Key]:
        if not any(self._counts[each] for each in reasons):
            return []
        return [key for key, reason in self._by_key.items() if reason in reasons]

    def _add(self, reason: FailoverReason, step: int) -> None:
        self._counts[reason] += step
        WORKLOADS.labels(str(reason)).set(self._counts[reason])
