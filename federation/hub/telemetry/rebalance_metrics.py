"""Metrics of rebalancing."""

from prometheus_client import Counter, Gauge, Histogram

from federation.rebalancing.progress import WaitingFor
from reberth.runtime.metrics import REGISTRY

BY_REBALANCER, BY_FAILBACK = "rebalancer", "failback"
READY, TIMEOUT, RETURNED, HELD = "ready", "timeout", "returned", "held"

TRIGGERED = Counter(
    "reberth_federation_rebalance_triggered_total",
    "Fresh schedulings requested of bindings, by who requested them.",
    ("by",),
    registry=REGISTRY,
)
RESCHEDULED = Counter(
    "reberth_federation_rebalance_rescheduled_total",
    "Workloads of WorkloadRebalancers that the scheduler has rescheduled.",
    registry=REGISTRY,
)
MOVED = Counter(
    "reberth_federation_rebalance_moved_replicas_total",
    "Replicas that rebalancing moved to another cluster.",
    registry=REGISTRY,
)
WAITING = Gauge(
    "reberth_federation_rebalance_waiting_workloads",
    "Unfinished workloads of WorkloadRebalancers, by what they wait for.",
    ("reason",),
    registry=REGISTRY,
)
DURATION = Histogram(
    "reberth_federation_rebalance_duration_seconds",
    "Seconds from the request to the fresh scheduling of a workload.",
    buckets=(0.5, 1, 2, 5, 10, 30, 60, 300, 1800),
    registry=REGISTRY,
)
HANDED_OVER = Counter(
    "reberth_federation_handovers_total",
    "Handovers, by whether the new copies were ready in time, and what became of the old ones if not.",
    ("result",),
    registry=REGISTRY,
)

# All series start at 0: increase() does not see the first event of a series that appears with it.
for _by in (BY_REBALANCER, BY_FAILBACK):
    TRIGGERED.labels(_by)
for _reason in WaitingFor:
    WAITING.labels(str(_reason))
for _result in (READY, TIMEOUT, RETURNED, HELD):
    HANDED_OVER.labels(_result)
