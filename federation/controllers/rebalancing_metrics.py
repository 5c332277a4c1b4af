"""What rebalancing counts, in the library's registry."""

from prometheus_client import Counter, Gauge, Histogram

from reberth.metrics import REGISTRY

TRIGGERED = Counter(
    "reberth_federation_rebalance_triggered_total",
    "Bindings asked for a fresh scheduling, by who asked.",
    ("by",),
    registry=REGISTRY,
)
RESCHEDULED = Counter(
    "reberth_federation_rebalance_rescheduled_total",
    "Workloads of rebalancers that the scheduler has scheduled afresh.",
    registry=REGISTRY,
)
MOVED = Counter(
    "reberth_federation_rebalance_moved_replicas_total",
    "Replicas of rebalanced workloads that were given to another cluster.",
    registry=REGISTRY,
)
WAITING = Gauge(
    "reberth_federation_rebalance_waiting_workloads",
    "Workloads of rebalancers that are not done, by what they wait for.",
    ("reason",),
    registry=REGISTRY,
)
DURATION = Histogram(
    "reberth_federation_rebalance_duration_seconds",
    "Seconds from the wish to the fresh scheduling of a workload.",
    buckets=(0.5, 1, 2, 5, 10, 30, 60, 300, 1800),
    registry=REGISTRY,
)
HANDED_OVER = Counter(
    "reberth_federation_handovers_total",
    "Workloads whose old copies were let go, by whether the new ones were ready in time.",
    ("result",),
    registry=REGISTRY,
)
