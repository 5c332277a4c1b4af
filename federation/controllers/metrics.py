"""What the controllers count, in the library's registry."""

from prometheus_client import Counter, Gauge, Histogram

from reberth.metrics import REGISTRY

QUEUE_DEPTH = Gauge(
    "reberth_federation_queue_depth",
    "Objects that wait for a controller or are being settled by it.",
    ("controller",),
    registry=REGISTRY,
)
SETTLED = Counter(
    "reberth_federation_settled_total",
    "Objects that a controller has looked at, by what came of it.",
    ("controller", "result"),
    registry=REGISTRY,
)
SCHEDULE_ATTEMPTS = Counter(
    "karmada_scheduler_schedule_attempts_total",
    "Attempts to schedule a binding, by their result.",
    ("result", "schedule_type"),
    registry=REGISTRY,
)
SCHEDULING_DURATION = Histogram(
    "karmada_scheduler_e2e_scheduling_duration_seconds",
    "Seconds from looking at a binding to its written decision.",
    ("result", "schedule_type"),
    registry=REGISTRY,
)
MEMBERS_READY = Gauge(
    "reberth_federation_members_ready",
    "Member clusters whose condition Ready is true.",
    registry=REGISTRY,
)
